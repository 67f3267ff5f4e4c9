"""Run the hostile worlds and write the page; `page` alone writes it from the stored rows."""

import sys

from benchmarks.guarantees.page import write_page
from benchmarks.guarantees.run import run
from benchmarks.guarantees.widths import store

if __name__ == "__main__":
    asked, *doors = sys.argv[1:] or ["400"]
    if asked != "page":
        if not doors:
            store()
        run(int(asked), lambda done: print(done, flush=True), doors)
    write_page()
