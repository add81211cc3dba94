"""What H, k and A cost: episodes until average regret is down to a target, measured and bounded
(Theorems 3.1, 3.11).

Both learners with the theorems' constants on `patient_prophet`, an ordered instance on which the
right thing is to
wait: under uniform exploration the last stages are reached with probability A^-(H-k), under ordered
exploration with probability at least (1 - k/(2H))^(H-1). And ExpRef on M^theta, the general hard
family. The measure is the first episode from which on regret(t) / t <= TARGET, in runs of 8 x 10^15
episodes (float64 counts whole numbers to 2^53). Dots are runs; lines are the noiseless computation
of `noiseless`, which reaches beyond. The theorems' own number is the T that solves bound(T) =
TARGET x T, with the constants in O(.) taken as 1.

ExpRef pays (Ak)^2 for every further stage, whatever the structure: the price is in C = H
(Ak)^(H-1), and T grows with its square. OrderedExpRef pays a power of H that grows with k: C =
e^((H-1)k/H) (2AH/k)^(k-1) H^k. So there is a horizon from which on the order pays off, and below
which it costs; it moves up with k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit import theory
from jaxbandit.experiment import Experiment, Options
from jaxbandit.plotting.figures import (
    GREY,
    NOTE_SIZE,
    TEXT_SIZE,
    TICK_SIZE,
    Drawn,
    banner,
    new_figure,
    plain_axes,
    styles,
)
from jaxbandit.tabular import write_table

from .noiseless import noiseless_run, time_to_target
from .scaling import exact, power_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

    from jaxbandit.mdp import MDP
    from jaxbandit.plotting.figures import Drawn

LONGEST = 8 * 10**15
TARGET = 0.02
TEMPTATION = 0.4
NEEDLE_GAP = 0.2
LEARNERS = ("ExpRef", "OrderedExpRef")
ORDERED_SIZES = ((2, 1, 2), (5, 1, 2), (8, 1, 2), (4, 2, 2), (5, 2, 2))
MORE_SIZES = ((3, 2, 2), (6, 2, 2), (4, 3, 2), (4, 1, 4))
GENERAL_HORIZONS = (2, 4)
FARTHEST = 1e60
"""T of the noiseless runs that go beyond what can be counted (the number of episodes per arm is
kept)."""


@cache
def patient_prophet(horizon: int, capacity: int, num_actions: int) -> MDP:
    """Prophet problem with certain values: 0.4 at the first H - k stages, 1 at the last k. Waiting
    is optimal.

    Only the largest threshold waits; the other A - 1 take.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = patient_prophet(horizon=4, capacity=2, num_actions=3)
        >>> float(jb.optimal(mdp)[0]), [round(float(x), 6) for x in jb.gaps(mdp)[0, 2]]
        (1.0, [0.3, 0.3, 0.0])
    """
    worth = np.where(np.arange(horizon) < horizon - capacity, TEMPTATION, 1.0)
    values = worth[:, None] * np.linspace(0, 1, num_actions)[None, :]
    certain = np.broadcast_to(np.arange(num_actions) == num_actions - 1, values.shape).astype(float)
    return exact("prophet", values=values, probabilities=certain, capacity=capacity)


@cache
def needle(horizon: int, num_actions: int) -> MDP:
    """M^theta with a fixed gap."""
    return exact("hard-general", theta=[1] * horizon, num_actions=num_actions, gap=NEEDLE_GAP)


def sweeps(options: Options) -> dict[str, dict[str, Any]]:
    """A few sizes by simulation; all sizes of a sweep share T, so that ln T is the same."""
    import jaxbandit as jb

    known = {
        "ExpRef": jb.make_learner("expref"),
        "OrderedExpRef": jb.make_learner("ordered-expref"),
    }
    sizes = ORDERED_SIZES + (MORE_SIZES if options.full else ())
    horizons = (*GENERAL_HORIZONS, 3, 5) if options.full else GENERAL_HORIZONS
    common = {
        "num_episodes": options.choose_episodes(LONGEST, full=LONGEST),
        "num_seeds": options.choose_seeds(16, full=64),
        "record": jb.record.log(400, first=100),
    }
    return {
        "ordered": {"learners": known, "instances": {size_name(*s): patient_prophet(*s) for s in sizes}, **common},
        "general": {
            "learners": {"ExpRef": known["ExpRef"]},
            "instances": {size_name(H, 2, 2): needle(H, 2) for H in horizons}, **common,
        },
    }  # fmt: skip


def size_name(horizon: int, width: int, num_actions: int) -> str:
    """What an instance of that size is called in the sweeps."""
    return f"H={horizon} k={width} A={num_actions}"


class Measured(NamedTuple):
    """The measure of one size."""

    horizon: int
    width: int
    num_actions: int
    noiseless: float
    """Episodes to the target, without noise."""
    bound: float
    """The T of the theorem."""


def bound_time(bound: Callable[[float], float]) -> float:
    """The T with bound(T) = TARGET T, by bisection in log T.

    Example:
        >>> round(bound_time(lambda T: T**0.5))
        2500
    """
    low, high = np.log(3.0), np.log(1e300)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if bound(np.exp(middle)) <= TARGET * np.exp(middle) else (middle, high)
        )
    return float(np.exp(high))


def measure(
    learner: str, sizes: Iterable[tuple[int, int, int]], general: bool = False
) -> list[Measured]:
    """Noiseless and bound of each size (H, k, A)."""
    ordered = learner == "OrderedExpRef"
    upper = theory.upper_bound_ordered if ordered else theory.upper_bound_general
    found = []
    for H, k, A in sizes:
        mdp = needle(H, A) if general else patient_prophet(H, k, A)
        episodes, regret = noiseless_run(mdp, ordered, float(LONGEST))
        if regret[-1] > TARGET * episodes[-1]:
            episodes, regret = noiseless_run(mdp, ordered, FARTHEST)
            # n = 12 ln T / eps^2: scaled back to the ln T of all other runs
            scale = np.log(float(LONGEST)) / np.log(FARTHEST)
            episodes, regret = episodes * scale, regret * scale
        bound = bound_time(partial(upper, H, k, A))
        found.append(
            Measured(
                horizon=H,
                width=k,
                num_actions=A,
                noiseless=time_to_target(episodes, regret, TARGET),
                bound=bound,
            )
        )
    return found


class Crossover(NamedTuple):
    """The smallest H from which on OrderedExpRef is ahead, by three measures (None: not up to the
    largest H)."""

    width: int
    num_actions: int
    theorem: int | None
    """By the expressions of Theorems 3.1 and 3.11 (they have the same T in them, so T does not
    matter)."""
    constants: int | None
    """By C of the start state: what the proofs use."""
    measured: int | None
    """By episodes to the target, noiseless."""


def crossover(width: int, num_actions: int, largest: int = 12) -> Crossover:
    """Where the order pays off, for H = k..largest.

    Example:
        >>> crossover(width=1, num_actions=2, largest=6)
        Crossover(width=1, num_actions=2, theorem=3, constants=2, measured=2)
    """
    horizons = range(max(2, width), largest + 1)
    sizes = [(H, width, num_actions) for H in horizons]
    by_theorem = [
        theory.upper_bound_ordered(*s, 1e9) < theory.upper_bound_general(*s, 1e9) for s in sizes
    ]
    by_constants = [
        theory.thresholds(*s, ordered=True)[0, width]
        < theory.thresholds(*s, ordered=False)[0, width]
        for s in sizes
    ]
    times = [[p.noiseless for p in measure(name, sizes)] for name in LEARNERS]
    by_time = [ordered < general for general, ordered in zip(*times, strict=True)]

    def first(ahead: list[bool]) -> int | None:
        behind = [H for H, wins in zip(horizons, ahead, strict=True) if not wins]
        start = max(behind, default=horizons[0] - 1) + 1
        return start if start <= largest else None

    return Crossover(
        width=width,
        num_actions=num_actions,
        theorem=first(by_theorem),
        constants=first(by_constants),
        measured=first(by_time),
    )


def simulated_times(ds: Dataset, learner: str) -> dict[str, tuple[float, float, float]]:
    """Median episodes to the target with its interval (order statistics), by instance."""
    from jaxbandit.stats import time_to_average_regret

    episodes = ds["episode"].values
    found = {}
    for name in ds["instance"].values:
        runs = ds["regret"].sel(learner=learner, instance=name).transpose("seed", "episode").values
        t = time_to_average_regret(episodes, runs, TARGET)
        found[str(name)] = (t.median, t.low, t.high)
    return found


def rates() -> dict[str, tuple[float, float]]:
    """Growth of the measured time and of the theorem's: per further stage (ExpRef), as a power of H
    (OrderedExpRef)."""

    def slope(x: np.ndarray, points: list[Measured], what: str) -> float:
        return float(np.polyfit(x, np.log([getattr(p, what) for p in points]), 1)[0])

    found = {}
    for k in (1, 2):
        horizons = np.arange(5, 13)
        points = measure("ExpRef", [(int(H), k, 2) for H in horizons])
        factors = [float(np.exp(slope(horizons, points, what))) for what in ("noiseless", "bound")]
        found[f"ExpRef, k={k}, A=2: factor per stage, H = 5..12"] = (factors[0], factors[1])
    for k in (1, 2, 3):
        horizons = np.array([6, 8, 10, 12, 16, 24, 32])
        points = measure("OrderedExpRef", [(int(H), k, 2) for H in horizons])
        powers = [slope(np.log(horizons), points, what) for what in ("noiseless", "bound")]
        found[f"OrderedExpRef, k={k}, A=2: power of H, H = 6..32"] = (powers[0], powers[1])
    return found


def figures(datasets: dict[str, Dataset], options: Options) -> dict[str, Drawn]:
    """Episodes to the target against H (k = 1 and 2), k and A."""
    del options
    return {"price-of-horizon": draw_times(datasets)}


def tables(datasets: dict[str, Dataset], options: Options) -> dict[str, str]:
    """Growth rates, crossovers, and runs against the noiseless computation."""
    del options
    growth = [[name, f"{ours:.3g}", f"{theirs:.3g}"] for name, (ours, theirs) in rates().items()]
    ahead = []
    for k, A in ((1, 2), (1, 3), (2, 2), (2, 3), (3, 2)):
        c = crossover(k, A)
        cells = ["beyond 12" if H is None else f"{H}" for H in (c.theorem, c.constants, c.measured)]
        ahead.append([str(k), str(A), *cells])
    runs = []
    for label, ds in datasets.items():
        for learner in ds["learner"].values:
            for name, (median, low, high) in simulated_times(ds, str(learner)).items():
                size = tuple(int(part.split("=")[1]) for part in name.split())
                (point,) = measure(str(learner), [size], label == "general")  # type: ignore[list-item]
                numbers = [f"{median:.3g}", f"{low:.3g} to {high:.3g}", f"{point.noiseless:.3g}"]
                runs.append([f"{label} {name}", str(learner), *numbers])
    first = "OrderedExpRef is ahead from H = (theorems)"
    parts = [
        (["growth of the time to the target", "measured", "theorem"], growth),
        (["k", "A", first, "constants C", "measured"], ahead),
        (["instance", "learner", "runs: median episodes", "95 % interval", "noiseless"], runs),
    ]
    return {"price.md": "\n\n".join(write_table(*part, "markdown") for part in parts) + "\n"}


def draw_times(datasets: Mapping[str, Dataset]) -> Drawn:
    """Episodes to the target against H (k = 1 and 2), k and A."""
    figure, axes = new_figure((7.5, 4.7), 2, 3)
    style = styles(LEARNERS)
    panels: list[tuple[str, str, list[tuple[int, int, int]], bool]] = [
        ("against H, ordered, k=1, A=2", "horizon", [(H, 1, 2) for H in range(2, 13)], False),
        ("against H, ordered, k=2, A=2", "horizon", [(H, 2, 2) for H in range(2, 13)], False),
        ("against H, ordered, k=3, A=2", "horizon", [(H, 3, 2) for H in range(3, 13)], False),
        (
            "against H, general (M$^\\theta$), k=2, A=2",
            "horizon",
            [(H, 2, 2) for H in range(2, 13)],
            True,
        ),
        ("against k, ordered, H=6, A=2", "width", [(6, k, 2) for k in range(1, 7)], False),
        ("against A, ordered, H=4, k=1", "num_actions", [(4, 1, A) for A in range(2, 11)], False),
    ]
    data = {}
    for ax, (title, which, sizes, general) in zip(axes, panels, strict=True):
        lines = {name: measure(name, sizes, general) for name in LEARNERS[: 1 if general else 2]}
        data[title] = lines
        for name, points in lines.items():
            x = [getattr(p, which) for p in points]
            look: dict[str, Any] = {"color": style[name].color}
            ax.plot(
                x, [p.noiseless for p in points], ls=style[name].line, lw=1.2, label=name, **look
            )
            ax.plot(x, [p.bound for p in points], ls=(0, (1, 1.2)), lw=0.8, alpha=0.9, **look)
            _dots(
                ax,
                datasets["general" if general else "ordered"],
                name,
                points,
                which,
                style[name].color,
            )
        plain_axes(ax)
        power_axis(ax, "y", 1e5, 1e30)
        ax.axhline(2.0**53, color=GREY, lw=0.6)
        ax.set_xticks(range(min(x), max(x) + 1, 2 if len(x) > 6 else 1))
        ax.set_xlabel(
            {"horizon": "horizon H", "width": "width k", "num_actions": "actions A"}[which],
            fontsize=TICK_SIZE,
        )
        ax.set_title(title, loc="left", fontsize=TEXT_SIZE, pad=4)
    axes[0].annotate(
        "2$^{53}$: above, no run can count",
        (2, 2.0**53),
        (0, 3),
        textcoords="offset points",
        fontsize=NOTE_SIZE,
        color=GREY,
    )
    seeds = datasets["ordered"].sizes["seed"]
    title = (
        f"episodes until average regret stays below {TARGET}, theory constants. Lines: noiseless; dots: median of "
        f"{seeds} runs; dotted: T of the theorem"
    )
    banner(figure, axes[0], note=title, size=TEXT_SIZE)
    figure.supylabel("episodes", fontsize=TEXT_SIZE)
    return Drawn(figure, axes, data)


def _dots(
    ax: Axes, ds: Dataset, learner: str, points: list[Measured], which: str, color: str
) -> None:
    times = simulated_times(ds, learner)
    for p in points:
        median, low, high = times.get(
            size_name(p.horizon, p.width, p.num_actions), (np.inf, np.inf, np.inf)
        )
        if np.isfinite(median):
            x = getattr(p, which)
            ax.plot([x, x], [max(low, 1.0), min(high, 1e30)], color=color, lw=0.8)
            ax.plot(x, median, "o", ms=3.6, color=color, mec="white", mew=0.5, zorder=4)


EXPERIMENT = Experiment(
    name="price-of-horizon",
    description=__doc__,
    sweeps=sweeps,
    figures=figures,
    tables=tables,
    open_to_learners=False,
    outputs={
        "price-of-horizon.png": "episodes until average regret is below a target, against H, k, A",
        "price.md": "growth rates and crossovers beside the theorems'",
    },
)
