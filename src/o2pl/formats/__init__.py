"""Reading logs from files and data frames of several formats, and writing them."""

from o2pl.formats.columns import read_log
from o2pl.formats.describe import describe
from o2pl.formats.obp import from_obp, to_obp

__all__ = ["describe", "from_obp", "read_log", "to_obp"]
