"""What `check_learner` found out, as it goes and as a table at the end."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, NamedTuple

from jaxbandit.tabular import Table

HEAD = ("property", "what was compared", "result")


class Property(NamedTuple):
    """One row of the summary."""

    name: str
    """What must hold, such as "jit = eager"."""
    compared: str
    """What was looked at."""
    result: str
    """What was seen: "holds", or why it was not tried."""


@dataclass(frozen=True)
class Summary:
    """The properties that a learner has shown; prints as a table.

    Example:
        >>> Summary("mine", (Property("jit = eager", "act in 2 episodes", "holds"),))
        learner 'mine' keeps the contract
        property     what was compared  result
        -----------  -----------------  ------
        jit = eager  act in 2 episodes  holds
    """

    learner: str
    properties: tuple[Property, ...]

    def __repr__(self) -> str:
        """The table as text."""
        return str(self.table)

    @property
    def table(self) -> Table:
        """A row per property."""
        title = f"learner {self.learner!r} keeps the contract"
        return Table(HEAD, self.properties, rule=True, title=title)

    def _repr_html_(self) -> str:
        return self.table.to("html")


class Notes:
    """Collects what holds, printing it if asked to, and raises what does not."""

    def __init__(self, learner: str, verbose: bool | None = False):
        """Of the learner called ``learner``; ``verbose`` prints every line, None in terminals."""
        self.learner = learner
        self.verbose = sys.stderr.isatty() if verbose is None else verbose
        self.properties: list[Property] = []

    def holds(self, name: str, compared: str, result: str = "holds") -> None:
        """Notes a property that was seen to hold."""
        self.properties.append(Property(name, compared, result))
        if self.verbose:
            line = f"{name}: {compared}: {result}"
            # in terminals a clock stands at the beginning of the line
            print(f"\r{line:50}" if sys.stderr.isatty() else line, file=sys.stderr, flush=True)

    def require(self, holds: Any, broken: str) -> None:
        """Raises AssertionError, naming the learner, unless ``holds``."""
        if not holds:
            raise AssertionError(f"learner {self.learner!r}: {broken}")

    def summary(self) -> Summary:
        """All that was noted."""
        return Summary(self.learner, tuple(self.properties))
