"""The objective and its gradient for each policy class, and what a round of it takes, as compiled code."""
