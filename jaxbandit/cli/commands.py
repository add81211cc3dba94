"""The subcommands as frozen dataclasses; their docstrings are the help."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from jaxbandit import plotting
from jaxbandit.experiment.contract import Format, Options

FIGURES = [
    name.removeprefix("plot_").replace("_", "-")
    for name, figure in plotting.FIGURES.items()
    if figure.of in ("ds", "policy")
]
"""What `Plot` draws: the figures of results."""
ALIASES = {"--instance": "--instances", "--format": "--formats"}


@dataclass(frozen=True)
class List:
    """Experiments, learners and instances with their parameters and defaults, or all about one."""

    what: tyro.conf.Positional[str] = "all"
    """all, experiments, learners, instances, feedback, presets, or a name such as expref."""


@dataclass(frozen=True)
class Run(Options):
    """Run an experiment: results, figures and tables go to a folder; it can be interrupted and
    resumed. `jaxbandit run NAME --help` says what the experiment shows and writes."""

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
