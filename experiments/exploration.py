"""Why ordered exploration works and what it costs: visits, values and signals, computed exactly
(Lemmas 3.2, 3.5, 3.12).

Nothing is simulated. eta is the exploration policy with all actions active: uniform (ExpRef), or
with probability 1 - k/(2H) the maximal action, else uniform (OrderedExpRef). Its visits Q_{l,i}
decide what can be learned, since Phi_{l,i}(a) - Phi_{l,i}(b) = Q_{l,i} (V_{l,i}(a, tail) -
V_{l,i}(b, tail)).

visits   Q_{l,i} of both against that of the optimal policy, as maps, and the worst ratio Q* / Q
over the states that
         the optimal policy visits, against H. Unrolling the sampling lemmas along a path bounds the
         ratio by A^(i-1) for uniform exploration (attained by `price_of_horizon.patient_prophet`
         with k = 1), and by (1 - k/(2H))^-(i-1) (2HA/k)^(k-l) for ordered exploration: only the k-l
         moves down cost a factor.
value    V(eta) / Opt: what exploration itself earns. Waiting earns nothing, so ordered exploration
pays with reward. signal   The smallest positive difference of Phi between the best and another
action, over the standard deviation of the
         total reward, with the optimal tail: 1 / signal^2 episodes per arm tell the two apart.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit.experiment import Experiment, Options
from jaxbandit.tabular import write_table

from .noiseless import exploration_policy, tables_of, visits_of
from .scaling import exact

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

    from jaxbandit.mdp import MDP
    from jaxbandit.plotting.figures import Drawn

MAP_SIZE = (15, 3, 5)
"""H, k, A of the maps: I1 as in the paper's experiments."""
HORIZONS = (4, 6, 8, 10, 12, 16, 20, 24, 30)
WIDTHS = (1, 2, 4)
NUM_ACTIONS = 5
KINDS = {"uniform": False, "ordered": True}
COLORS = {"uniform": "ExpRef", "ordered": "OrderedExpRef"}
TIE = 1e-12


class Exploration(NamedTuple):
    """What both exploration policies see of one instance; arrays [H, k+1] unless said otherwise."""

    optimum: float
    visits_of_optimal: np.ndarray
    visits: dict[str, np.ndarray]
    """Q_{l,i} by kind of exploration."""
    value: dict[str, float]
    """V(eta)."""
    signal: dict[str, np.ndarray]
    """Smallest positive difference of Phi over the standard deviation; nan where all actions tie or
    Q = 0."""

    def worst_ratio(self, kind: str) -> float:
        """max Q* / Q over the states that the optimal policy visits."""
        seen = self.visits_of_optimal > TIE
        seen[:, 0] = False
        return float(np.max(self.visits_of_optimal[seen] / self.visits[kind][seen]))

    def ratio_bound(self, kind: str, num_actions: int) -> float:
        """The largest of the bounds on Q* / Q at the states that the optimal policy visits."""
        H, levels = self.visits_of_optimal.shape
        k = levels - 1
        stage, level = np.arange(H)[:, None], np.arange(levels)[None, :]
        if kind == "uniform":
            bound = float(num_actions) ** stage + 0.0 * level
        else:
            bound = (1 - k / (2 * H)) ** -stage.astype(float) * (2 * H * num_actions / k) ** (
                k - level
            ).astype(float)
        seen = self.visits_of_optimal > TIE
        seen[:, 0] = False
        return float(np.max(bound[seen]))


def moments(mdp: MDP, policy: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation of the total reward of a randomised policy [H, k+1, A], by
    backward induction.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("hard-general", theta=[0, 0], num_actions=2, gap=0.0)
        >>> moments(mdp, np.full((2, 3, 2), 0.5))
        (0.5, 0.5)
    """
    weight = policy[..., None] * np.asarray(mdp.prob, np.float64)
    weight = weight / weight.sum((2, 3), keepdims=True)
    reward, target = np.asarray(mdp.reward, np.float64), np.asarray(mdp.next_level)
    first, second = np.zeros(mdp.width + 1), np.zeros(mdp.width + 1)
    for i in reversed(range(mdp.horizon)):
        r, after = reward[i], first[target[i]]
        square = r**2 + 2 * r * after + second[target[i]]
        first, second = np.sum(weight[i] * (r + after), (1, 2)), np.sum(weight[i] * square, (1, 2))
    start = int(mdp.start)
    return float(first[start]), float(np.sqrt(max(0.0, second[start] - first[start] ** 2)))


def explore(mdp: MDP) -> Exploration:
    """Everything about both kinds of exploration on an ordered instance.

    Example:
        >>> import jaxbandit as jb
        >>> found = explore(jb.make_instance("prophet-uniform", horizon=6, capacity=1, num_values=4))
        >>> bool(found.worst_ratio("uniform") > found.worst_ratio("ordered"))
        True
    """
    kernel, pay = tables_of(mdp)
    H, levels, A, _ = kernel.shape
    q, tail = np.zeros((H, levels, A)), np.zeros(levels)
    for i in reversed(range(H)):
        q[i] = pay[i] + kernel[i] @ tail
        tail = q[i].max(-1)
    best = np.eye(A)[q.argmax(-1)]
    start = int(mdp.start)
    visits, value, signal = {}, {}, {}
    for kind, ordered in KINDS.items():
        eta = exploration_policy(mdp, ordered)
        visits[kind] = visits_of(kernel, eta, start)
        value[kind] = moments(mdp, eta)[0]
        behind = q.max(-1, keepdims=True) - q
        gap = np.where(behind > TIE, behind, np.inf).min(-1)
        signal[kind] = np.full((H, levels), np.nan)
        for i, level in np.argwhere(np.isfinite(gap) & (visits[kind] > TIE)):
            if level > 0:
                policy = np.where((np.arange(H) > i)[:, None, None], best, eta)
                policy[i, level] = best[i, level]
                deviation = moments(mdp, policy)[1]
                difference = visits[kind][i, level] * gap[i, level]
                signal[kind][i, level] = difference / deviation if deviation > TIE else np.inf
    return Exploration(
        optimum=float(tail[start]),
        visits_of_optimal=visits_of(kernel, best, start),
        visits=visits,
        value=value,
        signal=signal,
    )


@cache
def uniform_prophet(horizon: int, capacity: int, num_values: int) -> Exploration:
    """`explore` on I1."""
    return explore(
        exact("prophet-uniform", horizon=horizon, capacity=capacity, num_values=num_values)
    )


def sweeps(options: Options) -> dict[str, dict[str, Any]]:
    """None: everything here is exact planning."""
    del options
    return {}


def figures(datasets: dict[str, Dataset], options: Options) -> dict[str, Drawn]:
    """Maps of visits and signals on I1, and ratios and values against H."""
    del datasets, options
    return {"exploration-maps": draw_maps(), "exploration-horizon": draw_against_horizon()}


def draw_maps() -> Drawn:
    """log10 of the visits of three policies, and of the signal under both kinds of exploration."""
    from jaxbandit.plotting.figures import GREY, NOTE_SIZE, TEXT_SIZE, Drawn, new_figure

    found = uniform_prophet(*MAP_SIZE)
    figure, axes = new_figure((7.5, 3.3), 2, 3)
    visits = {
        "optimal policy": found.visits_of_optimal,
        **{f"{k} exploration": v for k, v in found.visits.items()},
    }
    signals = {f"signal, {kind} exploration": v for kind, v in found.signal.items()}
    lowest = -5.0
    for ax, (title, table) in zip(axes[:3], visits.items(), strict=True):
        image = _map(ax, table, lowest, 0.0, "viridis")
        ax.set_title(f"visits, {title}", loc="left", fontsize=TEXT_SIZE, pad=3)
    figure.colorbar(image, ax=axes[:3], shrink=0.9, pad=0.01).ax.tick_params(labelsize=NOTE_SIZE)
    for ax, (title, table) in zip(axes[4:], signals.items(), strict=True):
        image = _map(ax, table, lowest, -1.0, "magma")
        ax.set_title(title, loc="left", fontsize=TEXT_SIZE, pad=3)
    figure.colorbar(image, ax=axes[4:], shrink=0.9, pad=0.01).ax.tick_params(labelsize=NOTE_SIZE)
    H, k, A = MAP_SIZE
    axes[3].axis("off")
    axes[3].annotate(
        f"I1, H={H}, k={k}, A={A}. Colours: log10.\n"
        "Visits: Q$_{l,i}$, the probability of being\nat level l of stage i.\n"
        "Signal: smallest positive difference of $\\Phi$\nto the best action, over the standard\ndeviation of the total "
        "reward.\nWhite: never visited (or all actions tie).",
        (0, 0.95), xycoords="axes fraction", va="top", fontsize=NOTE_SIZE + 0.5, color=GREY, linespacing=1.3,
    )  # fmt: skip
    figure.supxlabel("stage i", fontsize=TEXT_SIZE)
    return Drawn(figure, axes, {**visits, **signals})


def _map(ax: Axes, table: np.ndarray, low: float, high: float, colours: str) -> Any:
    with np.errstate(divide="ignore"):
        logs = np.where(table[:, 1:] > TIE, np.log10(table[:, 1:]), np.nan).T
    H, k = table.shape[0], table.shape[1] - 1
    image = ax.imshow(
        logs, aspect="auto", origin="lower", cmap=colours, vmin=low, vmax=high, extent=(0.5, H + 0.5, 0.5, k + 0.5),
    )  # fmt: skip
    ax.set_xticks([1, *range(5, H + 1, 5)])
    ax.set_yticks(range(1, k + 1))
    ax.set_ylabel("level l", fontsize=6.5)
    ax.tick_params(labelsize=6.5, length=2)
    return image


def draw_against_horizon() -> Drawn:
    """Worst ratio of visits with its bound, value of exploration, and the weakest signal, against
    H."""
    from jaxbandit.plotting.figures import (
        TEXT_SIZE,
        TICK_SIZE,
        Drawn,
        banner,
        new_figure,
        plain_axes,
        styles,
    )

    from .scaling import power_axis

    look = styles(list(COLORS.values()))
    figure, axes = new_figure((7.5, 2.75), 1, 3)
    lines: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1.2, 1.2)))
    data: dict[str, Any] = {}
    for width, line in zip(WIDTHS, lines, strict=True):
        found = [uniform_prophet(H, width, NUM_ACTIONS) for H in HORIZONS]
        for kind, name in COLORS.items():
            style = {
                "color": look[name].color,
                "ls": line,
                "lw": 1.2,
                "label": f"{kind}, k={width}",
            }
            ratio = [f.worst_ratio(kind) for f in found]
            value = [f.value[kind] / f.optimum for f in found]
            weakest = [weakest_signal(f, kind) for f in found]
            for ax, values in zip(axes, (ratio, value, weakest), strict=True):
                ax.plot(HORIZONS, values, **style)
            data[f"{kind}, k={width}"] = {"ratio": ratio, "value": value, "weakest": weakest}
    for kind, name in COLORS.items():
        bound = [
            uniform_prophet(H, 1, NUM_ACTIONS).ratio_bound(kind, NUM_ACTIONS) for H in HORIZONS
        ]
        axes[0].plot(HORIZONS, bound, color=look[name].color, lw=2.4, alpha=0.25)
    power_axis(axes[0], "y", 1, 1e9)
    power_axis(axes[2], "y", 1e-8, 1)
    axes[1].set_ylim(0, 1)
    titles = (
        "worst Q*/Q over visited states",
        "value of exploration / Opt",
        "weakest signal where Q* > 0.01",
    )
    for ax, title in zip(axes, titles, strict=True):
        plain_axes(ax)
        ax.set_xlabel("horizon H", fontsize=TICK_SIZE)
        ax.set_title(title, loc="left", fontsize=TEXT_SIZE, pad=4)
    title = f"I1 with A={NUM_ACTIONS}, exact; wide pale lines: the lemmas' bounds for k=1"
    banner(figure, axes[0], note=title)
    return Drawn(figure, axes, data)


def weakest_signal(found: Exploration, kind: str) -> float:
    """The smallest signal over the states that the optimal policy visits with probability above
    0.01."""
    seen = (found.visits_of_optimal > 0.01) & np.isfinite(found.signal[kind])
    return float(found.signal[kind][seen].min())


def tables(datasets: dict[str, Dataset], options: Options) -> dict[str, str]:
    """Worst ratios with their bounds, values and weakest signals."""
    del datasets, options
    head = ["H", "k", "exploration", "worst Q*/Q", "bound", "value / Opt", "weakest signal"]
    rows = []
    for width in WIDTHS:
        for H in (HORIZONS[0], 10, 20, HORIZONS[-1]):
            found = uniform_prophet(H, width, NUM_ACTIONS)
            for kind in KINDS:
                weakest = weakest_signal(found, kind)
                reals = (found.worst_ratio(kind), found.ratio_bound(kind, NUM_ACTIONS))
                value = f"{found.value[kind] / found.optimum:.3f}"
                signals = (weakest, weakest**-2)
                first = [str(H), str(width), kind, *(f"{x:.3g}" for x in reals)]
                rows.append([*first, value, *(f"{x:.3g}" for x in signals)])
    head.append("episodes per arm, 1 / signal^2")
    return {"exploration.md": write_table(head, rows, "markdown") + "\n"}


EXPERIMENT = Experiment(
    name="exploration",
    description=__doc__,
    sweeps=sweeps,
    figures=figures,
    tables=tables,
    open_to_learners=False,
    outputs={
        "exploration-maps.png": "visits and signals per state, under both kinds of exploration",
        "exploration-horizon.png": "visitation ratios and values against H",
        "exploration.md": "worst ratios with their bounds",
    },
    takes="under a minute (nothing is simulated)",
)
