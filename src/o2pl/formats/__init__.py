"""Reading logs from files and data frames of several formats, and writing them."""

from typing import TYPE_CHECKING

from o2pl.lazily import lazily_imported

if TYPE_CHECKING:
    from o2pl.formats.describing import describe
    from o2pl.formats.log_tables import read_log
    from o2pl.formats.obp import from_obp, to_obp

__all__ = ["describe", "from_obp", "read_log", "to_obp"]

__getattr__, __dir__ = lazily_imported(
    __name__,
    {
        "o2pl.formats.log_tables": "read_log",
        "o2pl.formats.describing": "describe",
        "o2pl.formats.obp": "from_obp to_obp",
    },
)
