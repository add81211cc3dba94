"""The options of a sweep, declared once.

`jb.sweep`, `jb.plan`, the host loop, experiments and the command line read this one frozen value. A new
option is a field here, with its spec and its docstring: the check, the signature of `jb.sweep` and, for
fields of `RunOptions`, the command line follow from it. Nothing here imports jax.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxbandit import checks
from jaxbandit.record import Recording, linear
from jaxbandit.specs import Choice, Flag, Optional, Real, Spec, Whole


def option(default: Any, spec: Spec | None = None) -> Any:
    """A field with a spec."""
    return field(default=default, metadata={"spec": spec})


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How sweeps run, also from the command line."""

    seed: int = option(0, Whole(0, checks.LARGEST_SEED))
    """The root key of everything."""
    devices: Any = None
    """How many devices, or which (Python only); None takes all local ones. On a CPU, how many cores."""
    max_lanes: int | None = option(None, Optional(Whole(1, 2**31 - 1)))
    """How many lanes may run at once; at least one tile does."""
    max_bytes: int | None = option(None, Optional(Whole(1)))
    """How much memory they may take; at least what one tile takes."""
    allow_backend_change: bool = option(False, Flag)
    """Continue a checkpoint of another kind of device or another jax, whose last digits may differ; the result says so."""

    def __post_init__(self) -> None:
        """Checks and converts every field that has a spec."""
        for each in dataclasses.fields(self):
            spec = each.metadata.get("spec")
            if spec is not None:
                value = spec.check(each.name, getattr(self, each.name))
                object.__setattr__(self, each.name, value)


@dataclass(frozen=True, kw_only=True)
class SweepOptions(RunOptions):
    """The options of `jb.sweep`, by keyword."""

    engine: str = option("auto", Choice("auto", "episodes", "blocks"))
    """"blocks", "episodes", or "auto": blocks where the learner has a block form."""
    record: Recording = linear(200)  # noqa: RUF009  (a frozen value)
    """When regret is recorded (`jaxbandit.record`)."""
    chunk_size: int | None = option(None, Optional(Whole(1)))
    """Episodes between two looks of the host (progress, checkpoint, Ctrl-C); the block engine counts
    stages of a phase instead. None leaves it to the engine."""
    checkpoint: str | os.PathLike[str] | None = None
    """A directory. Finished lanes found there are not run again (also with more seeds); unfinished
    ones continue to the same bits. Use one directory for one sweep at a time."""
    checkpoint_seconds: float = option(10.0, Real(low=0))
    """The state is saved after a chunk, at most this often; 0 saves after every chunk."""
    resume: bool = option(True, Flag)
    """False discards what the directory holds."""
    progress: bool | str = option(True, Choice(True, False, "always"))
    """True shows a bar in terminals and notebooks, "always" elsewhere too, False never."""
    metrics: Mapping[str, Any] | None = None
    """Name -> function(state, world), evaluated at the recorded episodes (`jaxbandit.metrics`); each
    becomes a variable of the Dataset."""
    on_chunk: Callable[[Any], None] | None = None
    """Called after chunks, in the calling thread, with a `Progress` (``episodes``, ``total``, ``dataset()``); see `jb.hooks`."""
    shard: tuple[int, int] | None = None
    """(i, n) runs only the i-th of n parts of the seeds, for machines that do not see each other; `jb.merge` joins the results."""

    def __post_init__(self) -> None:
        """Checks what specs do not."""
        super().__post_init__()
        if self.checkpoint is not None:
            checks.typed("checkpoint", self.checkpoint, (str, os.PathLike), "a directory, or None")
        if self.on_chunk is not None and not callable(self.on_chunk):
            accepted = "a function of a Progress, or None"
            raise TypeError(f"on_chunk: {self.on_chunk!r}; accepted: {accepted}")
        if not isinstance(self.record, Recording):
            raise TypeError(f"record: {self.record!r}; accepted: jb.record.linear, log or explicit")


@dataclass(frozen=True, kw_only=True)
class Settings(SweepOptions):
    """The options of a sweep and what follows from them; ``devices`` and ``metrics`` are lists and dictionaries here."""

    num_episodes: int
    num_seeds: int
    points: np.ndarray
    """The recorded episodes."""
    workers: int
    """Tiles that run at once."""
    metrics: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """The options were checked before."""


POSITIONAL = 4
"""Arguments of `sweep` and `plan` before the options."""
NAMES = tuple(each.name for each in dataclasses.fields(SweepOptions))
RENAMED = {"allow_other_bits": "allow_backend_change"}
"""Old names of options, which work with a DeprecationWarning."""


def parse(function: str, given: Mapping[str, Any], others: Sequence[str] = ()) -> SweepOptions:
    """The options given to a function by keyword; an unknown one is an error with near matches, also among its ``others``.

    Example:
        >>> parse("sweep", {"seeed": 3})
        Traceback (most recent call last):
        ...
        TypeError: sweep: option 'seeed'; did you mean 'seed'? accepted: seed, devices, ...
    """
    known = {}
    for name, value in given.items():
        if name in RENAMED:
            warnings.warn(
                f"{function}: option {name!r} is now {RENAMED[name]!r}",
                DeprecationWarning,
                stacklevel=3,
            )
        elif name not in NAMES:
            accepted = [*NAMES, *others]
            hint = checks.did_you_mean(name, accepted, most=2 if others else 1)
            raise TypeError(f"{function}: option {name!r}; {hint}accepted: {', '.join(accepted)}")
        known[RENAMED.get(name, name)] = value
    return SweepOptions(**known)


def with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ``**options`` whose signature and docstring list them.

    ``function`` gets one `SweepOptions` as its keyword argument ``options``.
    """

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        if len(args) == POSITIONAL + 1 and "seed" not in given:  # as it was: warns for one version
            *args, given["seed"] = args  # type: ignore[assignment]
            text = f"{function.__name__}: options by position; give seed=... by its name"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
        own = {name: given.pop(name) for name in list(given) if name in taken}
        return function(*args, **own, options=parse(function.__name__, given, taken))

    signature = inspect.signature(function)
    taken = [name for name in signature.parameters if name != "options"]
    listed = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=f.type)
        for f in dataclasses.fields(SweepOptions)
    ]  # fmt: skip
    kept = [signature.parameters[name] for name in taken]
    call.__signature__ = signature.replace(parameters=[*kept, *listed])  # type: ignore[attr-defined]
    return call
