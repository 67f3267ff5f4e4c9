"""`python -m o2pl.cli`."""

from o2pl.cli import main

main()
