"""VRPLIB's syntax: headers `KEY : VALUE`, then sections with rows of numbers. vrplib.py has the meaning."""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from chainroute.formats.common import Faults, Lines
from chainroute.problem.measure import FloatArray

_SECTION = re.compile(r"([A-Z_]+)_SECTION\s*:?")
_HEADER = re.compile(r"([A-Z][A-Z_]*)\s*:(.*)")


@dataclass
class Section:
    line: int
    rows: Lines


class Sections:
    """A file cut up, with the faults found in it so far."""

    def __init__(self, text: str):
        self.faults = Faults()
        self.headers: dict[str, tuple[int, str]] = {}
        self.comments: list[tuple[int, str]] = []
        self.sections: dict[str, Section] = {}
        self.lines: dict[str, dict[int, int]] = {}  # section -> location -> line
        section = None
        for number, line in enumerate(text.splitlines(), 1):
            line = line.strip()
            if line == "EOF":
                break
            if not line or line.startswith("#"):
                continue
            if match := _SECTION.fullmatch(line):
                section = Section(number, [])
                self.once(match[1] in self.sections, line, number)
                self.sections[match[1]] = section
            elif match := _HEADER.fullmatch(line):
                section = None
                if match[1] == "COMMENT":
                    self.comments.append((number, match[2].strip()))
                else:
                    self.once(match[1] in self.headers, match[1], number)
                    self.headers[match[1]] = (number, match[2].strip())
            elif section is not None:
                section.rows.append((number, line.split()))
            else:
                message = "is neither a header 'KEY : VALUE' nor part of a section."
                self.faults.add("bad-syntax", message, f"line {number}")

    def once(self, again: bool, key: str, line: int) -> None:
        if again:
            self.faults.add("duplicate-section", "occurs again.", f"{key}, line {line}")

    def __contains__(self, key: str) -> bool:
        return key in self.headers or key in self.sections

    def where(self, key: str, location: int | None = None) -> str:
        """A header or section by its name and line, or the line of one location in it."""
        if key in self.sections:
            line = self.lines.get(key, {}).get(-1 if location is None else location, self.sections[key].line)
            return f"{key}_SECTION, line {line}"
        return f"{key}, line {self.headers[key][0]}" if key in self.headers else key

    # -- headers

    def word(self, key: str, default: str = "") -> str:
        return self.headers[key][1] if key in self.headers else default

    def number(self, key: str) -> float | None:
        return self.faults.number(self.word(key), self.where(key)) if key in self.headers else None

    def whole(self, key: str) -> int | None:
        """None where the header is missing or faulty."""
        return self.faults.whole(self.word(key), self.where(key)) if key in self.headers else None

    # -- sections

    def table(self, key: str, n: int, columns: int) -> FloatArray:
        """One row per node, (n, columns); zeros where there is no such section."""
        values = np.zeros((n, columns))
        if key not in self.sections:
            return values
        lines = self.lines[key] = {}
        for line, words in self.sections[key].rows:
            where = f"{key}_SECTION, line {line}"
            if not self.wide(words, columns + 1, where):
                continue
            node = self.faults.whole(words[0], where)
            if node is None:
                continue
            if not 1 <= node <= n:
                self.faults.add("bad-syntax", f"there is no node {words[0]}; they are 1 to {n}.", where)
            elif node - 1 in lines:
                self.faults.add("bad-syntax", f"node {node} occurs again.", where)
            else:
                lines[node - 1] = line
                values[node - 1] = self.faults.numbers(words[1:], where)
        if len(self.sections[key].rows) != n:
            message = f"has {len(self.sections[key].rows)} rows for {n} nodes."
            self.faults.add("wrong-count", message, self.where(key))
        return values

    def column(self, key: str) -> list[tuple[str, float]]:
        """One number per vehicle, with where it stands."""
        places = [(f"{key}_SECTION, line {line}", words) for line, words in self.sections[key].rows]
        return [
            (where, self.faults.number(words[1], where))
            for where, words in places
            if self.wide(words, 2, where)
        ]

    def wide(self, words: list[str], width: int, where: str) -> bool:
        if len(words) != width:
            self.faults.add("bad-syntax", f"has {len(words)} entries, not {width}.", where)
        return len(words) == width

    def nodes(self, key: str, n: int) -> list[int]:
        """A list of nodes that -1 ends, or that ends with its section; as locations, from 0."""
        where = self.where(key)
        read = [self.faults.whole(word, where) for _, words in self.sections[key].rows for word in words]
        if read and read[-1] == -1:
            read.pop()
        nodes = [node for node in read if node is not None]
        for node, count in Counter(nodes).items():
            if not 1 <= node <= n:
                self.faults.add("bad-syntax", f"there is no node {node}; they are 1 to {n}.", where)
            elif count > 1:
                self.faults.add("bad-syntax", f"node {node} occurs {count} times.", where)
        return [node - 1 for node in nodes if 1 <= node <= n]

    def stream(self, key: str) -> FloatArray:
        """All numbers of a section, infinity among them, however they are broken into lines."""
        rows = self.sections[key].rows
        try:
            values = np.array([float(word) for _, words in rows for word in words])
            if (values > -np.inf).all():  # which NaN is not, either
                return values
        except ValueError:
            pass  # found line by line, which takes longer
        found = [self.faults.numbers(words, f"{key}_SECTION, line {line}") for line, words in rows]
        return np.array([value for row in found for value in row])
