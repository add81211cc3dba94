"""Names for learners and instances: a dictionary that answers a typo with near matches."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any


class Registry:
    """Constructors by name; ``kind`` is the word used in error messages."""

    def __init__(self, kind: str):
        """An empty registry of things called ``kind`` ("learner", "instance", ...)."""
        self.kind = kind
        self.constructors: dict[str, Callable[..., Any]] = {}

    def register(self, name: str, constructor: Callable[..., Any]) -> Callable[..., Any]:
        """Adds a constructor; a name that is taken is an error."""
        if not isinstance(name, str) or not name:
            raise ValueError(f"name: {name!r}; accepted: a non-empty string")
        if name in self.constructors:
            raise ValueError(f"{self.kind} {name!r} is registered already; choose another name")
        self.constructors[name] = constructor
        return constructor

    def make(self, name: str, **parameters: Any) -> Any:
        """Calls the constructor of that name; an unknown name or parameter is an error naming the known."""
        if name not in self.constructors:
            known = sorted(self.constructors)
            near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
            raise ValueError(f"unknown {self.kind} {name!r}; {hint}accepted: {', '.join(known)}")
        constructor = self.constructors[name]
        signature = inspect.signature(constructor)
        takes_any = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
        for given in parameters:
            if given not in signature.parameters and not takes_any:
                near = difflib.get_close_matches(given, list(signature.parameters), n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}? " if near else ""
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
