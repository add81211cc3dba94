"""Names for learners and instances: a dictionary that answers a typo with near matches."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from jaxbandit.checks import did_you_mean, printable


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
            hint = did_you_mean(name, known, most=3)
            raise ValueError(f"unknown {self.kind} {name!r}; {hint}accepted: {', '.join(known)}")
        constructor = self.constructors[name]
        signature = inspect.signature(constructor)
        takes_any = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
        for given in parameters:
            if given not in signature.parameters and not takes_any:
                hint = did_you_mean(given, signature.parameters, most=1)
                raise ValueError(
                    f"{self.kind} {name!r} has no parameter {given!r}; {hint}"
                    f"accepted: {', '.join(signature.parameters)}"
                )
        for wanted, p in signature.parameters.items():
            named = p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
            if named and p.default is p.empty and wanted not in parameters:
                raise ValueError(
                    f"{self.kind} {name!r} needs the parameter {wanted!r}; it takes {name}{signature}"
                )
        return constructor(**parameters)

    def names(self) -> list[str]:
        """All registered names, sorted."""
        return sorted(self.constructors)
