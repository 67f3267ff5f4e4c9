"""What a study consists of: claims with a figure, its interval and a verdict."""
