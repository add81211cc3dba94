"""The subcommands: frozen dataclasses whose docstrings are the help, whose fields are the options, and whose ``do``
does the work. An option is a field here and its use below it.

jax, xarray and matplotlib are imported when a command needs them, so that ``--help`` answers at once.
"""

from __future__ import annotations

import fnmatch
import inspect
import itertools
import json
import keyword
import os
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from tyro.conf import Positional, arg

from jaxbandit import checks, description, plotting
from jaxbandit.experiment import Format, Options, catalogue, load_experiment, read_parameters
from jaxbandit.files import write_atomically
from jaxbandit.specs import Flag, Whole
from jaxbandit.status import spinner
from jaxbandit.sweeps.options import option
from jaxbandit.tabular import Table

FIGURES = [
    name.removeprefix("plot_").replace("_", "-")
    for name, figure in plotting.FIGURES.items()
    if figure.of in ("ds", "policy")
]
"""What `Plot` draws: the figures of results."""
GROUPS = {"experiments": "experiment", "learners": "learner", "instances": "instance", "feedback": "feedback", "presets": "preset"}  # fmt: skip
"""Of names, as `List` takes them."""
COLUMN = 22
"""Width of the column of names."""
TEMPLATES = {
    "learner": "check and try it: python {0}\nin the paper's figure: jaxbandit run prophet --learners {0}",
    "instance": "look at it: python {0}",
    "experiment": "run it: jaxbandit run {0}",
}
"""What `New` writes, the files of `jaxbandit.cli.templates`, and what to do with it."""


@dataclass(frozen=True)
class List:
    """Experiments, learners and instances with their parameters and defaults, or all about one."""

    what: Positional[str] = "all"
    """all, experiments, learners, instances, feedback, presets, or a name such as expref."""

    def do(self) -> None:
        """Prints names, parameters and defaults, or the description of one name."""
        if self.what not in ("all", *GROUPS):
            with spinner(f"looking up {self.what}", elsewhere=False):  # jax takes its time to start
                found = str(description.describe(self.what))
            print(found)
            return
        for group in GROUPS if self.what == "all" else (self.what,):
            for head, rows in itertools.groupby(_listed(GROUPS[group]), lambda row: row[0]):
                print(head)
                for _, name, text, details in rows:
                    _print_entry(name, text)
                    for detail in details:
                        _print_entry("", f"  {detail}")
        if self.what == "all":
            print("everything about one of them: jaxbandit list NAME")


def _listed(kind: str) -> Iterator[tuple[str, str, str, Sequence[str]]]:
    """The names of a kind: the heading above, the name, what it is, and details; learners by what they see."""
    if kind == "experiment":  # without starting jax
        for name, summary in catalogue().items():
            yield "experiments (jaxbandit run NAME)", name, summary, ()
        return
    names = description.names(kind)
    seen = {name: description.feedback_of(name) if kind == "learner" else None for name in names}
    order = [None, *description.names("feedback"), ""]
    for name in sorted(names, key=lambda name: order.index(seen[name])):
        (entry,) = description.describe(name, kind).entries
        head, details = "feedback (what a learner sees)", []
        if kind == "preset":
            head = "presets (of learners)"
            details = [f"{p.name}: {p.meaning}" for p in entry.parameters if p.meaning != "-"]
        elif kind != "feedback":
            texts = {None: "", "": " that are given a policy"}
            sees = texts.get(seen[name], f" that see {seen[name]} feedback")
            head = f"{kind}s{sees} (jaxbandit.make_{kind}(NAME, ...))"
            taken = [f"{p.name}={p.default}" if p.default else p.name for p in entry.parameters]
            details = [f"({', '.join(taken)})"] if taken else []
        yield head, name, entry.summary, details


def _print_entry(name: str, text: str) -> None:
    """A name and what it is, in as many lines as the terminal makes of it."""
    width = max(60, shutil.get_terminal_size((100, 50)).columns)
    lead = f"  {name:{COLUMN}} "
    if len(name) > COLUMN:
        print(f"  {name}")
        lead = " " * (COLUMN + 3)
    print(textwrap.fill(f"{lead}{text}", width, subsequent_indent=" " * (COLUMN + 5)))


@dataclass(frozen=True, kw_only=True)
class Run(Options):
    """Run an experiment: results, figures and tables go to a folder; it can be interrupted and resumed. `jaxbandit run NAME --help` says what the experiment shows and writes."""

    seed: Annotated[int, arg(name="root-seed")] = option(0, Whole(0, checks.LARGEST_SEED))
    """The root key of all randomness; --seeds is the number of runs."""
    allow_backend_change: Annotated[bool, arg(aliases=["--allow-other-bits"])] = option(False, Flag)
    """Continue a checkpoint of another kind of device or another jax, whose last digits may differ; the result says so."""
    experiment: Positional[str]
    """A name (see `jaxbandit list`) or a file of your own that ends in .py."""
    compilation_cache: str | None = None
    """Folder in which compiled programs are kept, so that the next run starts faster; "none" keeps none. If not given, $JAXBANDIT_COMPILATION_CACHE, or else one of yours, of at most 1 GB."""

    def __post_init__(self) -> None:
        """Checks nothing yet: tyro would put the error into a box."""

    def do(self) -> None:
        """Runs an experiment by name or by file."""
        super().__post_init__()
        if self.experiment not in catalogue() and not self.experiment.endswith(".py"):
            load_experiment(self.experiment)  # a typo is answered before jax starts
        with spinner(f"starting jax for {self.experiment}", elsewhere=False):
            from jaxbandit.xla.compilations import start_jax

            start_jax(self.compilation_cache)
            from jaxbandit.cli.driver import run
            from jaxbandit.sweeps.lanes import choose_devices

            choose_devices(self.devices)  # too many are refused before anything is said
            experiment = load_experiment(self.experiment)
        run(experiment, self)


@dataclass(frozen=True)
class Show:
    """Show an instance: sizes, optimal value, optimal policy, and one episode, stage by stage."""

    instance: Positional[str]
    """A name (see `jaxbandit list instances`)."""
    parameters: Positional[tuple[str, ...]] = ()
    """Its parameters as name=value, such as horizon=8 capacity=2 num_values=5; those not given are chosen small."""
    seed: int = 0
    """Of the episode, and of the instance if it is drawn."""
    policy: Literal["optimal", "uniform"] = "optimal"
    """Whose episode is shown: the optimal policy's, or one of random actions."""
    figure: Path | None = None
    """Draw the episode as a row of boxes to this file, such as episode.png."""
    overwrite: bool = False
    """Replace the file if it exists."""

    def do(self) -> None:
        """Prints the instance."""
        Options(seed=self.seed)
        with spinner("starting jax", elsewhere=False):
            import jax

            import jaxbandit as jb
            from jaxbandit.plotting.figures import files_of
        if self.figure is not None:
            refuse_existing("figure", files_of(self.figure), self.overwrite)
        with spinner("planning", elsewhere=False):
            given = read_parameters(self.parameters)
            mdp, used = description.small_instance(self.instance, given, self.seed)
            value, policy = jb.optimal(jb.mdp.plain(mdp))
        words = jb.labels_of(mdp)
        worth = words.with_unit(words.total(float(value)))
        note = f" ({worth}; a reward of 1 is {words.money(1.0)})" if words.in_units else ""
        print(f"{self.instance}({', '.join(f'{name}={shown}' for name, shown in used.items())})")
        sizes = f"{mdp.horizon} stages, levels 1 to {mdp.width}, {mdp.num_actions} actions"
        print(f"  {mdp!r}: {sizes}")
        print(f"  optimal value {float(value):.4g}{note}, from {words.level} {words.state(int(mdp.start))}")  # fmt: skip
        print(f"\n{policy_table(mdp, np.asarray(policy))}")
        whose, played = "the optimal policy", np.asarray(policy)
        if self.policy == "uniform":
            whose = "random actions"
            played = np.full((*policy.shape, mdp.num_actions), 1 / mdp.num_actions, np.float32)
        print(f"\none episode of {whose} (--seed {self.seed})")
        episode = jb.trace(mdp, played, jax.random.key(self.seed))
        print(episode)
        if self.figure is not None:
            with spinner("drawing", elsewhere=False):
                files = jb.plot_episode(mdp, episode).save(self.figure)
            print("\n".join(map(str, files)))


def policy_table(mdp: Any, policy: Any) -> Table:
    """The optimal action of every state that can be reached; stages to the right.

    Example:
        >>> import jaxbandit as jb, numpy as np
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> print(policy_table(mdp, np.asarray(jb.optimal(mdp)[1])))
        optimal policy: accept from ..., by capacity left and stage (. = never reached)
             1    2
        1  0.5  0.5
    """
    import jaxbandit as jb

    words, stages = jb.labels_of(mdp), range(mdp.horizon)
    visits = np.asarray(jb.visitation(mdp, policy))
    # thresholds: "accept from 0.5" and "accept none" share all but the value
    names = {words.action(i, a) for i in stages for a in range(mdp.num_actions)} - {"accept none"}
    columns = map(set, zip(*(name.split(" ")[:-1] for name in names), strict=False))
    alike = itertools.takewhile(lambda column: len(column) == 1, columns)
    common = "".join(f"{word} " for (word,) in alike)
    rows = []
    for level in range(mdp.width, 0, -1):
        chosen = [words.action(i, int(policy[i, level])).removeprefix(common) for i in stages]
        cells = [
            name.split(" ")[-1] if visits[i, level] > 0 else "." for i, name in enumerate(chosen)
        ]
        rows.append([words.state(level), *cells])
    lead = f"optimal policy: {common}..." if common else "optimal policy"
    title = f"{lead}, by {words.level} and stage (. = never reached)"
    head = ["", *(f"{i + 1}" for i in stages)]
    return Table(head, rows, right=range(1, mdp.horizon + 1), title=title)


@dataclass(frozen=True)
class New:
    """Write a commented file to start from: a learner, an instance or an experiment of your own."""

    what: Positional[Literal["learner", "instance", "experiment"]]
    """learner, instance or experiment."""
    name: Positional[str]
    """Its name, such as my-learner; the file is my_learner.py."""
    out: Path | None = None
    """Another file name."""
    overwrite: bool = False
    """Replace the file if it exists."""

    def do(self) -> None:
        """Writes a template and says what to do with it."""
        path = write_template(self.what, self.name, self.out, overwrite=self.overwrite)
        print(f"{path}\n{TEMPLATES[self.what].format(path)}")


def write_template(
    what: str, name: str, out: str | Path | None = None, *, overwrite: bool = False
) -> Path:
    """Writes a commented file that runs as it stands, and returns its path.

    Args:
        what: "learner", "instance" or "experiment": a file of `jaxbandit.cli.templates`.
        name: its name, such as "my-learner".
        out: the file; by default my_learner.py.
        overwrite: replace it if it exists.

    Example:
        >>> import tempfile
        >>> write_template("learner", "my-learner", tempfile.mkdtemp() + "/mine.py").name
        'mine.py'
        >>> write_template("learner", "2 fast")
        Traceback (most recent call last):
        ...
        ValueError: name: '2 fast'; accepted: letters, digits, - and _, beginning with a letter
    """
    checks.accept("what", what, list(TEMPLATES))
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) or keyword.iskeyword(name):
        accepted = "letters, digits, - and _, beginning with a letter"
        raise ValueError(f"name: {name!r}; accepted: {accepted}")
    function = name.replace("-", "_").lower()
    path = Path(out) if out is not None else Path(f"{function}.py")
    if path.suffix != ".py":
        raise ValueError(f"out: {path}; accepted: a file name that ends in .py")
    refuse_existing("out", [path], overwrite)
    text = (Path(__file__).parent / "templates" / f"{what}.py").read_text(encoding="utf-8")
    words = {f"my_{what}.py": str(path), f"my-{what}": name, f"my_{what}": function}
    text = re.sub("|".join(map(re.escape, words)), lambda found: words[found[0]], text)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())
    return path


@dataclass(frozen=True)
class Plot:
    """Draw the results of a run."""

    results: Positional[Path]
    """A .nc file, or a folder of them."""
    what: Annotated[str, arg(metavar=f"{{{','.join(FIGURES)}}}")] = "regret"
    """The figure: `jaxbandit.plot_NAME`; regret against episodes if not given."""
    learners: tuple[str, ...] | None = None
    """Only these; names or patterns such as "*(practical)"."""
    instances: Annotated[tuple[str, ...] | None, arg(aliases=["--instance"])] = None
    """Only these instances or panels; names or patterns."""
    kind: Literal["t", "skewed", "bootstrap", "simultaneous", "quantile"] | None = None
    """What the bands are: t-intervals if not given; skewed covers more where runs are few or skewed, simultaneous covers whole curves, quantile shows where the runs lie."""
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
    formats: Annotated[tuple[Format, ...] | None, arg(aliases=["--format"])] = None
    """File types."""
    overwrite: bool = False
    """Replace files that exist."""

    def do(self) -> None:
        """Draws a file of results, or each file of a folder."""
        from jaxbandit.cli.report import read_results
        from jaxbandit.plotting.figures import files_of

        checks.accept("what", self.what, FIGURES)
        with spinner(f"reading {self.results}", elsewhere=False):
            datasets = read_results(self.results)
        targets = {label: self._target(label, len(datasets) > 1) for label in datasets}
        files = [file for each in targets.values() for file in files_of(each, self.formats)]
        refuse_existing("out", files, self.overwrite)
        for label, dataset in datasets.items():
            with spinner(f"drawing {label}", elsewhere=False):
                drawn = self._draw(dataset)
                written = drawn.save(targets[label], self.formats)
            print("\n".join(map(str, written)))
            if self.no_subtitle and drawn.caption:
                print(f"caption: {drawn.caption}")

    def _target(self, label: str, several: bool) -> Path:
        if self.out is None:
            folder = self.results if self.results.is_dir() else self.results.parent
            return folder / f"{label}_{self.what.replace('-', '_')}"
        return self.out.with_stem(f"{self.out.stem}_{label}") if several else self.out

    def _draw(self, dataset: Any) -> Any:
        """The figure, with those of the options that its function takes."""
        from jaxbandit.stats import families

        function = getattr(plotting, f"plot_{self.what.replace('-', '_')}")
        taken = inspect.signature(function).parameters
        options = ("kind", "scale", "size", "columns", "title", "name", "parameter")
        given = {each: getattr(self, each) for each in options}
        given |= {"subtitle": False if self.no_subtitle else None, "inset": self.inset or None}
        accepted = ", ".join(name for name in given if name in taken)
        for each, value in given.items():
            if value is not None and each not in taken:
                raise ValueError(f"{each}: not for --what {self.what}; accepted: {accepted}")
        names = list(map(str, dataset["learner"].values))
        learners = _matching("learners", self.learners, names)
        places = dict.fromkeys([*families(dataset), *map(str, dataset["instance"].values)])
        instances = _matching("instances", self.instances, list(places))
        several = "panels" in taken or self.what == "regret"
        given |= {"learners": learners, "panels": instances, "learner": (learners or names)[0]}
        given["instance"] = instances if several or not instances else instances[0]
        return function(
            dataset, **{each: v for each, v in given.items() if v is not None and each in taken}
        )


def refuse_existing(option: str, files: Iterable[Path], overwrite: bool) -> None:
    """An error before anything runs if a file exists that nobody said to replace."""
    there = ", ".join(str(file) for file in files if os.path.lexists(file))
    if there and not overwrite:
        raise FileExistsError(f"{option}: {there} exists; give another --{option}, or --overwrite")


def _matching(option: str, wanted: Sequence[str] | None, known: list[str]) -> list[str] | None:
    """The names that are given or match a pattern, in the order of the options."""
    if wanted is None:
        return None
    found: dict[str, None] = {}
    for each in wanted:
        matches = [each] if each in known else fnmatch.filter(known, each)
        if not matches:
            checks.accept(option, each, known)
        found |= dict.fromkeys(matches)
    return list(found)


@dataclass(frozen=True)
class Report:
    """Write one self-contained HTML page of results, or with --gallery of everything there is."""

    results: Positional[Path | None] = None
    """A folder written by `jaxbandit run`, or a .nc file; with --gallery, a folder of such folders whose figures are shown."""
    out: Path | None = None
    """File name; default report.html in the folder."""
    overwrite: bool = False
    """Replace the page if it exists."""
    gallery: Path | None = None
    """Write this page instead: every family of instances with its picture, every learner with its parameters, every experiment with its figure."""

    def do(self) -> None:
        """Writes the page and prints its path."""
        from jaxbandit.cli.report import make_gallery, make_report

        if self.gallery is not None:
            with spinner("drawing every instance, learner and experiment"):
                page = make_gallery(self.gallery, self.results, overwrite=self.overwrite)
        elif self.results is None:
            raise ValueError("results: not given; accepted: a folder or a .nc file, or --gallery FILE")  # fmt: skip
        else:
            with spinner(f"reading and drawing {self.results}", elsewhere=False):
                page = make_report(self.results, self.out, overwrite=self.overwrite)
        print(page)


@dataclass(frozen=True)
class Merge:
    """Put the shards of a run (`run --shard i/n`) together, bit for bit as a single run."""

    folder: Positional[Path]
    """The folder that the shards were written to."""
    overwrite: bool = False
    """Replace results that are there."""

    def do(self) -> None:
        """Merges, and says what comes next."""
        from jaxbandit.cli.driver import merge_folder

        for label, file in merge_folder(self.folder, overwrite=self.overwrite).items():
            print(f"{label}: {file}")
        print("draw its figures and tables with the command of one shard, --resume in place of --shard")  # fmt: skip


@dataclass(frozen=True)
class Doctor:
    """Look at this machine: devices, versions, flags, whether the wheels match; then a self-test of some seconds (bits, laws, a little speed). Ends with code 1 if anything is wrong."""

    json: str | None = None
    """Write the whole report as JSON, to paste into a bug report: to this file, or with "-" to the screen alone."""
    quick: bool = False
    """Leave the self-test out."""
    overwrite: bool = False
    """Replace the file if it exists."""

    def do(self) -> int:
        """Prints the report; 1 if something is wrong."""
        from jaxbandit.xla.compilations import start_jax

        file = None if self.json in (None, "-") else Path(str(self.json))
        refuse_existing("json", [file] if file is not None else [], self.overwrite)
        start_jax()
        from jaxbandit.cli.doctor import examine, format_report

        found = examine(self_test=not self.quick)
        text = json.dumps(found, indent=1)
        if file is not None:
            write_atomically(file, f"{text}\n".encode())
        print(text if self.json == "-" else format_report(found))
        return int(not found["ok"])


@dataclass(frozen=True)
class Bench:
    """Measure speed, beside what people use today (`jaxbandit bench --help`)."""


COMMANDS: dict[str, type] = {
    each.__name__.lower(): each
    for each in (List, Run, Show, New, Plot, Report, Merge, Doctor, Bench)
}
