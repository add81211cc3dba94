"""What an experiment is going to run, checked before anything runs."""

from __future__ import annotations

import difflib
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jaxbandit.checks import did_you_mean
from jaxbandit.experiment.catalogue import load_learners
from jaxbandit.experiment.contract import Arguments, Experiment, Options


def plan(experiment: Experiment, options: Options) -> dict[str, Arguments]:
    """The sweeps of an experiment by label, with the learners that the user adds, checked.

    Example:
        >>> bad = Experiment("mine", "", lambda options: {"regret": {"learners": {}, "episodes": 5}})
        >>> plan(bad, Options())
        Traceback (most recent call last):
        ...
        ValueError: sweep 'regret': 'episodes'; did you mean 'num_episodes'? accepted: ...
    """
    plans = experiment.sweeps(options)
    if not isinstance(plans, Mapping):
        raise ValueError(
            f"sweeps of {experiment.name}: {type(plans).__name__}; accepted: a dict, label -> arguments"
        )
    extra: dict[str, Any] = {}
    if options.instance is not None and not experiment.open_to_instance:
        raise ValueError(
            f"instance: {options.instance}; accepted: no instance of your own in {experiment.name}"
        )
    if options.learners is not None:
        if not experiment.open_to_learners:
            raise ValueError(
                f"learners: {options.learners}; accepted: no learners of your own in {experiment.name}"
            )
        extra = load_learners(options.learners)
    return {str(label): _joined(str(label), given, extra) for label, given in plans.items()}


def _joined(label: str, given: Any, extra: Mapping[str, Any]) -> Arguments:
    if callable(given):
        if extra:
            raise ValueError(f"learners: sweep {label!r} depends on results; accepted: none")
        return given
    check_arguments(label, given)
    taken = [name for name in extra if name in given["learners"]]
    if taken:
        raise ValueError(f"learners: {taken[0]!r} is in sweep {label!r} already; give another name")
    return {**given, "learners": {**given["learners"], **extra}}


def decide(label: str, arguments: Arguments, datasets: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of a sweep, computed from earlier results if they depend on them."""
    if not callable(arguments):
        return arguments
    decided = arguments(datasets)
    check_arguments(label, decided)
    return decided


def check_arguments(label: str, given: Any) -> None:
    """ValueError if `jaxbandit.sweep` cannot take these arguments."""
    from jaxbandit.sweeps import sweep

    if not isinstance(given, Mapping):
        raise ValueError(
            f"sweep {label!r}: {type(given).__name__}; accepted: a dict of arguments of jaxbandit.sweep"
        )
    known = inspect.signature(sweep).parameters
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known, most=1)
            raise ValueError(f"sweep {label!r}: {name!r}; {hint}accepted: {', '.join(known)}")
    missing = [n for n, p in known.items() if p.default is p.empty and n not in given]
    if missing:
        raise ValueError(
            f"sweep {label!r}: no {', '.join(map(repr, missing))}; accepted: at least learners, "
            "instances and num_episodes"
        )
    for name in ("learners", "instances"):
        if not isinstance(given[name], Mapping):
            raise ValueError(
                f"sweep {label!r}: {name} is {type(given[name]).__name__}; accepted: a dict by name"
            )


def check_resumable(folder: Path, labels: list[str]) -> None:
    """With ``resume``, a folder that holds nothing is refused if another with nearly its name
    holds a run; otherwise it is said that the run starts anew."""
    if holds_run(folder, labels):
        return
    known = {_ending(found): found for found in _runs_near(folder, labels)}
    # run-1 beside run-2 is no misspelling: jobs of an array are numbered
    others = [name for name in known if _letters(name) != _letters(_ending(folder))]
    near = difflib.get_close_matches(_ending(folder), others, n=1)
    if near:
        raise ValueError(
            f"out: {folder} holds nothing to resume; did you mean {str(known[near[0]])!r}? "
            "accepted: a folder that holds a run, or no --resume"
        )
    print(f"out: {folder} holds nothing to resume, so the run starts anew", file=sys.stderr)


def _ending(folder: Path) -> str:
    """The last two names of a path."""
    return "/".join(folder.parts[-2:])


def _letters(name: str) -> str:
    return re.sub(r"[\d_.-]", "", name)


def holds_run(folder: Path, labels: list[str]) -> bool:
    """Whether a folder holds results or a checkpoint of one of the sweeps."""
    return any(
        (folder / f"{label}.nc").exists() or (folder / "checkpoints" / label).is_dir()
        for label in labels
    )


def _runs_near(folder: Path, labels: list[str]) -> Iterator[Path]:
    """Folders with such a run, beside the given one or beside its parent."""
    for above, pattern in ((folder.parent, "*"), (folder.parent.parent, "*/*")):
        if above.is_dir():
            yield from (found for found in above.glob(pattern) if holds_run(found, labels))
