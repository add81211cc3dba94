"""What each command does."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from jaxbandit.checks import accept
from jaxbandit.cli.commands import FIGURES, Doctor, List, Merge, New, Plot, Report, Run, Show
from jaxbandit.cli.listing import show_list
from jaxbandit.experiment.contract import Options
from jaxbandit.waiting import waiting


def explain_experiment(given: Sequence[str]) -> None:
    """Before the help of ``run``, what the experiment that is named there is."""
    from jaxbandit.experiment import catalogue
    from jaxbandit.explaining.describing import describe

    for word in given[1:]:
        if word in catalogue():
            print(f"{describe(word, 'experiment')}\n")


def run(command: Run) -> None:
    """Runs an experiment by name or by file."""
    from jaxbandit.experiment import catalogue, load_experiment
    from jaxbandit.xla.compilations import start_jax

    names = [each.name for each in dataclasses.fields(Options)]
    options = Options(**{name: getattr(command, name) for name in names}).check()
    if command.experiment not in catalogue() and not command.experiment.endswith(".py"):
        load_experiment(command.experiment)  # a typo is answered before jax starts
    with waiting(f"starting jax for {command.experiment}", elsewhere=False):
        start_jax(command.compilation_cache)
        check_devices(command.devices)
        experiment = load_experiment(command.experiment)
        from jaxbandit.experiment.driver import run as run_experiment
    run_experiment(experiment, options)


def merge(command: Merge) -> None:
    """Puts shards together and says what comes next."""
    from jaxbandit.experiment.shards import merge_folder

    for label, file in merge_folder(command.folder, overwrite=command.overwrite).items():
        print(f"{label}: {file}")
    print("draw its figures and tables with the command of one shard, --resume in place of --shard")


def check_devices(asked: int | None) -> None:
    """ValueError if the machine has fewer devices (on CPUs: cores)."""
    if asked is None:
        return
    import jax

    from jaxbandit.xla.platforms import num_cores

    found = jax.local_devices()
    on_cpu = found[0].platform == "cpu"
    most = num_cores() if on_cpu else len(found)
    if asked > most:
        what = "cores" if on_cpu else f"{found[0].platform} devices"
        raise ValueError(f"devices: {asked}; accepted: 1 to {most}, the {what} of this machine")


def show(command: Show) -> None:
    """Prints an instance and one of its episodes."""
    from jaxbandit.cli.showing import show_instance

    show_instance(command)


def new(command: New) -> None:
    """Writes a template."""
    from jaxbandit.experiment.templates import write_template

    path = write_template(command.what, command.name, command.out, overwrite=command.overwrite)
    then = {
        "learner": f"check and try it: python {path}\nin the paper's figure: "
        f"jaxbandit run prophet --learners {path}",
        "instance": f"look at it: python {path}",
        "experiment": f"run it: jaxbandit run {path}",
    }[command.what]
    print(f"{path}\n{then}")


def plot(command: Plot) -> None:
    """Draws a file of results, or each file of a folder."""
    from jaxbandit.experiment.report import read_results
    from jaxbandit.plotting.files import files_of

    accept("what", command.what, FIGURES)
    with waiting(f"reading {command.results}", elsewhere=False):
        datasets = read_results(command.results)
    folder = command.results if command.results.is_dir() else command.results.parent
    targets = {label: _target(command, folder, label, len(datasets) > 1) for label in datasets}
    there = [
        file
        for target in targets.values()
        for file in files_of(target, command.formats)
        if file.exists() and not command.overwrite
    ]
    if there:
        listed = ", ".join(map(str, there))
        raise FileExistsError(f"out: {listed} exists; give another --out, or --overwrite")
    for label, dataset in datasets.items():
        with waiting(f"drawing {label}", elsewhere=False):
            drawn = _draw(command, dataset)
            files = drawn.save(targets[label], command.formats)
        print("\n".join(map(str, files)))
        if command.no_subtitle and drawn.caption:
            print(f"caption: {drawn.caption}")


def _target(command: Plot, folder: Path, label: str, several: bool) -> Path:
    if command.out is None:
        return folder / f"{label}_{command.what.replace('-', '_')}"
    if several:
        return command.out.with_name(f"{command.out.stem}_{label}{command.out.suffix}")
    return command.out


def _draw(command: Plot, dataset: Any) -> Any:
    """The figure, with those of the options that its function takes."""
    import inspect

    from jaxbandit import plotting
    from jaxbandit.stats import families

    function = getattr(plotting, f"plot_{command.what.replace('-', '_')}")
    taken = inspect.signature(function).parameters
    learners = _matching("learners", command.learners, dataset["learner"].values)
    places = dict.fromkeys([*families(dataset), *map(str, dataset["instance"].values)])
    instances = _matching("instances", command.instances, places)
    several = "panels" in taken or command.what == "regret"
    given = {
        "learners": learners,
        "learner": (learners or [str(dataset["learner"].values[0])])[0],
        "panels": instances,
        "instance": instances if several or instances is None else instances[0],
        "subtitle": False if command.no_subtitle else None,
        "inset": command.inset or None,
        **{
            each: getattr(command, each)
            for each in ("kind", "scale", "size", "columns", "title", "name", "parameter")
        },
    }
    extra = [each for each in given if given[each] is not None and each not in taken]
    refused = [each for each in extra if each not in ("learners", "learner", "panels", "instance")]
    if refused:
        raise ValueError(
            f"{refused[0]}: not for --what {command.what}; accepted: {', '.join(e for e in given if e in taken)}"
        )
    return function(
        dataset, **{each: v for each, v in given.items() if v is not None and each in taken}
    )


def _matching(option: str, wanted: Sequence[str] | None, known: Iterable[Any]) -> list[str] | None:
    """The names that are given or match a pattern, in the order of the options."""
    if wanted is None:
        return None
    names = [str(name) for name in known]
    found: dict[str, None] = {}
    for each in wanted:
        matches = [each] if each in names else fnmatch.filter(names, each)
        if not matches:
            accept(option, each, names)
        found |= dict.fromkeys(matches)
    return list(found)


def report(command: Report) -> None:
    """Writes the HTML page of some results, or the gallery."""
    if command.gallery is not None:
        from jaxbandit.explaining.gallery import make_gallery

        with waiting("drawing every instance, learner and experiment"):
            page = make_gallery(command.gallery, command.results, overwrite=command.overwrite)
        print(page)
        return
    if command.results is None:
        raise ValueError("results: not given; accepted: a folder or a .nc file, or --gallery FILE")
    from jaxbandit.experiment.report import make_report

    with waiting(f"reading and drawing {command.results}", elsewhere=False):
        page = make_report(command.results, command.out, overwrite=command.overwrite)
    print(page)


def doctor(command: Doctor) -> int:
    """Prints the report on this machine; 1 if something is wrong."""
    import json

    from jaxbandit.files import write_atomically
    from jaxbandit.xla.compilations import start_jax

    file = None if command.json in (None, "-") else Path(str(command.json))
    if file is not None and file.exists() and not command.overwrite:
        raise FileExistsError(f"json: {file} exists; accepted: a new file, or --overwrite")
    start_jax()
    from jaxbandit.inspect.doctor import examine, format_report

    found = examine(self_test=not command.quick)
    text = json.dumps(found, indent=1)
    if file is not None:
        write_atomically(file, f"{text}\n".encode())
    print(text if command.json == "-" else format_report(found))
    return int(not found["ok"])


ACTIONS: dict[type, Callable[[Any], int | None]] = {
    List: show_list,
    Run: run,
    Show: show,
    New: new,
    Plot: plot,
    Report: report,
    Merge: merge,
    Doctor: doctor,
}
