"""A script: README's first example, with whatever o2pl is installed. `make build` runs it beside the wheel alone.

python -I tests/readme_example.py README.md
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import o2pl

if __name__ == "__main__":
    block = re.findall(r"```python\n(.*?)```", Path(sys.argv[1]).read_text(encoding="utf-8"), flags=re.DOTALL)[0]
    exec(compile(block, sys.argv[1], "exec"), {})
    typed = (Path(o2pl.__file__).parent / "py.typed").exists()
    print(f"o2pl {o2pl.__version__} from {Path(o2pl.__file__).parent}, {'typed' if typed else 'not typed'}")
    sys.exit(not typed)
