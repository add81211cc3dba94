"""Regret against T up to 10^13 with the theorems' own constants: fixed instances and the worst case
(Theorems 3.1, 3.11).

Two different things, kept apart:

fixed       One instance and one long run of T = 10^13 episodes per seed, recorded at log-spaced episodes.
Regret grows
            linearly while C_{l,i} eps exceeds every difference of Phi, then in steps, as phases
            eliminate, and stays flat once only optimal actions are left. The square root is *not*
            visible here, and need not be.
worst-case  At every T the largest mean regret over a family of instances that differ in one gap:
the square root of
            the theorems. Each T is a run of its own: the number of episodes per arm and the last
            eps depend on T.

Why the worst case goes like the upper bound: noise hardly matters (with n = 12 ln T / eps^2 the
standard error of Phi-hat is below eps / (2 sqrt(12 ln T))), so an action with difference D in Phi
falls in the first phase with eps < D / C_{l,i}. The eps reached after T episodes is 2 to 4 times
sqrt(H k A ln T / T), so gaps up to that multiple of C are never resolved and cost gap x T. That is
C sqrt(H k A T ln T) up to a constant: Theorem 3.1 without its factor H A k (C in place of H^2
(Ak)^H), Theorem 3.11 without its factor 2 H e^(k/H).

Families: the general one is M^theta of Theorem 4.1 (width 2, Bernoulli(1/2) noise). The ordered one
is a prophet
problem in which X_1 is certain and worth the gap more than the capacity it takes, and the later X_i
are 0 or 1: at the start, where C is largest, taking beats waiting by the gap, and waiting is the
maximal action. The lower bound of Theorem 4.2 needs width 3, so it has nothing to say about the
ordered shapes here; `lower_bounds` is about both families.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit.experiment import Experiment, Options
from jaxbandit.tabular import write_table

from .scaling_worst_case import FIXED, WorstCase, horizons_of, worst_case

if TYPE_CHECKING:
    from xarray import Dataset

    from jaxbandit.mdp import MDP
    from jaxbandit.plotting.figures import Drawn

LONGEST = 10**13
SMALLEST_GAP, LARGEST_GAP = 2.0**-19, 0.45


class Shape(NamedTuple):
    """Sizes of the instances of a panel."""

    ordered: bool
    horizon: int
    width: int
    num_actions: int

    @property
    def title(self) -> str:
        """For panels."""
        kind = "ordered" if self.ordered else "general"
        return f"{kind} H={self.horizon} k={self.width} A={self.num_actions}"

    @property
    def label(self) -> str:
        """For files."""
        return self.title.replace(" ", "-").replace("=", "")

    @property
    def num_arms(self) -> int:
        """H k A."""
        return self.horizon * self.width * self.num_actions

    @property
    def learners(self) -> list[str]:
        """OrderedExpRef needs an order."""
        return ["ExpRef", "OrderedExpRef"] if self.ordered else ["ExpRef"]


SHAPES = (
    Shape(False, 2, 2, 3), Shape(False, 3, 2, 2), Shape(False, 4, 2, 2),
    Shape(True, 2, 1, 3), Shape(True, 3, 2, 2), Shape(True, 3, 3, 2),
)  # fmt: skip
MORE_SHAPES = (
    Shape(False, 2, 2, 2),
    Shape(False, 3, 2, 3),
    Shape(True, 4, 1, 2),
    Shape(True, 4, 2, 2),
)


def exact(name: str, **parameters: Any) -> MDP:
    """An instance in float64 (0.5 + gap in float32 is off by 6 % of a gap of 10^-6).

    Example:
        >>> float(exact("hard-general", theta=[1, 0], num_actions=2, gap=1e-9).prob[1, 1, 0, 0]) - 0.5 < 1.1e-9
        True
    """
    import jax

    import jaxbandit as jb
    from jaxbandit.xla.compat import x64

    with x64():
        return jax.tree.map(np.asarray, jb.make_instance(name, **parameters))


def last_unit(horizon: int, capacity: int) -> float:
    """What the k-th unit of capacity is worth after X_1: the probability of at least k ones.

    Example:
        >>> last_unit(horizon=3, capacity=1)
        0.4375
    """
    from scipy.stats import binom

    after = horizon - 1
    return float(1 - binom.cdf(capacity - 1, after, 1 / (2 * after)))


def tied_prophet(horizon: int, capacity: int, num_values: int, gap: float) -> MDP:
    """Prophet problem in which taking the certain X_1 beats waiting by ``gap`` (of the normalised
    reward).

    X_2, ..., X_H are 1 with probability p = 1 / (2 (H-1)), else 0, so that at level l of stage 2
    the optimal value is E min(l, Binomial(H-1, p)); X_1 is worth the difference between l = k and l
    = k-1, plus k gap.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = tied_prophet(horizon=3, capacity=1, num_values=2, gap=0.25)
        >>> [round(float(x), 6) for x in jb.gaps(mdp)[0, 1]]
        [0.0, 0.25]
    """
    after = horizon - 1
    chance = 1 / (2 * after)
    worth = last_unit(horizon, capacity) + capacity * gap
    if not 0 < worth <= 1:
        most = (1 - last_unit(horizon, capacity)) / capacity
        raise ValueError(f"gap: {gap}; accepted: above 0, at most {most:.4g}")
    steps = np.linspace(
        0, 1, num_values
    )  # values in between never occur: as thresholds they do what 0 does
    values = np.stack([worth * steps] + [steps] * after)
    probabilities = np.zeros((horizon, num_values))
    probabilities[0, -1] = 1
    probabilities[1:, 0], probabilities[1:, -1] = 1 - chance, chance
    return exact("prophet", values=values, probabilities=probabilities, capacity=capacity)


def gaps_of(shape: Shape, learner: str) -> np.ndarray:
    """The gaps 0.95 C 2^-j, with C the threshold of the start state.

    A gap at the start falls in the phase with C eps < gap, and eps is a power of 2, so these are
    the gaps that just
    survive: the mean regret grows with the gap between two of them, and the largest over them is
    that over all gaps, less 5 %.
    """
    from jaxbandit import theory

    table = theory.thresholds(
        shape.horizon, shape.width, shape.num_actions, learner == "OrderedExpRef"
    )
    gaps = 0.95 * table[0, shape.width] * 2.0 ** -np.arange(60)
    largest = LARGEST_GAP
    if shape.ordered:
        largest = min(largest, (1 - last_unit(shape.horizon, shape.width)) / shape.width)
    return gaps[(gaps >= SMALLEST_GAP) & (gaps <= largest)]


def instances_of(shape: Shape, learner: str) -> dict[str, MDP]:
    """The fixed instance, and the family of the worst case named by the gaps."""
    import jax

    H, k, A = shape.horizon, shape.width, shape.num_actions
    gaps = [float(gap) for gap in gaps_of(shape, learner)]
    if shape.ordered:
        fixed = exact("prophet-uniform", horizon=H, capacity=k, num_values=A)
        return {FIXED: fixed} | {f"{gap:.9g}": tied_prophet(H, k, A, gap) for gap in gaps}
    sizes = {"horizon": H, "width": k, "num_actions": A, "num_outcomes": 2}
    fixed = exact("random-general", key=jax.random.key(3), **sizes)
    theta = [1] * H  # not action 0, which a learner plays before it knows anything
    needle = {
        f"{gap:.9g}": exact("hard-general", theta=theta, num_actions=A, gap=gap) for gap in gaps
    }
    return {FIXED: fixed} | needle


def with_horizons(learner: Any, shape: Shape, horizons: np.ndarray, longest: int) -> Any:
    """The learner once per T of ``horizons``, as a parameter grid of runs of ``longest`` episodes.

    ExpRef uses T in two places: n = ceil(12 ln T / eps^2), and phases run while eps > sqrt(H k A ln
    T / T). With both set as parameters, the first T episodes of a longer run are those of a run of
    T episodes.
    """
    from jaxbandit.sweeps.parameters import LearnerGrid

    T = np.asarray(horizons, np.float64)
    params = {
        name: np.broadcast_to(value, (T.size, *np.shape(value))).copy()
        for name, value in learner.params.items()
    }
    params["episodes_scale"] = np.log(T) / np.log(float(longest))
    params["last_epsilon"] = np.sqrt(shape.num_arms * np.log(T) / T)
    return LearnerGrid(learner._replace(params=params), ("episodes_scale", "last_epsilon"))


def label_of(shape: Shape, learner: str) -> str:
    """The sweep of a learner on a shape."""
    return f"{shape.label}-{learner}"


def sweeps(options: Options) -> dict[str, dict[str, Any]]:
    """One sweep per shape and learner: the fixed instance and the gaps, for every T."""
    import jaxbandit as jb

    longest = options.choose_episodes(LONGEST, full=LONGEST)
    seeds = options.choose_seeds(64, full=256)
    known = {
        "ExpRef": jb.make_learner("expref"),
        "OrderedExpRef": jb.make_learner("ordered-expref"),
    }
    horizons = horizons_of(longest)
    between = np.rint(np.geomspace(100, longest, 89)).astype(np.int64)  # eight per decade
    points = np.unique(np.concatenate([horizons, between[between <= longest]]))
    return {
        label_of(shape, name): {
            "learners": {name: with_horizons(known[name], shape, horizons, longest)},
            "instances": instances_of(shape, name),
            "num_episodes": longest,
            "num_seeds": seeds,
            "record": jb.record.explicit([int(T) for T in points]),
        }
        for shape in (SHAPES + MORE_SHAPES if options.full else SHAPES)
        for name in shape.learners
    }


def shapes_in(datasets: Mapping[str, Dataset]) -> list[Shape]:
    """The shapes that were run."""
    return [shape for shape in SHAPES + MORE_SHAPES if label_of(shape, "ExpRef") in datasets]


def worst_cases(datasets: Mapping[str, Dataset]) -> dict[Shape, dict[str, WorstCase]]:
    """All of them, in the order of the shapes."""
    return {
        shape: {name: worst_case(datasets[label_of(shape, name)], name) for name in shape.learners}
        for shape in shapes_in(datasets)
    }


def figures(datasets: dict[str, Dataset], options: Options) -> dict[str, Drawn]:
    """One figure of the fixed instances, one of the worst case."""
    from .scaling_figures import draw_fixed, draw_worst

    del options
    return {
        "scaling-fixed": draw_fixed(datasets),
        "scaling-worst-case": draw_worst(worst_cases(datasets)),
    }


def tables(datasets: dict[str, Dataset], options: Options) -> dict[str, str]:
    """Slopes with their intervals, and constants against both bounds."""
    from jaxbandit.stats.coverage_warnings import FEW_TO_JUDGE, warning_line

    from .scaling_figures import bounds_of

    del options
    head = ["shape", "learner", "fitted from T", "slope", "seeds (95 %)", "steps (95 %)"]
    head += ["sqrt(T ln T)", "upper / regret"]
    rows = []
    for shape, cases in worst_cases(datasets).items():
        for name, case in cases.items():
            upper = bounds_of(shape, name, case.horizons)["upper"][-1] / case.regret[-1]
            if not case.settled:
                rows.append([shape.title, name, "still linear", "", "", "", "", f"{upper:.3g}"])
                continue
            first = f"{case.horizons[case.fitted][0]:.2g}"
            seeds, steps = (f"{low:.3f} to {high:.3f}" for low, high in (case.seeds, case.steps))
            fits = [f"{case.slope:.3f}", seeds, steps, f"{case.reference:.3f}"]
            rows.append([shape.title, name, first, *fits, f"{upper:.3g}"])
    fewest = min(ds.sizes["seed"] for ds in datasets.values())
    note = warning_line(["few"] if fewest < FEW_TO_JUDGE else []).strip()
    return {"slopes.md": f"{write_table(head, rows, 'markdown')}\n\n{note}".rstrip() + "\n"}


EXPERIMENT = Experiment(
    name="scaling",
    description=__doc__,
    sweeps=sweeps,
    figures=figures,
    tables=tables,
    open_to_learners=False,
    outputs={
        "scaling-fixed.png": "regret against T on fixed instances",
        "scaling-worst-case.png": "the largest regret over gaps against T, with fitted slopes",
        "slopes.md": "slopes with intervals, and regret against both bounds",
    },
    takes="about 3 minutes on two cores",
)
