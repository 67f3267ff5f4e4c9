"""Unreadable rows: said with file and line; an error, or tolerated up to a limit, and notes of what was left out."""

from __future__ import annotations

from dataclasses import dataclass, field

from o2pl.errors import InvalidInput


@dataclass
class BadRows:
    """The bad rows of one file. The first row beyond `limit` is an error."""

    file: str
    limit: int = 0
    header: bool = False  # CSV: rows are lines, after a header line
    lines: list[int] = field(default_factory=list)  # lines that could not be parsed
    found: list[str] = field(default_factory=list)
    first: int = 0  # rows of the file before the current block
    notes: list[str] = field(default_factory=list)  # what was left out, each once

    def line(self, number: int, reason: str) -> None:
        """Record a line, counted from 1, that cannot be parsed."""
        self.lines.append(number)
        self._add(f"line {number}", reason)

    def row(self, number: int, reason: str) -> None:
        """Record a row, counted from 0 among the parsed ones, that cannot be used."""
        if not self.header:
            self._add(f"row {self.first + number}", reason)
            return
        number += 2
        for line in sorted(self.lines):
            number += line <= number
        self._add(f"line {number}", reason)

    def note(self, text: str) -> None:
        """Record what was left out, however many blocks say it."""
        if text not in self.notes:
            self.notes.append(text)

    def _add(self, where: str, reason: str) -> None:
        message = f"{self.file}, {where}: {reason}"
        self.found.append(message)
        if len(self.found) > self.limit:
            allowed = f" ({len(self.found)} bad rows, expected at most {self.limit})" if self.limit else ""
            raise InvalidInput(message + allowed)
