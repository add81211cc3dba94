"""Experiments: sweeps are data, figures and tables are functions of their results.

A module with a value ``EXPERIMENT`` is an experiment; the first paragraph of its docstring is what
``jaxbandit list`` shows. A file of your own works the same (``jaxbandit run my_experiment.py``):

    import jaxbandit as jb
    from jaxbandit.experiment import Experiment

    def sweeps(options):
        mdp = jb.make_instance("prophet-uniform", horizon=10, capacity=2, num_values=4)
        return {"regret": dict(learners={"UCB-VI": jb.make_learner("ucbvi")}, instances={"I1": mdp},
                               num_episodes=options.choose_episodes(20_000, full=2_000_000),
                               num_seeds=options.choose_seeds(8, full=32))}

    def figures(datasets, options):
        return {"regret": jb.plot_regret(datasets["regret"])}

    EXPERIMENT = Experiment("my-experiment", __doc__, sweeps, figures)

Experiments have names: every file of the folder `experiments/` with a value ``EXPERIMENT`` is one, and
``price_of_horizon.py`` is called "price-of-horizon". Nothing here starts jax before one is loaded.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from jaxbandit.checks import MOST_EPISODES, did_you_mean
from jaxbandit.files import regular_files
from jaxbandit.specs import Optional, Whole
from jaxbandit.sweeps.options import RunOptions, option
from jaxbandit.tabular import write_table

if TYPE_CHECKING:
    from xarray import Dataset

    from jaxbandit.plotting.figures import Drawn

__all__ = [
    "Experiment",
    "Options",
    "catalogue",
    "final_table",
    "join",
    "load_experiment",
    "load_instance",
    "load_learners",
    "markdown_table",
    "read_folder",
]

Format = Literal["png", "svg", "pdf", "eps", "pgf"]
Arguments = Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any]]
"""Of a sweep."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much of an experiment runs."""

    seeds: int | None = option(None, Optional(Whole(1, 10**6)))
    """Seeds (independent runs) per learner and instance; if not given, the experiment decides."""
    instances: int | None = option(None, Optional(Whole(1, 10**6)))
    """Drawn instances per panel, where instances are drawn at random; if not given, the experiment decides."""
    episodes: int | None = option(None, Optional(Whole(1, MOST_EPISODES)))
    """T, such as 2e6; if not given, the experiment decides."""
    full: bool = False
    """The paper's size instead of one that takes about a minute."""


@dataclass(frozen=True, kw_only=True)
class Options(RunOptions, Sizes):
    """What a user may ask of any experiment; those of a sweep are in `jaxbandit.sweeps.options`."""

    devices: int | None = option(None, Optional(Whole(1, 10**4)))
    """How many devices (on CPUs: cores); if not given, all."""
    learners: Path | None = None
    """A Python file with learners of your own (`jaxbandit new learner NAME`), which join those of the experiment."""
    instance: str | None = None
    """An instance for experiments that take one (ladder): a name with parameters ("riverswim horizon=10"), an .npz file with arrays P, R and horizon, or a Python file (`jaxbandit new instance NAME`)."""
    out: Path | None = None
    """Folder of the results; if not given, results/NAME."""
    results: Path = Path("results")
    """Where experiments that read other experiments' results find them (results/NAME)."""
    resume: bool = False
    """Continue the run that the folder holds, or add seeds to it, or draw its figures again."""
    overwrite: bool = False
    """Replace what the folder holds."""
    dry_run: bool = False
    """Print what would run, and run nothing."""
    shard: str | None = None
    """i/n: run only the i-th of n parts of the seeds, on machines that do not see each other; `jaxbandit merge` puts them together."""
    formats: tuple[Format, ...] = ("png", "svg", "pdf")
    """File types of the figures; pgf needs LaTeX."""
    progress: Literal["auto", "always", "never"] = "auto"
    """The progress bar; "auto" shows it in terminals and notebooks."""

    def __post_init__(self) -> None:
        """Checks the numbers.

        Example:
            >>> Options(seed=-1)
            Traceback (most recent call last):
            ...
            ValueError: seed: -1; accepted: a whole number, at least 0 and at most 4294967295
        """
        super().__post_init__()
        if self.resume and self.overwrite:
            raise ValueError("resume, overwrite: both; accepted: one of the two")

    def choose_episodes(self, default: int, full: int) -> int:
        """T: what the user asks for, else ``full`` with --full, else ``default``.

        Example:
            >>> Options().choose_episodes(1000, full=10**6)
            1000
            >>> Options(episodes=50, full=True).choose_episodes(1000, full=10**6)
            50
        """
        return self._choose(self.episodes, default, full)

    def choose_seeds(self, default: int, full: int) -> int:
        """The number of seeds, in the same way.

        Example:
            >>> Options(full=True).choose_seeds(4, full=32)
            32
        """
        return self._choose(self.seeds, default, full)

    def choose_instances(self, default: int, full: int) -> int:
        """The number of drawn instances per panel, in the same way.

        Example:
            >>> Options(instances=3, full=True).choose_instances(8, full=16)
            3
        """
        return self._choose(self.instances, default, full)

    def _choose(self, given: int | None, default: int, full: int) -> int:
        return given if given is not None else full if self.full else default


def summary_of(description: str | None) -> str:
    """The first paragraph of a docstring, as one line.

    Example:
        >>> summary_of("One\\nline.\\n\\nAnd more.")
        'One line.'
    """
    return " ".join((description or "").strip().split("\n\n")[0].split())


@dataclass(frozen=True)
class Experiment:
    """An experiment: sweeps as data, then figures and tables of their results.

    Fields:
        name: as in ``jaxbandit run NAME``; also the default folder, results/NAME.
        description: the module's docstring: its first paragraph is the summary and names the section of the paper.
        sweeps: sweeps(options) -> label -> arguments of `jaxbandit.sweep` (learners, instances, num_episodes, ...). A
            label is a file name without suffix. Root seed, devices, lanes, checkpoint and progress are added. A sweep
            that depends on earlier results is a function: datasets so far -> arguments.
        figures: figures(datasets, options) -> file stem -> figure; datasets by label.
        tables: tables(datasets, options) -> file name (such as "times.md") -> text, printed and saved. Without it, the
            table of final regrets.
        needs: other experiments whose results are read: their datasets come as "name/label".
        open_to_learners: whether ``--learners FILE`` may add learners to all its sweeps.
        open_to_instance: whether ``--instance`` may name the instance.
        outputs: what is written, file name -> what it shows; for ``jaxbandit run NAME --help``.
        takes: how long it takes, in words: "about a minute on two cores; with --full 20 minutes".
        expect: expect(datasets, options) -> what a reader should make of the results, printed after the tables; "" for
            nothing.
    """

    name: str
    description: str | None
    sweeps: Callable[[Options], Mapping[str, Arguments]]
    figures: Callable[[dict[str, Dataset], Options], Mapping[str, Drawn]] | None = None
    tables: Callable[[dict[str, Dataset], Options], Mapping[str, str]] | None = None
    needs: tuple[str, ...] = ()
    open_to_learners: bool = True
    open_to_instance: bool = False
    outputs: Mapping[str, str] = field(default_factory=dict)
    takes: str = ""
    expect: Callable[[dict[str, Dataset], Options], str] | None = None

    @property
    def summary(self) -> str:
        """The first paragraph of the description."""
        return summary_of(self.description)


PACKAGE = "jaxbandit.experiments"


def catalogue() -> dict[str, str]:
    """The names of all experiments with their one-line descriptions, read without importing them.

    Example:
        >>> catalogue()["prophet"]
        "The paper's regret figure: prophet inequalities I1 and I2, three learners (Section 5)."
    """
    found = {}
    for file in sorted(experiments_folder().glob("*.py")):
        source = file.read_text(encoding="utf-8")
        if re.search(r"^EXPERIMENT\b", source, re.MULTILINE):
            name = file.stem.replace("_", "-")
            found[name] = summary_of(ast.get_docstring(ast.parse(source)))
    return found


def experiments_folder() -> Path:
    """Where the experiments' files are."""
    spec = importlib.util.find_spec(PACKAGE)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(next(iter(spec.submodule_search_locations)))


def load_experiment(name: str) -> Experiment:
    """The experiment of that name, or of a user's own file (anything that ends in .py).

    Example:
        >>> load_experiment("prophets")
        Traceback (most recent call last):
        ...
        ValueError: unknown experiment 'prophets'; did you mean 'prophet'? accepted: ...
    """
    if name.endswith(".py"):
        module = _import_file(Path(name))
    elif name in (known := list(catalogue())):
        module = importlib.import_module(f"{PACKAGE}.{name.replace('-', '_')}")
    else:
        accepted = f"{', '.join(known)}, or a file that ends in .py"
        raise ValueError(
            f"unknown experiment {name!r}; {did_you_mean(name, known)}accepted: {accepted}"
        )
    experiment = getattr(module, "EXPERIMENT", None)
    if not isinstance(experiment, Experiment):
        raise ValueError(
            f"{name}: EXPERIMENT is {type(experiment).__name__}; accepted: a module-level value "
            "EXPERIMENT = Experiment(...), see jaxbandit.experiment"
        )
    return experiment


def load_learners(path: str | Path) -> dict[str, Any]:
    """The learners of a user's file: its value ``LEARNERS``, name -> learner.

    Example:
        >>> load_learners("nowhere.py")
        Traceback (most recent call last):
        ...
        ValueError: nowhere.py: no such file; accepted: a Python file
    """
    from jaxbandit.learner import Learner

    found = getattr(_import_file(Path(path)), "LEARNERS", None)
    made = found.values() if isinstance(found, Mapping) else ()
    if not made or not all(isinstance(each, Learner) for each in made):
        raise ValueError(
            f"learners: LEARNERS of {path} is {type(found).__name__}; accepted: a module-level value "
            'LEARNERS = {"name": learner, ...}, see jaxbandit new learner NAME'
        )
    return dict(found)  # type: ignore[arg-type]


@cache
def load_instance(text: str) -> Any:
    """An instance by name, with parameters after it, or from a file.

    An .npz file holds the arguments of `jaxbandit.from_arrays`: P, R, horizon and, if needed, start and terminal. A Python
    file registers an instance (`jaxbandit new instance NAME`).

    Example:
        >>> load_instance("riverswim num_states=4 horizon=10")
        MDP(H=10, k=4, A=2, general)
        >>> load_instance("nowhere.npz")
        Traceback (most recent call last):
        ...
        ValueError: nowhere.npz: no such file; accepted: a file of arrays P, R and horizon
    """
    import numpy as np

    import jaxbandit as jb

    path = Path(text)
    if path.suffix == ".npz":
        if not path.is_file():
            raise ValueError(f"{path}: no such file; accepted: a file of arrays P, R and horizon")
        with np.load(path, allow_pickle=False) as arrays:
            given = {name: arrays[name] for name in arrays.files}
        if not {"P", "R", "horizon"} <= given.keys() <= {"P", "R", "horizon", "start", "terminal"}:
            accepted = "P, R, horizon, and start, terminal"
            raise ValueError(f"{path}: arrays {', '.join(given)}; accepted: {accepted}")
        return jb.from_arrays(**given)
    if path.suffix == ".py":
        known = set(jb.INSTANCES.names())
        _import_file(path)
        added = sorted(set(jb.INSTANCES.names()) - known)
        if len(added) != 1:
            accepted = 'one jb.register_instance("name", constructor)'
            seen = ", ".join(added) or "no instance"
            raise ValueError(f"{path}: registers {seen}; accepted: {accepted}")
        return jb.make_instance(added[0])
    name, *words = text.split() or [""]
    return jb.make_instance(name, **read_parameters(words))


def read_parameters(words: Iterable[str]) -> dict[str, Any]:
    """name=value words as data; what Python does not read as a value is text.

    Example:
        >>> read_parameters(("horizon=8", "theta=[0, 1]", "map=small"))
        {'horizon': 8, 'theta': [0, 1], 'map': 'small'}
    """
    found: dict[str, Any] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign:
            raise ValueError(f"parameters: {word!r}; accepted: name=value, such as horizon=8")
        found[name.replace("-", "_")] = text
        with contextlib.suppress(ValueError, SyntaxError):
            found[name.replace("-", "_")] = ast.literal_eval(text)
    return found


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ValueError(f"{path}: no such file; accepted: a Python file")
    path = path.resolve()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path}: not a Python file; accepted: a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.insert(
            0, str(path.parent)
        )  # as `python FILE.py` does, so that it finds its neighbours
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise ValueError(f"{path}, line {error.lineno}: {error.msg}") from error
    except (ValueError, OSError):  # the command line adds the line
        raise
    except Exception as error:
        inside = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == path]
        line = f", line {inside[-1].lineno}" if inside else ""
        raise ValueError(f"{path}{line}: {type(error).__name__}: {error}") from error
    return module


def join(*datasets: Dataset) -> Dataset:
    """Sweeps of the same learners over different instances as one; where there are fewer seeds,
    nan.

    Example:
        >>> import numpy as np, xarray as xr
        >>> def part(name, seeds):
        ...     regret = (("learner", "instance", "seed", "episode"), np.ones((1, 1, seeds, 2)))
        ...     coords = {"learner": ["ExpRef"], "instance": [name], "seed": np.arange(seeds)}
        ...     return xr.Dataset({"regret": regret}, coords)
        >>> dict(join(part("I1", 4), part("I2", 2))["regret"].sizes)
        {'learner': 1, 'instance': 2, 'seed': 4, 'episode': 2}
    """
    import xarray

    whole = xarray.concat(
        datasets, dim="instance", join="outer", data_vars="minimal", coords="minimal", compat="override",
        combine_attrs="override",
    )  # fmt: skip
    words = [name for name, variable in whole.data_vars.items() if variable.dtype.kind == "O"]
    return whole.assign({name: whole[name].fillna("") for name in words})  # names of padding


def final_table(datasets: Mapping[str, Dataset]) -> str:
    """The final regrets of all sweeps with their intervals, as text."""
    from jaxbandit import stats

    parts = []
    for label, dataset in datasets.items():
        episodes = int(dataset["episode"].values[-1])
        head = f"{label}: regret after {episodes:,} episodes"
        parts.append(f"{head}\n{stats.format_table(stats.final_table(dataset))}")
    return "\n\n".join(parts)


def read_folder(folder: Path) -> dict[str, Dataset]:
    """All results of a folder, by label."""
    from jaxbandit.results import load

    return {file.stem: load(file) for file in regular_files(Path(folder), "*.nc")}


def markdown_table(head: list[str], rows: list[list[str]]) -> str:
    """A markdown table with aligned columns.

    Example:
        >>> print(markdown_table(["learner", "k = 2"], [["ExpRef", "133"]]))
        | learner | k = 2 |
        |---------|-------|
        | ExpRef  | 133   |
    """
    return write_table(head, rows, "markdown")


sys.modules[f"{__name__}.contract"] = sys.modules[__name__]  # as users' files may call it
