from __future__ import annotations

import signal


def pytest_sessionstart() -> None:
    """Started in the background, Python ignores SIGINT, and so would the programs that tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
