"""Runs an experiment: its sweeps with checkpoints, results on disk, figures, tables.

    OUT/<label>.nc             the results of each sweep
    OUT/checkpoints/<label>/   what ``resume`` continues, to the same bits; more seeds run only the
    new ones OUT/<figure>.png .svg .pdf
    OUT/<table>                tables as they were printed

What a folder holds is never replaced unless told (``overwrite``).
"""

from __future__ import annotations

import difflib
import inspect
import re
import shlex
import shutil
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxbandit.checks import did_you_mean
from jaxbandit.cli.shards import gather_checkpoints, parse_shard, shard_path
from jaxbandit.experiment import (
    Arguments,
    Experiment,
    Options,
    final_table,
    load_learners,
    read_folder,
)
from jaxbandit.files import write_atomically
from jaxbandit.status import spinner
from jaxbandit.sweeps.options import RunOptions

if TYPE_CHECKING:
    from xarray import Dataset


WIDEST = 150
"""Columns of a table that is printed."""


class Outcome(NamedTuple):
    """What a run of an experiment leaves."""

    datasets: dict[str, Dataset]
    """By label; those that were read of other experiments as "name/label"."""
    tables: dict[str, str]
    """By file name."""
    files: list[Path]
    """Everything that was written."""


def run(experiment: Experiment, options: Options | None = None) -> Outcome | None:
    """Runs the experiment, writes its results, figures and tables, and prints the tables.

    With ``dry_run`` it prints what would run, and returns None.

    Example:
        >>> from jaxbandit.experiment import load_experiment
        >>> from jaxbandit.experiment import Options
        >>> run(load_experiment("applications"), Options(dry_run=True, out="nowhere"))  # doctest: +SKIP
    """
    from jaxbandit.results import save

    options = (options or Options()).check()
    folder = Path(options.out) if options.out is not None else Path("results") / experiment.name
    plans = plan(experiment, options)
    if options.dry_run:
        _print_plans(experiment, plans, folder, options)
        return None
    if options.shard is not None:
        _run_shard(plans, folder, options)
        return None
    if options.resume:
        for label in plans:
            gather_checkpoints(folder, label)
    check_folder(folder, list(plans), options)
    datasets = read_needed(experiment, options)
    print(f"{experiment.name}: {experiment.summary}", file=sys.stderr)
    files = []
    for number, (label, arguments) in enumerate(plans.items(), 1):
        decided = decide(label, arguments, datasets)
        file = folder / f"{label}.nc"
        _check_seeds(file, decided, options)
        datasets[label] = _sweep(label, decided, folder, options, f"{number} of {len(plans)}")
        files.append(save(datasets[label], file, overwrite=True))
    with spinner("computing the tables"):
        tables = dict(_tables(experiment, datasets, options))
    for name, text in tables.items():
        print(f"\n{for_terminal(text, folder / name)}")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / name, f"{text}\n".encode())
        files.append(folder / name)
    expected = experiment.expect(datasets, options) if experiment.expect is not None else ""
    if expected:
        print(f"\n{textwrap.fill(expected, 100)}")
    figures = draw(experiment, datasets, folder, options)
    files += figures
    print(f"\nwritten to {folder}/: {', '.join(str(file.relative_to(folder)) for file in files)}")
    if figures:
        print(f"the figure: {figures[0]}")
    return Outcome(datasets, tables, files)


def for_terminal(text: str, file: Path) -> str:
    """The text with notes wrapped, tables of two columns as lists where the terminal is narrower
    than they are, and wider ones left to the file.

    Example:
        >>> text = "| claim | verdict |\\n|---|---|\\n| it is so | " + "yes " * 60 + "|"
        >>> print(for_terminal(text, Path("claims.md"))[:24])
        it is so
            yes yes yes
    """
    width = shutil.get_terminal_size((WIDEST, 50)).columns
    parts = []
    for block in text.split("\n\n"):
        lines = block.split("\n")
        needed = max(map(len, lines))
        if len(lines) == 1:
            parts.append(textwrap.fill(block, min(100, width)))
        elif needed > width and all(line.count("|") == 3 for line in lines):
            rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
            parts.append("\n".join(f"{first}\n    {second}" for first, second in rows))
        elif needed > WIDEST:
            parts.append(f"(a wide table: see {file})")
        else:
            parts.append(block)
    return "\n\n".join(parts)


def draw(
    experiment: Experiment, datasets: dict[str, Dataset], folder: Path, options: Options
) -> list[Path]:
    """Writes the figures of an experiment whose results are there, and returns the files."""
    if experiment.figures is None:
        return []
    with spinner("drawing the figures"):
        figures = experiment.figures(datasets, options)
        ordered = sorted(figures, key=lambda stem: _rank(experiment, stem))
        saved = [
            figures[stem].save(folder / stem, options.formats, _about(experiment, stem, number))
            for number, stem in enumerate(ordered, 1)
        ]
    return [file for files in saved for file in files]


def _rank(experiment: Experiment, stem: str) -> int:
    """The place of a figure among the outputs: the first is the one to look at."""
    listed = [Path(name).stem for name in experiment.outputs]
    return listed.index(stem) if stem in listed else len(listed)


def _about(experiment: Experiment, stem: str, number: int) -> dict[str, str]:
    """What the file says about itself, for `jaxbandit report`."""
    meaning = experiment.outputs.get(f"{stem}.png", stem)
    return {"Title": meaning.split(" (also")[0], "Comment": f"figure {number} of {experiment.name}"}


def check_folder(folder: Path, labels: list[str], options: Options) -> None:
    """An error if the folder holds results or an unfinished run and the user did not say what to do
    then."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(
            f"out: {folder} is a file; accepted: a folder, which is made if it does not exist"
        )
    if options.resume:
        check_resumable(folder, labels)
    if options.resume or options.overwrite:
        return
    finished = [f"{label}.nc" for label in labels if (folder / f"{label}.nc").exists()]
    if finished:
        raise ValueError(
            f"out: {folder} holds results already ({', '.join(finished)}); give another --out, --resume to "
            "go on from them (more seeds, figures again) or --overwrite to replace them"
        )
    begun = [label for label in labels if (folder / "checkpoints" / label).is_dir()]
    if begun:
        raise ValueError(
            f"out: {folder} holds an unfinished run ({', '.join(begun)}); give --resume to continue it, "
            "--overwrite to start again, or another --out"
        )


def read_needed(experiment: Experiment, options: Options) -> dict[str, Dataset]:
    """The results of other experiments that this one reads, as "name/label"."""
    datasets: dict[str, Dataset] = {}
    for name in experiment.needs:
        folder = Path(options.results) / name
        found = read_folder(folder)
        if not found:
            raise ValueError(
                f"results: {folder} holds no results, which {experiment.name} reads; "
                f"run first: jaxbandit run {name} --out {shlex.quote(str(folder))}"
            )
        datasets |= {f"{name}/{label}": dataset for label, dataset in found.items()}
    return datasets


def _tables(
    experiment: Experiment, datasets: dict[str, Dataset], options: Options
) -> Mapping[str, str]:
    if experiment.tables is not None:
        return experiment.tables(datasets, options)
    return {"final_regret.txt": final_table(datasets)}


def _arguments(arguments: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """The arguments of the experiment, with what the user asked for where it does not decide
    itself."""
    shared = {each.name: getattr(options, each.name) for each in fields(RunOptions)}
    progress = {"auto": True, "always": "always", "never": False}[options.progress]
    return {**shared, "progress": progress, **arguments}


def _run_shard(plans: Mapping[str, Arguments], folder: Path, options: Options) -> None:
    """Runs a part of the seeds of every sweep and writes it where `merge` looks for it."""
    from jaxbandit.results import load, save

    shard = parse_shard(options.shard or "")
    datasets: dict[str, Any] = {}
    for number, (label, arguments) in enumerate(plans.items(), 1):
        merged, file = folder / f"{label}.nc", shard_path(folder, label, shard)
        if merged.exists():
            datasets[label] = load(merged)
            continue
        if callable(arguments) and len(datasets) < number - 1:
            print(f"{label} depends on the sweeps before it: merge them, then run the shards again")
            break
        if file.exists() and not options.overwrite:
            print(f"{label}: {file} is there already; --overwrite runs it again")
            continue
        decided = dict(decide(label, arguments, datasets)) | {"shard": shard}
        mark = f"{label}.{shard[0]}-of-{shard[1]}"
        place = f"{number} of {len(plans)}, shard {shard[0]} of {shard[1]}"
        print(save(_sweep(mark, decided, folder, options, place), file, overwrite=True))


def _sweep(
    label: str, arguments: Mapping[str, Any], folder: Path, options: Options, place: str
) -> Dataset:
    from jaxbandit.sweeps import sweep
    from jaxbandit.xla.programs import release_memory

    what = f"sweep {place}: {in_words(label, arguments)}"
    print(textwrap.fill(what, 100, subsequent_indent="  "), file=sys.stderr)
    start = time.perf_counter()
    dataset = sweep(
        **_arguments(arguments, options),
        checkpoint=folder / "checkpoints" / label,
        resume=not options.overwrite,
    )
    release_memory()
    print(f"sweep {place}: {label} took {time.perf_counter() - start:.1f} s", file=sys.stderr)
    return dataset


def in_words(label: str, arguments: Mapping[str, Any]) -> str:
    """What a sweep runs: learners, panels, episodes.

    Example:
        >>> in_words("both", {"learners": {"ExpRef": 0}, "instances": {"I1": 0, "I2": 0}, "num_episodes": 1000})
        'both: 1 learner (ExpRef) on 2 panels (I1, I2), 1,000 episodes a run'
    """
    parts = []
    for what, names in (("learner", arguments["learners"]), ("panel", arguments["instances"])):
        listed = ", ".join(names) if len(names) <= 8 else f"{next(iter(names))}, ..."
        parts.append(f"{len(names)} {what}{'s' if len(names) != 1 else ''} ({listed})")
    return f"{label}: {' on '.join(parts)}, {arguments['num_episodes']:,} episodes a run"


def _check_seeds(file: Path, arguments: Mapping[str, Any], options: Options) -> None:
    """Results are replaced only by the same or more of them (``resume``), or because the user said
    so."""
    from jaxbandit.results import load

    if file.exists() and not options.overwrite:
        held, asked = load(file).sizes["seed"], arguments.get("num_seeds", 0)
        if held > asked:
            raise ValueError(
                f"seeds: {asked}, but {file} holds {held}; accepted: at least as many, or --overwrite"
            )


def _print_plans(
    experiment: Experiment, plans: Mapping[str, Arguments], folder: Path, options: Options
) -> None:
    from jaxbandit.sweeps import plan as plan_of

    print(f"{experiment.name}: {experiment.summary}")
    for label, arguments in plans.items():
        print(f"\n{label}")
        later = "depends on the results before it"
        print(later if callable(arguments) else plan_of(**_arguments(arguments, options)))
    for name in experiment.needs:
        print(f"\nreads {Path(options.results) / name}")
    print(f"\nwould write to {folder}/; nothing was run")


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
