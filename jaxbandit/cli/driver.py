"""Runs an experiment: its sweeps with checkpoints, results on disk, figures, tables; in one go or in shards.

    OUT/<label>.nc             the results of each sweep
    OUT/checkpoints/<label>/   what ``resume`` continues, to the same bits; more seeds run only the new ones
    OUT/<figure>.png .svg .pdf
    OUT/<table>                tables as they were printed

What a folder holds is never replaced unless told (``overwrite``). With ``shard`` (``run --shard i/n``):

    OUT/shards/<label>.<i>-of-<n>.nc      one file per sweep and shard; machines write nothing else
    OUT/checkpoints/<label>.<i>-of-<n>/   their checkpoints, whose finished lanes ``run --resume`` takes over
    OUT/<label>.nc                        all of them together, as a single run would have left it (`merge_folder`)

A sweep that depends on earlier results can only run when those are merged, so it has shards of its own
in a second round: run the shards, merge, run the shards again (what is merged is read), merge.
"""

from __future__ import annotations

import dataclasses
import difflib
import glob
import inspect
import os
import re
import shlex
import shutil
import sys
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxbandit.checks import accept
from jaxbandit.experiment import (
    Arguments,
    Experiment,
    Options,
    final_table,
    load_learners,
    read_folder,
)
from jaxbandit.files import read_file, regular_files, write_atomically
from jaxbandit.results import load, save
from jaxbandit.status import spinner
from jaxbandit.sweeps.loop import plan as plan_of
from jaxbandit.sweeps.loop import sweep
from jaxbandit.sweeps.options import RunOptions
from jaxbandit.sweeps.shards import check_shard, merge
from jaxbandit.xla.programs import release_memory

if TYPE_CHECKING:
    from xarray import Dataset


WIDEST = 150
"""Columns of a table that is printed."""


class Outcome(NamedTuple):
    """What a run leaves: datasets by label (those of other experiments as "name/label"), tables by file name, and all
    files that were written."""

    datasets: dict[str, Dataset]
    tables: dict[str, str]
    files: list[Path]


def run(experiment: Experiment, options: Options | None = None) -> Outcome | None:
    """Runs the experiment, writes its results, figures and tables, and prints the tables.

    With ``dry_run`` it prints what would run, and returns None.

    Example:
        >>> from jaxbandit.experiment import load_experiment
        >>> from jaxbandit.experiment import Options
        >>> run(load_experiment("applications"), Options(dry_run=True, out="nowhere"))  # doctest: +SKIP
    """
    options = options or Options()
    folder = Path(options.out or Path("results", experiment.name))
    with spinner(f"making the instances and learners of {experiment.name}", elsewhere=False):
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
        file, asked = folder / f"{label}.nc", decided.get("num_seeds", 0)
        held = load(file).sizes["seed"] if file.exists() and not options.overwrite else 0
        if held > asked:
            accepted = "at least as many, or --overwrite"
            raise ValueError(f"seeds: {asked}, but {file} holds {held}; accepted: {accepted}")
        datasets[label] = _sweep(label, decided, folder, options, f"{number} of {len(plans)}")
        files.append(save(datasets[label], file, overwrite=True))
    with spinner("computing the tables"):
        if experiment.tables is None:
            tables = {"final_regret.txt": final_table(datasets)}
        else:
            tables = dict(experiment.tables(datasets, options))
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
    """Writes the figures of an experiment whose results are there, and returns the files.

    What a figure shows is written into its file, for `jaxbandit report`.
    """
    if experiment.figures is None:
        return []
    listed = [Path(name).stem for name in experiment.outputs]  # the first is the one to look at
    files = []
    with spinner("drawing the figures"):
        figures = experiment.figures(datasets, options)
        ordered = sorted(figures, key=lambda s: listed.index(s) if s in listed else len(listed))
        for number, stem in enumerate(ordered, 1):
            title = experiment.outputs.get(f"{stem}.png", stem).split(" (also")[0]
            about = {"Title": title, "Comment": f"figure {number} of {experiment.name}"}
            files += figures[stem].save(folder / stem, options.formats, about)
    return files


def check_folder(folder: Path, labels: list[str], options: Options) -> None:
    """An error if the folder holds results or an unfinished run and the user did not say what to do
    then."""
    if folder.exists() and not folder.is_dir():
        accepted = "a folder, which is made if it does not exist"
        raise ValueError(f"out: {folder} is a file; accepted: {accepted}")
    if options.resume:
        check_resumable(folder, labels)
    if options.resume or options.overwrite:
        return
    finished, begun = held_by(folder, labels)
    if finished:
        raise ValueError(
            f"out: {folder} holds results already ({', '.join(finished)}); give another --out, --resume to "
            "go on from them (more seeds, figures again) or --overwrite to replace them"
        )
    if begun:
        raise ValueError(
            f"out: {folder} holds an unfinished run ({', '.join(begun)}); give --resume to continue it, "
            "--overwrite to start again, or another --out"
        )


def held_by(folder: Path, labels: list[str]) -> tuple[list[str], list[str]]:
    """The results and the checkpoints of sweeps in a folder."""
    finished = [f"{label}.nc" for label in labels if (folder / f"{label}.nc").exists()]
    return finished, [label for label in labels if (folder / "checkpoints" / label).is_dir()]


def check_resumable(folder: Path, labels: list[str]) -> None:
    """With ``resume``, a folder that holds nothing is refused if another with nearly its name
    holds a run; otherwise it is said that the run starts anew."""
    if any(held_by(folder, labels)):
        return
    beside = [*folder.parent.glob("*"), *folder.parent.parent.glob("*/*")]
    known = {"/".join(each.parts[-2:]): each for each in beside if any(held_by(each, labels))}
    name, numbers = "/".join(folder.parts[-2:]), r"[\d_.-]"
    # run-1 beside run-2 is no misspelling: jobs of an array are numbered
    others = [each for each in known if re.sub(numbers, "", each) != re.sub(numbers, "", name)]
    for near in difflib.get_close_matches(name, others, n=1):
        raise ValueError(
            f"out: {folder} holds nothing to resume; did you mean {str(known[near])!r}? "
            "accepted: a folder that holds a run, or no --resume"
        )
    print(f"out: {folder} holds nothing to resume, so the run starts anew", file=sys.stderr)


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


def _arguments(arguments: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """The arguments of the experiment, with what the user asked for where it does not decide
    itself."""
    common = {each.name: getattr(options, each.name) for each in dataclasses.fields(RunOptions)}
    common["progress"] = {"auto": True, "always": "always", "never": False}[options.progress]
    return {**common, **arguments}


def _run_shard(plans: Mapping[str, Arguments], folder: Path, options: Options) -> None:
    """Runs a part of the seeds of every sweep and writes it where `merge` looks for it."""
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


def _print_plans(
    experiment: Experiment, plans: Mapping[str, Arguments], folder: Path, options: Options
) -> None:
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
    found, name = experiment.sweeps(options), experiment.name
    if not isinstance(found, Mapping):
        accepted = "a dict, label -> arguments"
        raise ValueError(f"sweeps of {name}: {type(found).__name__}; accepted: {accepted}")
    for option in ("instance", "learners"):
        given = getattr(options, option)
        if given is not None and not getattr(experiment, f"open_to_{option}"):
            raise ValueError(f"{option}: {given}; accepted: no {option} of your own in {name}")
    extra = {} if options.learners is None else load_learners(options.learners)
    plans: dict[str, Arguments] = {}
    for label, arguments in found.items():
        plans[str(label)] = arguments
        if callable(arguments):
            if extra:
                raise ValueError(f"learners: sweep {label!r} depends on results; accepted: none")
            continue
        check_arguments(str(label), arguments)
        for each in [name for name in extra if name in arguments["learners"]]:
            raise ValueError(
                f"learners: {each!r} is in sweep {str(label)!r} already; give another name"
            )
        plans[str(label)] = {**arguments, "learners": {**arguments["learners"], **extra}}
    return plans


def decide(label: str, arguments: Arguments, datasets: dict[str, Any]) -> Mapping[str, Any]:
    """The arguments of a sweep, computed from earlier results if they depend on them."""
    if callable(arguments):
        arguments = arguments(datasets)
        check_arguments(label, arguments)
    return arguments


def check_arguments(label: str, given: Any) -> None:
    """ValueError if `jaxbandit.sweep` cannot take these arguments."""
    head = f"sweep {label!r}"
    if not isinstance(given, Mapping):
        accepted = "a dict of arguments of jaxbandit.sweep"
        raise ValueError(f"{head}: {type(given).__name__}; accepted: {accepted}")
    known = inspect.signature(sweep).parameters
    for name in given:
        accept(head, name, known)
    missing = [n for n, p in known.items() if p.default is p.empty and n not in given]
    if missing:
        accepted = "at least learners, instances and num_episodes"
        raise ValueError(f"{head}: no {', '.join(map(repr, missing))}; accepted: {accepted}")
    for name in ("learners", "instances"):
        if not isinstance(given[name], Mapping):
            kind = type(given[name]).__name__
            raise ValueError(f"{head}: {name} is {kind}; accepted: a dict by name")


def parse_shard(text: str) -> tuple[int, int]:
    """ "3/20" as (3, 20).

    Example:
        >>> parse_shard("3/20")
        (3, 20)
        >>> parse_shard("20/3")
        Traceback (most recent call last):
        ...
        ValueError: shard: (20, 3); accepted: (i, n), whole numbers with 1 <= i <= n
    """
    found = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", str(text))
    if found is None:
        raise ValueError(f"shard: {text!r}; accepted: i/n, such as 3/20")
    return check_shard((int(found[1]), int(found[2])))


def shard_path(folder: str | os.PathLike[str], label: str, shard: tuple[int, int]) -> Path:
    """Where the results of a sweep's shard go.

    Example:
        >>> shard_path("results/prophet", "I1", (3, 20)).as_posix()
        'results/prophet/shards/I1.03-of-20.nc'
    """
    index, count = check_shard(shard)
    return Path(folder) / "shards" / f"{label}.{index:0{len(str(count))}}-of-{count}.nc"


def find_shards(folder: str | os.PathLike[str]) -> dict[str, list[Path]]:
    """The shards in a folder by the label of their sweep, in order."""
    found: dict[str, list[Path]] = {}
    for file in regular_files(Path(folder) / "shards", "*.nc"):
        if named := re.fullmatch(r"(.+)\.\d+-of-\d+\.nc", file.name):
            found.setdefault(named[1], []).append(file)
    return found


def gather_checkpoints(folder: str | os.PathLike[str], label: str) -> None:
    """Copies what the shards of a sweep have finished into the checkpoint of the whole, which then has only the rest to run.

    Files are named after their lanes, so that those of different shards never meet.
    """
    checkpoints = Path(folder) / "checkpoints"
    for file in regular_files(checkpoints, f"{glob.escape(label)}.*-of-*/done-*.jbk"):
        target = checkpoints / label / file.name
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            write_atomically(target, read_file(file))


def merge_folder(folder: str | os.PathLike[str], *, overwrite: bool = False) -> dict[str, Path]:
    """Merges the shards of every sweep in a folder and writes ``DIR/<label>.nc``; the files by label.

    Nothing is written unless every sweep has all its shards.

    Example:
        >>> merge_folder("nowhere")
        Traceback (most recent call last):
        ...
        ValueError: folder: nowhere holds no shards; accepted: a folder in which run --shard i/n wrote some
    """
    folder = Path(folder)
    shards = find_shards(folder)
    if not shards:
        accepted = "a folder in which run --shard i/n wrote some"
        raise ValueError(f"folder: {folder} holds no shards; accepted: {accepted}")
    targets = {label: folder / f"{label}.nc" for label in shards}
    there = ", ".join(path.name for path in targets.values() if path.exists())
    if there and not overwrite:
        raise FileExistsError(f"folder: {folder} holds {there} already; --overwrite replaces them")
    whole = {}
    for label, files in shards.items():
        try:
            whole[label] = merge([load(file) for file in files])
        except ValueError as error:
            raise ValueError(f"{label}: {error}") from error
    return {label: save(whole[label], path, overwrite=True) for label, path in targets.items()}
