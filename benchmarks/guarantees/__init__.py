"""Hostile worlds: how often the judgement is wrong where the truth is known, at every door that utters it."""
