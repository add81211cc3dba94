"""Names for learners and instances: a dictionary that answers a typo with near matches."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jaxbandit.checks import did_you_mean, printable

ALIASES: dict[str, tuple[str, ...]] = {
    "ucb": ("ucb1", "ucbvi"),
    "ts": ("thompson", "psrl"),
    "thompsonsampling": ("thompson", "psrl"),
    "posteriorsampling": ("psrl", "thompson"),
    "etc": ("explore-then-commit",),
    "egreedy": ("epsilon-greedy",),
    "epsgreedy": ("epsilon-greedy",),
    "greedy": ("epsilon-greedy",),
    "successiveelimination": ("elimination",),
    "ucbimproved": ("elimination",),
    "bernoulli": ("bandit", "bandit-random"),
    "bernoullibandit": ("bandit", "bandit-random"),
    "multiarmedbandit": ("bandit", "bandit-random"),
    "mab": ("bandit", "bandit-random"),
    "arms": ("bandit", "bandit-random"),
}
"""What others call our learners and instances: lower case, without hyphens and blanks."""


def near_names(name: Any, known: Iterable[str], most: int = 3) -> str:
    """A hint at names that mean the same, else at those that are spelled alike; empty if there are none.

    Example:
        >>> near_names("UCB-VI", ["ucb1", "ucbvi"]), near_names("TS", ["psrl", "thompson"])
        ("did you mean 'ucbvi'? ", "did you mean 'thompson' or 'psrl'? ")
    """
    known = list(known)
    plain = _plain(name)
    same = [other for other in known if _plain(other) == plain]
    same = same or [other for other in ALIASES.get(plain, ()) if other in known]
    if same:
        return f"did you mean {' or '.join(map(repr, same))}? "
    return did_you_mean(name, known, most=most)


def _plain(name: Any) -> str:
    return re.sub("[-_ ]", "", str(name).casefold())


class Registry:
    """Constructors by name; ``kind`` is the word used in error messages."""

    def __init__(self, kind: str):
        """An empty registry of things called ``kind`` ("learner", "instance", ...)."""
        self.kind = kind
        self.constructors: dict[str, Callable[..., Any]] = {}

    def register(self, name: str, constructor: Callable[..., Any]) -> Callable[..., Any]:
        """Adds a constructor; a name that is taken is an error."""
        printable("name", name)
        if not callable(constructor):
            raise TypeError(f"constructor: {constructor!r}; accepted: a function")
        if name in self.constructors:
            raise ValueError(f"{self.kind} {name!r} is registered already; choose another name")
        self.constructors[name] = constructor
        return constructor

    def make(self, name: str, **parameters: Any) -> Any:
        """Calls the constructor of that name; an unknown name or parameter is an error naming the
        known."""
        known = self.names()
        if not isinstance(name, str) or name not in known:
            hint = self._elsewhere(name) or near_names(name, known)
            raise ValueError(f"unknown {self.kind} {name!r}; {hint}accepted: {', '.join(known)}")
        constructor = self.constructors[name]
        signature = inspect.signature(constructor)
        taken = signature.parameters
        takes_any = any(p.kind is p.VAR_KEYWORD for p in taken.values())
        for given in () if takes_any else [each for each in parameters if each not in taken]:
            hint = did_you_mean(given, taken, most=1)
            accepted = ", ".join(taken)
            raise ValueError(
                f"{self.kind} {name!r} has no parameter {given!r}; {hint}accepted: {accepted}"
            )
        for wanted, p in taken.items():
            named = p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
            if named and p.default is p.empty and wanted not in parameters:
                raise ValueError(
                    f"{self.kind} {name!r} needs the parameter {wanted!r}; it takes {name}{signature}"
                )
        return constructor(**parameters)

    def _elsewhere(self, name: Any) -> str:
        """A hint at what has this name, or means it, in another registry; empty if it is known here or nowhere."""
        if not isinstance(name, str):
            return ""
        meant = [*ALIASES.get(_plain(name), ()), name]
        if any(other in self.constructors for other in meant):
            return ""
        import jaxbandit  # learners and instances may not be loaded yet

        for registry in (jaxbandit.LEARNERS, jaxbandit.INSTANCES):
            if registry is self:
                continue
            for other in [x for one in meant for x in registry if _plain(x) == _plain(one)]:
                return f'did you mean the {registry.kind} {other!r} (jb.make_{registry.kind}("{other}", ...))? '
        return ""

    def __iter__(self) -> Iterator[str]:
        """Iterates over the names, sorted."""
        return iter(self.names())

    def names(self) -> list[str]:
        """All registered names, sorted."""
        return sorted(self.constructors)
