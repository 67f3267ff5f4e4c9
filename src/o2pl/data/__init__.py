"""What a log holds: contexts, as they come and as rows, decisions and rewards. `encode` makes rows of contexts."""
