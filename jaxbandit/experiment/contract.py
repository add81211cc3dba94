"""The contract of an experiment: sweeps are data, figures and tables are functions of their
results.

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
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jaxbandit.checks import whole

if TYPE_CHECKING:
    from xarray import Dataset

    from jaxbandit.plotting.figures import Drawn

Format = Literal["png", "svg", "pdf", "eps", "pgf"]
LIMITS = {
    "seeds": (1, 10**6),
    "instances": (1, 10**6),
    "episodes": (1, 2**53),
    "seed": (0, 2**32 - 1),
    "devices": (1, 10**4),
    "max_lanes": (1, 2**31 - 1),
}
"""Smallest and largest value of each number; counts of episodes are exact up to 2^53."""
Arguments = Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any]]
"""Of a sweep."""


@dataclass(frozen=True)
class Options:
    """What a user may ask of any experiment."""

    seeds: int | None = None
    """Seeds (independent runs) per learner and instance; if not given, the experiment decides."""
    instances: int | None = None
    """Drawn instances per panel, where instances are drawn at random; if not given, the experiment
    decides."""
    episodes: int | None = None
    """T, such as 2e6; if not given, the experiment decides."""
    learners: Path | None = None
    """A Python file with learners of your own (`jaxbandit new learner NAME`), which join those of
    the experiment."""
    instance: str | None = None
    """An instance for experiments that take one (ladder): a name with parameters ("riverswim horizon=10"), an .npz file
    with arrays P, R and horizon, or a Python file (`jaxbandit new instance NAME`)."""
    full: bool = False
    """The paper's size instead of one that takes about a minute."""
    seed: int = 0
    """The root key of everything."""
    out: Path | None = None
    """Folder of the results; if not given, results/NAME."""
    results: Path = Path("results")
    """Where experiments that read other experiments' results find them (results/NAME)."""
    resume: bool = False
    """Continue the run that the folder holds, or add seeds to it, or draw its figures again."""
    overwrite: bool = False
    """Replace what the folder holds."""
    devices: int | None = None
    """How many devices (on CPUs one per core); if not given, all."""
    dry_run: bool = False
    """Print what would run, and run nothing."""
    max_lanes: int | None = None
    """At most so many runs side by side; if not given, what takes about 1 GB."""
    shard: str | None = None
    """i/n: run only the i-th of n parts of the seeds, on machines that do not see each other;
    `jaxbandit merge` puts them together."""
    allow_other_bits: bool = False
    """Go on from a checkpoint of another kind of device or another jax, whose last digits may
    differ."""
    formats: tuple[Format, ...] = ("png", "svg", "pdf")
    """File types of the figures; pgf needs LaTeX."""
    progress: Literal["auto", "always", "never"] = "auto"
    """The progress bar; "auto" shows it in terminals and notebooks."""

    def check(self) -> Options:
        """The options themselves, or ValueError for a number that no experiment can mean.

        Example:
            >>> Options(seed=-1).check()
            Traceback (most recent call last):
            ...
            ValueError: seed: -1; accepted: a whole number, at least 0 and at most 4294967295
        """
        for name, (low, high) in LIMITS.items():
            value = getattr(self, name)
            if value is not None:
                whole(name, value, low, high)
        if self.resume and self.overwrite:
            raise ValueError("resume, overwrite: both; accepted: one of the two")
        return self

    def choose_episodes(self, default: int, full: int) -> int:
        """T: what the user asks for, else ``full`` with --full, else ``default``.

        Example:
            >>> Options().choose_episodes(1000, full=10**6)
            1000
            >>> Options(episodes=50, full=True).choose_episodes(1000, full=10**6)
            50
        """
        return _asked("episodes", self.episodes, full if self.full else default)

    def choose_seeds(self, default: int, full: int) -> int:
        """The number of seeds, in the same way.

        Example:
            >>> Options(full=True).choose_seeds(4, full=32)
            32
        """
        return _asked("seeds", self.seeds, full if self.full else default)

    def choose_instances(self, default: int, full: int) -> int:
        """The number of drawn instances per panel, in the same way.

        Example:
            >>> Options(instances=3, full=True).choose_instances(8, full=16)
            3
        """
        return _asked("instances", self.instances, full if self.full else default)


def summary_of(description: str | None) -> str:
    """The first paragraph of a docstring, as one line.

    Example:
        >>> summary_of("One\\nline.\\n\\nAnd more.")
        'One line.'
    """
    return " ".join((description or "").strip().split("\n\n")[0].split())


def _asked(name: str, given: int | None, otherwise: int) -> int:
    return otherwise if given is None else whole(name, given, *LIMITS[name])


@dataclass(frozen=True)
class Experiment:
    """An experiment: sweeps as data, then figures and tables of their results."""

    name: str
    """As in ``jaxbandit run NAME``; also the default folder, results/NAME."""
    description: str | None
    """The module's docstring: its first paragraph is the summary and names the section of the paper."""
    sweeps: Callable[[Options], Mapping[str, Arguments]]
    """sweeps(options) -> label -> arguments of `jaxbandit.sweep` (learners, instances,
    num_episodes, ...). A label is a file name without suffix. Root seed, devices, lanes, checkpoint
    and progress are added.
    A sweep that depends on earlier results is a function: datasets so far -> arguments."""
    figures: Callable[[dict[str, Dataset], Options], Mapping[str, Drawn]] | None = None
    """figures(datasets, options) -> file stem -> figure; datasets by label."""
    tables: Callable[[dict[str, Dataset], Options], Mapping[str, str]] | None = None
    """tables(datasets, options) -> file name (such as "times.md") -> text, printed and saved.
    Without it, the table of final regrets."""
    needs: tuple[str, ...] = ()
    """Other experiments whose results are read: their datasets come as "name/label"."""
    open_to_learners: bool = True
    """Whether ``--learners FILE`` may add learners to all its sweeps."""
    open_to_instance: bool = False
    """Whether ``--instance`` may name the instance."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    """What is written, file name -> what it shows; for ``jaxbandit run NAME --help``."""
    takes: str = ""
    """How long it takes, in words: "about a minute on two cores; with --full 20 minutes"."""
    expect: Callable[[dict[str, Dataset], Options], str] | None = None
    """expect(datasets, options) -> what a reader should make of the results, printed after the
    tables; "" for nothing."""

    @property
    def summary(self) -> str:
        """The first paragraph of the description."""
        return summary_of(self.description)
