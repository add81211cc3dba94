"""What a learner *runs*, whatever its parameters, as a digest: another one is another learner.

Two learners that differ in a helper, a constant, a default, a closure, an attribute or a schedule differ here, so that
what one of them left in a checkpoint, or compiled, is never taken for the other's.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jaxbandit.learner import Learner
from jaxbandit.programs.walk import Walk
from jaxbandit.xla.programs import PROGRAMS


@dataclass(frozen=True)
class Program:
    """The parts of a program by name, each with a digest of its own content."""

    parts: Mapping[str, str]
    digest: str

    def changes(self, other: Mapping[str, str]) -> list[str]:
        """The parts in which another program's differ, are missing or are new."""
        names = sorted({*self.parts, *other})
        return [name for name in names if self.parts.get(name) != other.get(name)]


def program_of(thing: Any) -> Program:
    """The program of a learner, or of any function.

    Example:
        >>> import jaxbandit as jb
        >>> one, two = jb.make_learner("ucbvi"), jb.make_learner("ucbvi", bonus="bernstein")
        >>> program_of(one) == program_of(jb.make_learner("ucbvi", bonus_scale=0.5))
        True
        >>> program_of(one) == program_of(two)
        False
    """
    walk = Walk()
    try:
        # by its fields: how a learner is printed is no part of it
        root = walk.describe(thing.rules._asdict() if isinstance(thing, Learner) else thing)
        parts = {name: _hash(value) for name, value in walk.parts.items()}
        parts["the learner"] = _hash(root)
    except Exception as error:  # too deep to follow, or an object that cannot be looked at
        parts = {
            f"the learner, which cannot be compared between two runs ({type(error).__name__})": uuid.uuid4().hex
        }
    return Program(parts, _hash(sorted(parts.items())))


def follow(thing: Any) -> Program:
    """The program of a learner or a function that is about to run: what was compiled of it is forgotten if it did
    something else.

    jax knows functions by their identity: of one whose constants, attributes or helpers are others than when it was
    compiled, in a notebook, it would run the old program.
    """
    program = program_of(thing)
    PROGRAMS.follow(thing.rules if isinstance(thing, Learner) else thing, program.digest)
    return program


def _hash(value: Any) -> str:
    return hashlib.sha256(repr(value).encode(errors="surrogatepass")).hexdigest()[:16]
