"""Matplotlib helpers: a new figure, the style of its axes, and saving."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from o2pl.errors import InvalidInput
from o2pl.extras import extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_figure(width: float, height: float, *, wspace: float | None = None, hspace: float | None = None) -> Figure:
    """Return an empty figure, size in inches, with constrained layout. wspace, hspace: extra space between axes."""
    with extra("plots", "drawing figures"):
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine

    return Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(wspace=wspace, hspace=hspace))


def tidy(axes: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    """Draw a faint grid, and remove the top and right spines."""
    axes.grid(axis=grid, alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def write_figure(figure: Figure, path: Path) -> None:
    """Save atomically; the file extension sets the format (PNG, SVG). Equal figures give equal bytes."""
    import matplotlib as mpl

    beside = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")  # the extension sets the format
    try:
        with mpl.rc_context({"svg.hashsalt": "o2pl", "svg.fonttype": "none"}):
            figure.savefig(beside, dpi=160, metadata={"Date": None} if path.suffix == ".svg" else None)
        os.replace(beside, path)
    except ValueError as error:  # unknown extension
        raise InvalidInput(
            f"figure: found the name {path.name!r}, expected one that ends in .png or .svg ({error})"
        ) from None
    finally:
        beside.unlink(missing_ok=True)
