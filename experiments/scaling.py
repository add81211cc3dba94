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

from jaxbandit import theory
from jaxbandit.experiment import Experiment, Options
from jaxbandit.tabular import write_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

    from jaxbandit.mdp import MDP
    from jaxbandit.plotting.figures import Drawn

MIN_FITTED = 4
FIXED = "fixed"
"""Name of the fixed instance in every sweep; the others are named by their gap."""
LONGEST = 10**13
SMALLEST_GAP, LARGEST_GAP = 2.0**-19, 0.45


class WorstCase(NamedTuple):
    """The worst case of one learner on one family."""

    horizons: np.ndarray
    """[P]: T."""
    regret: np.ndarray
    """[P]: largest mean regret over the gaps."""
    low: np.ndarray
    """[P]: 95 % t-interval over seeds, at the worst gap."""
    high: np.ndarray
    gap: np.ndarray
    """[P]: where it is attained."""
    fitted: np.ndarray
    """bool [P]: T from which on the worst gap is not the largest of the family."""
    slope: float
    """Least squares of log regret against log T over the fitted T."""
    seeds: tuple[float, float]
    """95 % jackknife interval of the slope over seeds: how much of it is chance."""
    steps: tuple[float, float]
    """95 % t-interval of the slope from the residuals: how far the doubling of phases bends the
    line."""
    reference: float
    """The same fit to sqrt(T ln T)."""

    @property
    def settled(self) -> bool:
        """Whether enough T (two decades) lie beyond the linear beginning for the slope to mean
        something."""
        return int(self.fitted.sum()) >= MIN_FITTED


def horizons_of(longest: int) -> np.ndarray:
    """T from 10^4 to ``longest``, two per decade."""
    steps = max(2, round(2 * np.log10(longest / 1e4)) + 1)
    return np.unique(np.rint(np.geomspace(min(1e4, longest), longest, steps)).astype(np.int64))


def worst_case(ds: Dataset, learner: str) -> WorstCase:
    """The largest mean regret over the instances of ``ds``, at every T of its parameter grid."""
    from scipy import stats

    from jaxbandit.stats.intervals import band, jackknife_half_width

    last = ds["episode"].values[-1]
    horizons = horizons_of(int(last)).astype(np.float64)
    names = [name for name in ds["instance"].values if name != FIXED]
    at = np.arange(horizons.size)
    chosen = ds["regret"].sel(learner=learner, instance=names, episode=horizons.astype(np.int64))
    # [gap, T, seed]: the run for T, read after T episodes
    runs = chosen.transpose("instance", "parameter", "episode", "seed").values[:, at, at]
    gaps = np.asarray([float(name) for name in names])
    mean = runs.mean(-1)
    where = mean.argmax(0)
    count = runs.shape[-1]
    over_seeds = band(runs[where, at].T, "t", 0.95)
    interior = gaps[where] < gaps.max()
    fitted = np.flip(np.logical_and.accumulate(np.flip(interior)))
    if fitted.sum() < 3:
        fitted = at >= horizons.size - 3
    x = np.log(horizons[fitted])
    x = x - x.mean()
    y = np.log(mean.max(0))[fitted]
    slope = float(y @ x / (x @ x))
    # means with one seed left out each
    without = (runs.sum(-1, keepdims=True) - runs) / (count - 1)
    chance = jackknife_half_width(np.log(without.max(0))[fitted].T @ x / (x @ x), 0.95)
    residual = y - y.mean() - slope * x
    bend = stats.t.ppf(0.975, x.size - 2) * np.sqrt(residual @ residual / (x.size - 2) / (x @ x))
    log_root = 0.5 * (np.log(horizons) + np.log(np.log(horizons)))[fitted]
    return WorstCase(
        horizons=horizons,
        regret=mean.max(0),
        low=np.maximum(over_seeds.low, 0.0),
        high=over_seeds.high,
        gap=gaps[where],
        fitted=fitted,
        slope=slope,
        seeds=(slope - chance, slope + chance),
        steps=(slope - bend, slope + bend),
        reference=float(log_root @ x / (x @ x)),
    )


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
    from jaxbandit.sweeps.arguments import LearnerGrid

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
    del options
    return {
        "scaling-fixed": draw_fixed(datasets),
        "scaling-worst-case": draw_worst(worst_cases(datasets)),
    }


def tables(datasets: dict[str, Dataset], options: Options) -> dict[str, str]:
    """Slopes with their intervals, and constants against both bounds."""
    from jaxbandit.stats.intervals import FEW_TO_JUDGE, warning_line

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


def bounds_of(shape: Shape, learner: str, horizons: np.ndarray) -> dict[str, np.ndarray]:
    """The bound expressions without their unknown constants: "upper", and "lower" where Section 4
    has one."""
    H, k, A = shape.horizon, shape.width, shape.num_actions
    upper = theory.upper_bound_ordered if learner == "OrderedExpRef" else theory.upper_bound_general
    found = {"upper": upper(H, k, A, horizons)}
    if not shape.ordered and k == 2:
        found["lower"] = theory.lower_bound_general(H, A, horizons)
    return found


def power_axis(ax: Axes, which: str, low: float, high: float, most: int = 6) -> None:
    """A log axis whose ticks are powers of ten, at most about ``most`` of them with a number."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    axis = getattr(ax, f"{which}axis")
    getattr(ax, f"set_{which}scale")("log")
    getattr(ax, f"set_{which}lim")(low, high)
    powers = np.arange(np.ceil(np.log10(low) - 1e-9), np.floor(np.log10(high) + 1e-9) + 1)
    step = int(np.ceil(powers.size / most))
    axis.set_major_locator(FixedLocator((10.0 ** powers[::step]).tolist()))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"$10^{{{round(np.log10(value))}}}$"))
    axis.set_minor_locator(FixedLocator((10.0**powers).tolist()))
    axis.set_minor_formatter(NullFormatter())


def decades(values: np.ndarray) -> tuple[float, float]:
    """The powers of ten around positive values."""
    return 10.0 ** np.floor(np.log10(np.min(values))), 10.0 ** np.ceil(np.log10(np.max(values)))


def draw_fixed(datasets: Mapping[str, Dataset]) -> Drawn:
    """Log-log regret of the long runs; dots where active sets shrink, ticks at phase ends."""
    from jaxbandit.plotting.figures import TEXT_SIZE, Drawn, banner, plain_axes, styles
    from jaxbandit.stats.intervals import method_of_all
    from jaxbandit.stats.replication import band_of_regrets

    shapes = shapes_in(datasets)
    figure, axes = _panels(len(shapes), 2.05)
    style = styles(["ExpRef", "OrderedExpRef"])
    data: dict[str, Any] = {}
    for ax, shape in zip(axes, shapes, strict=True):
        drawn = {}
        for row, name in enumerate(shape.learners):
            ds = datasets[label_of(shape, name)].isel(learner=0, parameter=-1).sel(instance=FIXED)
            episodes = ds["episode"].values.astype(np.float64)
            b = drawn[name] = band_of_regrets(ds["regret"].transpose("seed", "episode").values)
            ax.fill_between(episodes, b.low, b.high, color=style[name].color, alpha=0.25, lw=0)
            ax.plot(
                episodes, b.center, color=style[name].color, ls=style[name].line, lw=1.3, label=name
            )
            _mark_phases(ax, ds, style[name].color, row)
        data[shape.title] = drawn
        plain_axes(ax)
        values = np.concatenate([b.center for b in drawn.values()])
        power_axis(ax, "x", episodes[0], episodes[-1])
        power_axis(ax, "y", *decades(values))
        which = "I1" if shape.ordered else "random"
        ax.set_title(f"{which}, {shape.title}", loc="left", fontsize=TEXT_SIZE, pad=4)
    every = [b for panel in data.values() for b in panel.values()]
    title = (
        f"theory constants, one run of T = $10^{{{np.log10(episodes[-1]):.3g}}}$ per seed; "
        f"{method_of_all(every)}, {every[0].n} seeds;\n"
        "dots: a phase ends in which actions fall; marks along the top: all phase ends (median)"
    )
    banner(figure, axes[-1], note=title, size=TEXT_SIZE)
    figure.supxlabel("episode", fontsize=TEXT_SIZE)
    figure.supylabel("cumulative regret", fontsize=TEXT_SIZE)
    return Drawn(figure, axes, data)


def _panels(count: int, height: float) -> tuple[Any, list[Axes]]:
    """A figure of ``count`` panels, three in a row."""
    from jaxbandit.plotting.figures import new_figure

    columns = min(3, count)
    rows = -(-count // columns)
    figure, axes = new_figure((2.5 * columns, height * rows + 0.5), rows, columns)
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def _mark_phases(ax: Axes, ds: Dataset, color: str, row: int) -> None:
    """Marks along the top at the phase ends (medians), and dots on the curve where active sets
    shrink."""
    active = (
        ds["active_actions"]
        .isel(level=slice(1, None))
        .sum(("stage", "level"), skipna=False)
        .median("seed")
        .values
    )
    ends = ds["phase_end"].median("seed").values
    before = np.concatenate([[active[0]], active[:-1]])
    fewer = np.isfinite(ends) & (active < before)
    mean = ds["regret"].mean("seed").values
    at = np.exp(
        np.interp(np.log(ends[fewer]), np.log(ds["episode"].values.astype(float)), np.log(mean))
    )
    ax.plot(ends[fewer], at, "o", ms=3.4, color=color, mec="white", mew=0.5, zorder=4)
    done = ends[np.isfinite(ends)]
    ax.plot(
        done,
        np.full(done.size, 0.985 - 0.035 * row),
        "|",
        ms=3.5,
        mew=0.7,
        color=color,
        transform=ax.get_xaxis_transform(),
    )


def draw_worst(cases: Mapping[Shape, Mapping[str, WorstCase]]) -> Drawn:
    """Log-log worst case with fitted slopes and both bounds, one panel per shape."""
    from jaxbandit.plotting.figures import (
        GREY,
        NOTE_SIZE,
        TEXT_SIZE,
        Drawn,
        banner,
        plain_axes,
        styles,
    )  # fmt: skip

    figure, axes = _panels(len(cases), 2.2)
    style = styles(["ExpRef", "OrderedExpRef"])
    for ax, (shape, learners) in zip(axes, cases.items(), strict=True):
        texts = []
        tops = []
        for name, case in learners.items():
            color = style[name].color
            ax.fill_between(case.horizons, case.low, case.high, color=color, alpha=0.25, lw=0)
            ax.plot(case.horizons, case.regret, "o", ms=2.4, color=color, zorder=3, clip_on=False)
            before = case.horizons <= case.horizons[case.fitted][0]
            ax.plot(case.horizons[before], case.regret[before], lw=0.6, color=color, alpha=0.6)
            x = case.horizons[case.fitted]
            if case.settled:
                middle = np.exp(np.mean(np.log(case.regret[case.fitted]) - case.slope * np.log(x)))
                ax.plot(x, middle * x**case.slope, color=color, lw=1, ls=style[name].line)
            for kind, bound in bounds_of(shape, name, case.horizons).items():
                ax.plot(
                    case.horizons,
                    bound,
                    lw=0.9,
                    ls=(0, (1, 1.2)),
                    color=color if kind == "upper" else GREY,
                )
                tops.append(bound)
            wide = max(case.slope - case.steps[0], case.slope - case.seeds[0])
            shown = (
                f"slope {case.slope:.2f} ± {wide:.2f}" if case.settled else "still linear, no slope"
            )
            texts.append((f"{name}: {shown}", color))
        values = np.concatenate([np.concatenate([c.regret for c in learners.values()]), *tops])
        plain_axes(ax)
        first = next(iter(learners.values()))
        power_axis(ax, "x", first.horizons[0], first.horizons[-1])
        power_axis(ax, "y", *decades(values))
        ax.set_title(shape.title, loc="left", fontsize=TEXT_SIZE, pad=4)
        for row, (text, color) in enumerate(texts):
            ax.annotate(
                text,
                (0.99, 0.03 + 0.09 * row),
                xycoords="axes fraction",
                ha="right",
                fontsize=NOTE_SIZE,
                color=color,
            )
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [],
            [],
            color=style[name].color,
            ls=style[name].line,
            marker="o",
            ms=2.6,
            lw=1,
            label=name,
        )
        for name in ("ExpRef", "OrderedExpRef")
    ]
    handles += [
        Line2D(
            [],
            [],
            color=style["ExpRef"].color,
            ls=(0, (1, 1.2)),
            lw=0.9,
            label="upper bound (its colour)",
        ),
        Line2D([], [], color=GREY, ls=(0, (1, 1.2)), lw=0.9, label="lower bound"),
    ]
    title = (
        "largest mean regret over a family of gaps, a run of its own for every T; line: least squares where the\n"
        "worst gap is inside the family; ±: the wider of the 95 % intervals over seeds and from the residuals"
    )
    banner(figure, handles, note=title)
    figure.supxlabel("number of episodes T", fontsize=TEXT_SIZE)
    figure.supylabel("worst-case regret", fontsize=TEXT_SIZE)
    return Drawn(figure, axes, {shape.title: dict(found) for shape, found in cases.items()})


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
