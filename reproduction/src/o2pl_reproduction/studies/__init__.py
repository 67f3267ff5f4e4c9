"""The studies: what each runs, its claims and figures."""
