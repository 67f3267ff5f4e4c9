"""Evaluation: what a policy is worth."""
