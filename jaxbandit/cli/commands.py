"""The subcommands as frozen dataclasses, whose docstrings are the help, and how they are read; every mistake is answered
in one line."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import tyro

from jaxbandit import plotting
from jaxbandit.experiment import Format, Options

FIGURES = [
    name.removeprefix("plot_").replace("_", "-")
    for name, figure in plotting.FIGURES.items()
    if figure.of in ("ds", "policy")
]
"""What `Plot` draws: the figures of results."""
PROGRAM = "jaxbandit"
DESCRIPTION = (
    "Regret experiments in episodic MDPs under bandit feedback: many seeds and instances at once. "
    "Start with `jaxbandit run prophet`; `jaxbandit list NAME` explains a name; "
    "`jaxbandit --version` prints the version."
)


@dataclass(frozen=True)
class List:
    """Experiments, learners and instances with their parameters and defaults, or all about one."""

    what: tyro.conf.Positional[str] = "all"
    """all, experiments, learners, instances, feedback, presets, or a name such as expref."""


@dataclass(frozen=True)
class Run(Options):
    """Run an experiment: results, figures and tables go to a folder; it can be interrupted and
    resumed. `jaxbandit run NAME --help` says what the experiment shows and writes."""

    seed: Annotated[int, tyro.conf.arg(name="root-seed")] = 0
    """The root key of all randomness; --seeds is the number of runs."""
    allow_backend_change: Annotated[bool, tyro.conf.arg(aliases=["--allow-other-bits"])] = False
    """Go on from a checkpoint of another kind of device or another jax, whose last digits may differ."""
    experiment: tyro.conf.Positional[str] = field(kw_only=True)
    """A name (see `jaxbandit list`) or a file of your own that ends in .py."""
    compilation_cache: str | None = None
    """Folder in which compiled programs are kept, so that the next run starts faster; "none" keeps
    none. If not given, $JAXBANDIT_COMPILATION_CACHE, or else one of yours, of at most 1 GB."""


@dataclass(frozen=True)
class Show:
    """Show an instance: sizes, optimal value, optimal policy, and one episode, stage by stage."""

    instance: tyro.conf.Positional[str]
    """A name (see `jaxbandit list instances`)."""
    parameters: tyro.conf.Positional[tuple[str, ...]] = ()
    """Its parameters as name=value, such as horizon=8 capacity=2 num_values=5; those not given
    are chosen small."""
    seed: int = 0
    """Of the episode, and of the instance if it is drawn."""
    policy: Literal["optimal", "uniform"] = "optimal"
    """Whose episode is shown: the optimal policy's, or one of random actions."""
    figure: Path | None = None
    """Draw the episode as a row of boxes to this file, such as episode.png."""
    overwrite: bool = False
    """Replace the file if it exists."""


@dataclass(frozen=True)
class New:
    """Write a commented file to start from: a learner, an instance or an experiment of your own."""

    what: tyro.conf.Positional[Literal["learner", "instance", "experiment"]]
    """learner, instance or experiment."""
    name: tyro.conf.Positional[str]
    """Its name, such as my-learner; the file is my_learner.py."""
    out: Path | None = None
    """Another file name."""
    overwrite: bool = False
    """Replace the file if it exists."""


@dataclass(frozen=True)
class Plot:
    """Draw the results of a run."""

    results: tyro.conf.Positional[Path]
    """A .nc file, or a folder of them."""
    what: Annotated[str, tyro.conf.arg(metavar=f"{{{','.join(FIGURES)}}}")] = "regret"
    """The figure: `jaxbandit.plot_NAME`; regret against episodes if not given."""
    learners: tuple[str, ...] | None = None
    """Only these; names or patterns such as "*(practical)"."""
    instances: Annotated[tuple[str, ...] | None, tyro.conf.arg(aliases=["--instance"])] = None
    """Only these instances or panels; names or patterns."""
    kind: Literal["t", "skewed", "bootstrap", "simultaneous", "quantile"] | None = None
    """What the bands are: t-intervals if not given; skewed covers more where runs are few or skewed, simultaneous
    covers whole curves, quantile shows where the runs lie."""
    scale: Literal["linear", "loglog", "symlog", "log"] | None = None
    """Axes: linear if not given; symlog is logarithmic above small values and shows 0."""
    inset: bool = False
    """Show curves close to 0 once more, enlarged."""
    name: str | None = None
    """The metric, for --what metric."""
    parameter: str | None = None
    """The parameter, for --what parameter."""
    size: tuple[float, float] | None = None
    """Width and height in inches, such as 3.25 2.2 for a column of a paper."""
    columns: int | None = None
    """Panels in a row."""
    title: str | None = None
    """Above the figure; "" for none."""
    no_subtitle: bool = False
    """Leave the grey text on bands and marks out of the figure; it is printed as a caption."""
    out: Path | None = None
    """File name; without a suffix, png, svg and pdf. Default: beside the results."""
    formats: Annotated[tuple[Format, ...] | None, tyro.conf.arg(aliases=["--format"])] = None
    """File types."""
    overwrite: bool = False
    """Replace files that exist."""


@dataclass(frozen=True)
class Merge:
    """Put the shards of a run (`run --shard i/n`) together, bit for bit as a single run."""

    folder: tyro.conf.Positional[Path]
    """The folder that the shards were written to."""
    overwrite: bool = False
    """Replace results that are there."""


@dataclass(frozen=True)
class Report:
    """Write one self-contained HTML page of results, or with --gallery of everything there is."""

    results: tyro.conf.Positional[Path | None] = None
    """A folder written by `jaxbandit run`, or a .nc file; with --gallery, a folder of such folders
    whose figures are shown."""
    out: Path | None = None
    """File name; default report.html in the folder."""
    overwrite: bool = False
    """Replace the page if it exists."""
    gallery: Path | None = None
    """Write this page instead: every family of instances with its picture, every learner with its
    parameters, every experiment with its figure."""


@dataclass(frozen=True)
class Doctor:
    """Look at this machine: devices, versions, flags, whether the wheels match; then a self-test of half a minute (bits,
    laws, a little speed). Ends with code 1 if anything is wrong."""

    json: str | None = None
    """Write the whole report as JSON, to paste into a bug report: to this file, or with "-" to the screen alone."""
    quick: bool = False
    """Leave the self-test out."""
    overwrite: bool = False
    """Replace the file if it exists."""


@dataclass(frozen=True)
class Bench:
    """Measure speed, beside what people use today (`jaxbandit bench --help`)."""


COMMANDS = {
    "list": List,
    "run": Run,
    "show": Show,
    "new": New,
    "plot": Plot,
    "report": Report,
    "merge": Merge,
    "doctor": Doctor,
    "bench": Bench,
}
Command = (
    Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Run, tyro.conf.subcommand("run")]
    | Annotated[Show, tyro.conf.subcommand("show")]
    | Annotated[New, tyro.conf.subcommand("new")]
    | Annotated[Plot, tyro.conf.subcommand("plot")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Merge, tyro.conf.subcommand("merge")]
    | Annotated[Doctor, tyro.conf.subcommand("doctor")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
)


class NotWholeError(Exception):
    """A word that is no whole number; not a ValueError, which tyro would put into a box."""


def parse(given: Sequence[str]) -> Any:
    """The command as one of the dataclasses; raises SystemExit after help, ValueError after a
    mistake.

    Example:
        >>> parse(["list", "expref"])
        List(what='expref')
        >>> parse(["run", "prophet", "--episodes", "1.5e0"])
        Traceback (most recent call last):
        ...
        ValueError: --episodes: 1.5e0; accepted: a whole number, such as 2000000, 2_000_000 or 2e6
        >>> parse(["run", "prophet", "--sedes", "3"])
        Traceback (most recent call last):
        ...
        ValueError: unknown option --sedes; did you mean '--seeds'? see jaxbandit run --help
    """
    _check_words(given)
    registry = tyro.constructors.ConstructorRegistry()
    registry.primitive_rule(_whole_numbers)
    options = (
        tyro.conf.FlagCreatePairsOff,
        tyro.conf.PositionalMetavarFromFieldName,
        tyro.conf.DisallowNone,
    )
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                Command,
                prog=PROGRAM,
                description=DESCRIPTION,
                args=list(given),
                config=options,
                registry=registry,
            )
    except NotWholeError as error:
        place = next((j for j, word in enumerate(given) if word == error.args[0]), 0)
        option = given[place - 1] if given[place - 1].startswith("--") else "number"
        accepted = "a whole number, such as 2000000, 2_000_000 or 2e6"
        raise ValueError(f"{option}: {error.args[0]}; accepted: {accepted}") from None
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        raise ValueError(_one_line(complaint.getvalue(), given[0])) from None


def _check_words(given: Sequence[str]) -> None:
    """The command and the names of its options are known."""
    first = given[0]
    if first in ("-h", "--help"):
        return
    if first.startswith("-"):
        raise ValueError(
            f"unknown option {first}; accepted: --help, --version, or a command: {', '.join(COMMANDS)}"
        )
    if first not in COMMANDS:
        from jaxbandit.checks import did_you_mean  # numpy with it, which --help need not wait for

        hint = did_you_mean(first, COMMANDS, most=1)
        raise ValueError(f"unknown command {first!r}; {hint}accepted: {', '.join(COMMANDS)}")
    known = _options(COMMANDS[first])
    for word in given[1:]:
        option = word.split("=")[0].replace("_", "-")
        if option == "--seed" and option not in known and "--seeds" in known:
            raise ValueError(
                "--seed: could mean two things; accepted: --seeds N for the number of runs, "
                "--root-seed N for the key of all randomness"
            )
        if option.startswith("--") and option not in (*known, "--help"):
            from jaxbandit.checks import did_you_mean

            near = did_you_mean(option[2:], [name[2:] for name in known], most=1, alike=0.6)
            hint = near.replace("mean '", "mean '--")
            raise ValueError(f"unknown option {option}; {hint}see {PROGRAM} {first} --help")


def _options(command: type) -> list[str]:
    """The options of a command as they are typed, other names included."""
    found = []
    hints = get_type_hints(command, include_extras=True)
    for each in dataclasses.fields(command):
        marks = getattr(hints[each.name], "__metadata__", ())
        renamed = [mark.name for mark in marks if getattr(mark, "name", None)]
        aliases = [alias for mark in marks for alias in getattr(mark, "aliases", None) or ()]
        found += [f"--{(renamed or [each.name])[0].replace('_', '-')}", *aliases]
    return found


def _one_line(box: str, command: str) -> str:
    """What tyro put into a box."""
    lines = [line.strip(" │╭╮╰╯─") for line in box.splitlines()[1:]]
    text = " ".join(" ".join(lines).split())
    choice = re.search(
        r"invalid choice '(.*?)' for argument '(?:--)?([\w-]+)'\. Expected one of \((.*?)\)", text
    )
    if choice:
        accepted = ", ".join(re.findall(r"'([^']*)'", choice[3]))
        return f"{choice[2]}: {choice[1]!r}; accepted: {accepted}"
    missing = re.match(r"Missing from .*?: (\S+)", text)
    if missing:
        return f"{missing[1]} is missing; see {PROGRAM} {command} --help"
    said = text.split(" Argument helptext")[0].split(" For full helptext")[0]
    return f"{said or 'not understood'}; see {PROGRAM} {command} --help"


def _whole_numbers(kind: Any) -> Any:
    """Numbers of episodes may be written 2000000, 2_000_000 or 2e6."""
    if kind.type is not int:
        return None

    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda words: whole_number(words[0]),
        is_instance=lambda x: isinstance(x, int),
        str_from_instance=lambda x: [str(x)],
    )


def whole_number(word: str) -> int:
    """The number that a word writes.

    Example:
        >>> whole_number("2e6"), whole_number("2_000")
        (2000000, 2000)
    """
    try:
        number = float(word) if "e" in word.lower() else int(word)
        whole = int(number)
    except (ValueError, OverflowError):
        raise NotWholeError(word) from None
    if number != whole:
        raise NotWholeError(word)
    return whole
