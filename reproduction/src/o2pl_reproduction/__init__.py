"""The experiments of the paper and our own: runs, claims with verdicts, figures and the report.

`EXPERIMENTS` holds them by name; those of the paper are `STUDIES`. A new one is a file in `studies/` with an
`Experiment` (or a `Study`) in it and a row in `registry.py`:

    from o2pl.simulation import Options, results, run
    from o2pl_reproduction import EXPERIMENTS
    run(EXPERIMENTS["wheel"], Options("quick", seeds=range(5)), out="out")
    results("out", "wheel")  # a pyarrow Table
"""

from typing import TYPE_CHECKING

from o2pl.lazily import lazily_imported

if TYPE_CHECKING:
    from o2pl_reproduction.registry import EXPERIMENTS, STUDIES

__all__ = ["EXPERIMENTS", "STUDIES"]

__getattr__, __dir__ = lazily_imported(__name__, {"o2pl_reproduction.registry": "EXPERIMENTS STUDIES"})
