"""`python -m o2pl.cli`."""

from o2pl.cli import main

if __name__ == "__main__":
    main()
