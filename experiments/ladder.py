"""The feedback ladder: what each bit of feedback buys, from one bit an episode to semi-bandit (Section 5 and beyond).

Every rung shows what the rung below shows, and more; every rung has its learners, and all of them
play the same instances with the same randomness. Two sizes: tiny MDPs, where even UCB1 over all
policies runs, and the paper's. A third sweep cuts the stages into m segments whose totals are shown,
from m = 1 (trajectory feedback) to m = H (every reward).

Learners are tuned alike: one parameter each, five values, on instances that are not reported. Chosen
is the value of smallest worst ratio, over the families of training instances, to the best value
there; a value whose regret still grows linearly at the end (by a factor above 1.9 from T/2 to T) is
refused if any other is not. Practical constants give up the theorems' guarantees; the same learners
with the theorems' constants are beside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit.experiment.contract import Experiment, Options

from .ladder_contestants import (
    PAPER,
    TINY,
    contestants,
    make,
    segmented,
    support,
    values_of,
    yardsticks,
)

if TYPE_CHECKING:
    from xarray import Dataset

    from jaxbandit.plotting.curves import Drawn

LINEAR = 1.9
"""Growth of the regret from T/2 to T above which it counts as linear."""
TRAINING_KEY, REPORTED_KEY = 8001, 8002
"""Roots of the instances; neither is that of another experiment."""
SEEDS_PER_INSTANCE = 2
SIZES = {"tiny": TINY, "paper": PAPER}
TRAINING = "training "
"""Before the names of families that are tuned on and not reported."""


def random_laws(size: tuple[int, int, int], count: int, root: int) -> list[Any]:
    """Prophet instances on the support of I1 whose laws are drawn uniformly."""
    import jaxbandit as jb

    horizon, capacity, num_values = size
    random = np.random.default_rng([root, *size])
    laws = random.dirichlet(np.ones(num_values), (count, horizon))
    return [
        jb.make_instance("prophet", values=support(size), probabilities=law, capacity=capacity)
        for law in laws
    ]


def drawn(name: str, size: tuple[int, int, int], count: int, root: int) -> Any:
    """Draws of a registered random family."""
    import jax

    import jaxbandit as jb

    horizon, capacity, num_values = size
    return jb.family(
        name,
        count=count,
        key=jax.random.fold_in(jax.random.key(root), horizon),
        horizon=horizon,
        capacity=capacity,
        num_values=num_values,
    )


def instances(size: tuple[int, int, int], count: int, prophets: bool = False) -> dict[str, Any]:
    """The families of a size, reported and for training: prophets (I1 with other laws, I2) and
    posted pricing; or the first alone, for learners of prophets with a known support."""
    found = {}
    for prefix, root, number in (
        ("", REPORTED_KEY, count),
        (TRAINING, TRAINING_KEY, max(2, count // 2)),
    ):
        found[f"{prefix}prophet, random laws"] = random_laws(size, number, root)
        if not prophets:
            found[f"{prefix}I2"] = drawn("prophet-random", size, number, root)
            found[f"{prefix}posted pricing"] = drawn("posted-pricing-random", size, number, root)
    return found


def choose(ds: Dataset, label: str) -> int:
    """The index of the value of smallest worst ratio to the best, over the training families."""
    from jaxbandit import stats

    regrets, growths = [], []
    for family, names in stats.families(ds).items():
        if family.startswith(TRAINING):
            runs = ds["regret"].sel(learner=label, instance=names).mean(["instance", "seed"])
            curves = runs.transpose("parameter", "episode").values[: len(values_of(label))]
            regrets.append(curves[:, -1])
            growths.append(curves[:, -1] / np.maximum(curves[:, curves.shape[1] // 2 - 1], 1e-9))
    ratios = np.max([r / max(r.min(), 1e-9) for r in regrets], axis=0)
    linear = np.max(growths, axis=0) > LINEAR
    return int(np.argmin(np.where(linear & ~linear.all(), np.inf, ratios)))


def reported(ds: Dataset) -> Dataset:
    """The reported instances, every learner with its chosen setting."""
    import xarray as xr

    names = [str(name) for name in ds["instance"].values if not str(name).startswith(TRAINING)]
    kept = {"learner", "instance", "seed", "episode", "family"}
    runs = ds[["regret", "run_seconds"]].sel(instance=names)
    runs = runs.drop_vars([name for name in runs.coords if name not in kept])
    parts = [
        runs.sel(learner=[label]).isel(parameter=choose(ds, str(label)))
        for label in ds["learner"].values
    ]
    return xr.concat(parts, "learner", coords="minimal", compat="override")


def sweeps(options: Options) -> dict[str, dict[str, Any]]:
    """For each size: all settings on training and reported instances, which share a program.

    Learners of prophets alone have sweeps of their own.
    """
    import jaxbandit as jb

    count = max(2, options.choose_seeds(6, full=16) // SEEDS_PER_INSTANCE)
    common: dict[str, Any] = {
        "num_seeds": SEEDS_PER_INSTANCE,
        "record": jb.record.linear(20),
    }
    # At the paper's size the first phase of ExpRef alone takes some 20,000 episodes.
    episodes = {
        "tiny": options.choose_episodes(20_000, full=200_000),
        "paper": options.choose_episodes(50_000, full=200_000),
    }
    found = {}
    for name, size in SIZES.items():
        common["num_episodes"] = episodes[name]
        for suffix, prophets in (("", False), ("-prophets", True)):
            learners = {
                label: make(label, size) for label in contestants(size, prophets, options.full)
            }
            found[name + suffix] = {
                **common,
                "learners": learners | ({} if prophets else yardsticks()),
                "instances": instances(size, count, prophets),
            }
    common["num_episodes"] = episodes["tiny"]
    found["segments"] = {**common, "learners": segmented(), "instances": instances(TINY, count)}
    return found


def joined(datasets: dict[str, Dataset], name: str) -> Dataset:
    """All learners of a size with their chosen settings; nan where a learner did not play."""
    import xarray as xr

    parts = [reported(datasets[label]) for label in (name, f"{name}-prophets")]
    parts[1] = parts[1].reindex(instance=parts[0]["instance"].values)
    parts[1] = parts[1].assign_coords(family=("instance", parts[0]["family"].values))
    return xr.concat(parts, "learner", coords="minimal", compat="override")


def figures(datasets: dict[str, Dataset], options: Options) -> dict[str, Drawn]:
    """Curves by rung, final regret against feedback, and regret against segments."""
    from . import ladder_figures

    del options
    found = {}
    for name, size in SIZES.items():
        ds = joined(datasets, name)
        found[f"ladder_{name}"] = ladder_figures.curves(ds, title_of(size))
        found[f"ladder_{name}_summary"] = ladder_figures.summary(ds, title_of(size))
    found["ladder_segments"] = ladder_figures.segments(
        reported(datasets["segments"]), title_of(TINY)
    )
    return found


def title_of(size: tuple[int, int, int]) -> str:
    """The sizes in words."""
    return "H = {}, k = {}, A = {}".format(*size)


def tables(datasets: dict[str, Dataset], options: Options) -> dict[str, str]:
    """Chosen settings, final regrets with intervals and times, and whether each beats uniform."""
    from .ladder_tables import chosen_table, final_table

    del options
    parts = []
    for name, size in SIZES.items():
        parts += [f"## {title_of(size)}", final_table(joined(datasets, name))]
    return {"ladder.md": "\n\n".join(parts), "ladder_tuning.md": chosen_table(datasets)}


EXPERIMENT = Experiment("ladder", __doc__, sweeps, figures, tables)
