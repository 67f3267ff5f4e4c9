"""Experiments: what is run, and the pictures made of it."""
