"""The command line: ``jaxbandit list | run | plot | report | bench``.

The subcommands are frozen dataclasses (their docstrings are the help). jax, xarray and matplotlib are
imported when a command needs them, so that ``--help`` answers at once. Exit codes: 0 done, 1 a file could
not be read or written, 2 a mistake in what was asked for, 130 interrupted.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

import jaxbandit
from jaxbandit.experiments.base import Format, Options
from jaxbandit.startup import start_jax

PROGRAM = "jaxbandit"
DESCRIPTION = (
    "Regret experiments in episodic MDPs under bandit feedback: many seeds and instances at once. "
    "Start with `jaxbandit run prophet`; `jaxbandit --version` prints the version."
)


@dataclass(frozen=True)
class List:
    """Experiments, learners and instances, with their parameters and defaults."""

    what: tyro.conf.Positional[Literal["all", "experiments", "learners", "instances"]] = "all"
    """Which of them."""


@dataclass(frozen=True)
class Run(Options):
    """Run an experiment: results, figures and tables go to a folder; it can be interrupted and resumed."""

    experiment: tyro.conf.Positional[str] = field(kw_only=True)
    """A name (see `jaxbandit list`) or a file of your own that ends in .py."""
    compilation_cache: Path | None = None
    """Folder in which compiled programs are kept, so that the next run starts faster; if not given, none."""


@dataclass(frozen=True)
class Plot:
    """Draw the results of a run."""

    results: tyro.conf.Positional[Path]
    """A .nc file, or a folder of them."""
    what: Literal["regret", "parameter", "active-sets", "policy"] = "regret"
    """Regret against episodes, final regret against a parameter, active actions, learned policy."""
    kind: Literal["t", "bootstrap", "simultaneous", "quantile"] = "t"
    """What the bands are; quantile shows where the runs lie."""
    scale: Literal["linear", "loglog"] = "linear"
    """Axes of the regret."""
    learners: tuple[str, ...] | None = None
    """Only these (for active sets and policy: the first)."""
    instance: str | None = None
    """One instance or panel; default all panels."""
    out: Path | None = None
    """File name; without .png, .svg or .pdf at its end, all three. Default: beside the results."""
    formats: tuple[Format, ...] | None = None
    """File types."""


@dataclass(frozen=True)
class Report:
    """Write one self-contained HTML page of results: figures, tables, configuration, versions."""

    results: tyro.conf.Positional[Path]
    """A folder written by `jaxbandit run`, or a .nc file."""
    out: Path | None = None
    """File name; default report.html in the folder."""
    overwrite: bool = False
    """Replace the page if it exists."""


@dataclass(frozen=True)
class Bench:
    """Measure speed, beside what people use today (`jaxbandit bench --help`)."""


COMMANDS = ("list", "run", "plot", "report", "bench")
Command = (
    Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Run, tyro.conf.subcommand("run")]
    | Annotated[Plot, tyro.conf.subcommand("plot")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
)


def main(arguments: Sequence[str] | None = None) -> int:  # noqa: PLR0911  (one per way to end)
    """The command ``jaxbandit``; returns the exit code.

    Example:
        >>> import jaxbandit.cli
        >>> jaxbandit.cli.main(["--version"])
        jaxbandit 0.1.0
        0
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given == ["--version"]:
        print(f"{PROGRAM} {jaxbandit.__version__}")
        return 0
    try:
        if given[:1] == ["bench"]:
            return bench(given[1:])
        command = parse(given or ["--help"])
        {List: show_list, Run: run, Plot: plot, Report: report}[type(command)](command)
    except SystemExit as stop:  # how tyro answers --help and mistakes
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:
        again = shlex.join([PROGRAM, *(a for a in given if a not in ("--resume", "--overwrite"))])
        hint = f"; to continue: {again} --resume" if given[:1] == ["run"] else ""
        return _fail(f"interrupted{hint}", 130)
    except BrokenPipeError:  # the reader of our output has gone, as in `jaxbandit list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, FileExistsError, FileNotFoundError) as error:
        return _fail(f"{error}{_place(error, given)}", 2)
    except OSError as error:
        return _fail(str(error), 1)
    except RuntimeError as error:
        if type(error).__name__ != "CheckpointError":  # a bug of ours, or of a user's file: show where
            raise
        return _fail(f"{error} (resume=False is --overwrite here)", 2)
    return 0


def parse(given: Sequence[str]) -> Any:
    """The command as one of the dataclasses; raises SystemExit after help or a mistake."""
    registry = tyro.constructors.ConstructorRegistry()
    registry.primitive_rule(_whole_numbers)
    if given[0] not in COMMANDS and not given[0].startswith("-"):
        near = difflib.get_close_matches(given[0], COMMANDS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(f"unknown command {given[0]!r}; {hint}accepted: {', '.join(COMMANDS)}")
    options = (
        tyro.conf.FlagCreatePairsOff,
        tyro.conf.PositionalMetavarFromFieldName,
        tyro.conf.DisallowNone,
    )
    return tyro.cli(
        Command, prog=PROGRAM, description=DESCRIPTION, args=given, config=options, registry=registry
    )


def _whole_numbers(kind: Any) -> Any:
    """Numbers of episodes may be written 2000000, 2_000_000 or 2e6."""
    if kind.type is not int:
        return None

    def read(words: list[str]) -> int:
        number = float(words[0]) if "e" in words[0].lower() else int(words[0])
        if number != int(number):
            raise ValueError(f"{words[0]} is not a whole number")
        return int(number)

    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1, metavar="INT", instance_from_str=read, is_instance=lambda x: isinstance(x, int),
        str_from_instance=lambda x: [str(x)],
    )  # fmt: skip


def show_list(command: List) -> None:
    """Prints names, parameters and defaults."""
    import inspect

    from jaxbandit.experiments import catalogue

    if command.what in ("all", "experiments"):
        print("experiments (jaxbandit run NAME)")
        for name, summary in catalogue().items():
            print(f"  {name:22} {summary}")
    registries = {"learners": "LEARNERS", "instances": "INSTANCES"}
    for what, registry in registries.items():
        if command.what not in ("all", what):
            continue
        print(f"{what} (jaxbandit.make_{what[:-1]}(NAME, ...))")
        known = getattr(jaxbandit, registry)
        for name in known.names():
            constructor = known.constructors[name]
            summary = (inspect.getdoc(constructor) or "").split("\n")[0]
            parameters = inspect.signature(constructor).parameters.values()
            shown = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters]
            print(f"  {name:22} {summary}\n  {'':22}   ({', '.join(shown)})")


def run(command: Run) -> None:
    """Runs an experiment by name or by file."""
    from jaxbandit.experiments import catalogue, load_experiment

    known = command.experiment in catalogue() or command.experiment.endswith(".py")
    if known:  # a typo is answered before jax starts
        start_jax(command.devices, command.compilation_cache)
    experiment = load_experiment(command.experiment)
    from jaxbandit.experiments.running import run as run_experiment

    names = [each.name for each in dataclasses.fields(Options)]
    run_experiment(experiment, Options(**{name: getattr(command, name) for name in names}))


def plot(command: Plot) -> None:
    """Draws a file of results, or each file of a folder."""
    from jaxbandit.report import read_results

    datasets = read_results(command.results)
    folder = command.results if command.results.is_dir() else command.results.parent
    for label, dataset in datasets.items():
        drawn = _draw(command, dataset)
        default = folder / f"{label}_{command.what.replace('-', '_')}"
        target = default if command.out is None else command.out
        if command.out is not None and len(datasets) > 1:
            target = command.out.with_name(f"{command.out.stem}_{label}{command.out.suffix}")
        print("\n".join(str(file) for file in drawn.save(target, command.formats)))


def _draw(command: Plot, dataset: Any) -> Any:
    from jaxbandit import heatmaps, plots

    learners = command.learners or None
    first = str(dataset["learner"].values[0]) if learners is None else learners[0]
    instance = command.instance
    if command.what == "regret":
        return plots.plot_regret(dataset, learners, instance, kind=command.kind, scale=command.scale)
    if command.what == "parameter":
        return plots.plot_parameter(dataset, learners=learners, instance=instance, kind=command.kind)
    if command.what == "active-sets":
        return heatmaps.plot_active_sets(dataset, first, instance)
    return heatmaps.plot_policy(dataset, learner=first, instance=instance)


def report(command: Report) -> None:
    """Writes the HTML page."""
    from jaxbandit.report import make_report

    print(make_report(command.results, command.out, overwrite=command.overwrite))


def bench(arguments: Sequence[str]) -> int:
    """Hands over to the benchmark, which has a command line of its own."""
    from jaxbandit.experiments import bench as benchmark

    return int(benchmark.main(list(arguments)) or 0)


def _place(error: BaseException, given: Sequence[str]) -> str:
    """Where in a user's own experiment file the error came from."""
    files = [str(Path(word).resolve()) for word in given if word.endswith(".py")]
    trace, line = error.__traceback__, ""
    while trace is not None:
        if str(Path(trace.tb_frame.f_code.co_filename).resolve()) in files:
            line = f" ({Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return line


def _fail(message: str, code: int) -> int:
    print(f"{PROGRAM}: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
