"""The decision service: what decides, stores, learns and shows it."""
