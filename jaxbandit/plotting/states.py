"""Maps over the states (level x stage): active sets of ExpRef, policies against the optimal one, instances; one episode.

Stages run to the right, levels upwards; level 0 (exhausted) is left out, since nothing is chosen
there. Maps of more than eight stages stand one below the other, so that their cells can be read.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxbandit import planning
from jaxbandit.checks import accept, real_array, typed
from jaxbandit.inspect import Episode
from jaxbandit.mdp import MDP, single
from jaxbandit.mdp.labels import Labels, labels_of, short
from jaxbandit.plotting.figures import (
    GREY,
    LETTER,
    LIGHT_GREY,
    NOTE_SIZE,
    TEXT_SIZE,
    TICK_SIZE,
    TITLE_SIZE,
    Drawn,
    axes_of,
    balanced,
    caption_of,
    compact,
    figure_of,
    grid_of,
    literal,
    panel_axes,
    readable,
)
from jaxbandit.results.axes import whole
from jaxbandit.results.dataset import crop, instance_of, runs_of
from jaxbandit.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SMALLEST_VISIT = 1e-9
"""States visited with a smaller probability count as never reached."""
SMALLEST_LOSS = 1e-6
"""Actions that lose less (rounding in float32) count as optimal: several actions can be."""
DIFFERENT = "#CC2200"
SMALLEST_TEXT = 4.5
"""Points; cells too narrow for it are left without text."""
MOST_COLORS = 20
"""Up to so many actions each have a colour of their own."""
MOST_STAGES = 8
"""Maps with more stages stand one below the other."""
TAKEN, LEFT, OVER = "#009E73", "white", "#eeeeee"
"""Colours of the boxes: something was taken or paid, nothing was, level 0."""
ROWS = {"stage": 1.45, "offered": 0.75, "reward": 0.75, "action": 0.05, "level": -0.45}
"""Height of each row; boxes are 1 wide and 1 high and stand at 0.35."""
MOST_BOXES, STRIP = 8, 2.6
"""Boxes beside each other, and how far below them the next ones stand."""


def plot_active_sets(
    ds: Any,
    learner: str,
    instance: str | None = None,
    *,
    phases: Sequence[int] | None = None,
    parameter: int | None = None,
    columns: int | None = None,
    title: str | None = None,
    size: tuple[float, float] | None = None,
    ax: Axes | Sequence[Axes] | None = None,
) -> Drawn:
    """How many actions are alive in each state after each phase, on average over the seeds that
    finished it.

    Args:
        ds: the Dataset of a sweep.
        learner: a learner with phases.
        instance: not needed if there is one.
        phases: numbers of the phases to draw (from 1), default all that some seed finished.
        parameter: index along the parameter grid, if the sweep has one of more than one value.
        columns: panels per row; default two, or one for more than eight stages.
        title: default learner and instance.
        size: width and height of a new figure in inches; by default what the cells need.
        ax: one Axes per phase instead of a new figure.

    Returns:
        `Drawn` with ``data``: phase -> float [levels 1..k, stages 1..H], nan where the instance has
        no such state.

    Example:
        >>> import numpy as np, xarray as xr
        >>> alive = np.full((1, 1, 4, 2, 3, 3), 2.0)    # learner, instance, seed, phase, stage, level
        >>> dims = ("learner", "instance", "seed", "phase", "stage", "level")
        >>> names = {"learner": ["ExpRef"], "instance": ["I1"]}
        >>> ds = xr.Dataset({"active_actions": (dims, alive)}, coords=names)
        >>> {phase: values.shape for phase, values in plot_active_sets(ds, "ExpRef").data.items()}
        {1: (2, 3), 2: (2, 3)}
    """
    ds = whole(ds)
    alive = runs_of(ds, "active_actions", learner, instance, parameter).astype(np.float64)
    alive = alive.transpose("seed", "phase", "stage", "level")
    count = len(alive)
    done = alive.notnull().any(["stage", "level"]).sum("seed").values  # seeds, by phase
    finished = (np.flatnonzero(done) + 1).tolist()
    if not finished:
        raise ValueError(
            f"learner: {learner!r} has finished no phase; accepted: a learner with phases, and longer runs"
        )
    listed = finished if phases is None else phases
    if not isinstance(listed, Sequence) or not listed:
        raise ValueError(f"phases: {phases!r}; accepted: a list of some of {finished}, or None")
    chosen = list(listed)
    for phase in chosen:
        accept("phases", phase, finished)
    mean = alive.mean("seed").values
    data = {phase: upright(crop(mean[phase - 1])) for phase in chosen}
    top, maps = max(float(alive.max()), 2.0), []
    ends = None
    if "phase_end" in ds:
        ends = runs_of(ds, "phase_end", learner, instance, parameter).median("seed").values
    for phase, values in data.items():
        j = phase - 1
        when = "" if ends is None else f", episode {compact(float(f'{ends[j]:.2g}'))}"
        seeds = "" if done[j] == count else f" ({done[j]} of {count} seeds)"
        maps.append(Map(f"phase {phase}{when}{seeds}", values, 1.0, top, form="{:.2g}"))
    meaning = f"actions alive, mean of {count} seeds"
    title = title or literal(f"{learner}, {alive['instance'].item()}")
    axes = draw_maps(ax, maps, title, columns=columns, size=size, meaning=meaning)
    return Drawn(figure_of(axes[0]), axes, data, meaning)


def plot_policy(
    policy: Any,
    against: Any = None,
    *,
    learner: str | None = None,
    instance: str | None = None,
    seed: int = 0,
    parameter: int | None = None,
    visitation: Array | None = None,
    title: str | None = None,
    subtitle: bool = True,
    size: tuple[float, float] | None = None,
    ax: Sequence[Axes] | None = None,
) -> Drawn:
    """The action (in the prophet problem: the index of the threshold) per state, learned beside
    optimal.

    States in which the two differ are framed in red; if ``against`` is an MDP, only those in which
    the learned action loses something (several actions can be optimal). States that the learned
    policy never reaches are grey, if visitation is known (``against`` is an MDP, or ``visitation``
    is given, or the Dataset holds the instance); unknown or randomised actions are blank. Cells say
    the action's name if the MDP has labels ("0.5" for "accept from 0.5"), else its number.

    Args:
        policy: int [H, k+1], or the Dataset of a sweep (then ``learner``, ``instance``, ``seed``
            choose a run).
        against: an MDP (its optimal policy), or a policy int [H, k+1]; not needed with a Dataset.
        learner: for a Dataset.
        instance: for a Dataset with several.
        seed: for a Dataset.
        parameter: index along the parameter grid of a Dataset that has one of more than one value.
        visitation: float [H, k+1], probability that the learned policy visits each state.
        title: a heading.
        subtitle: whether the figure counts the framed states; ``.caption`` always does.
        size: width and height of a new figure in inches; by default what the cells need.
        ax: two Axes instead of a new figure.

    Returns:
        `Drawn` with ``data``: "learned", "optimal", "different" and "reached", each [levels 1..k,
        stages 1..H].

    Example:
        >>> import jaxbandit as jb, numpy as np
        >>> mdp = jb.make_instance("prophet-uniform", horizon=4, capacity=2, num_values=3)
        >>> drawn = plot_policy(np.zeros((4, 3), int), mdp)
        >>> drawn.data["learned"].shape, bool(drawn.data["different"].any())
        ((2, 4), True)
    """
    from matplotlib.patches import Rectangle

    if hasattr(policy, "data_vars"):
        ds = whole(policy)
        runs = runs_of(ds, "final_policy", learner, instance, parameter)
        accept("seed", seed, range(runs.sizes["seed"]))
        where = runs["instance"].item()
        stored = ds["optimal_policy"].sel(instance=where).transpose("stage", "level").values
        learned = crop(runs.isel(seed=seed).transpose("stage", "level").values, stored)
        learned = learned.astype(np.float64)
        if against is None:
            against = instance_of(ds, where) if "mdp_prob" in ds else crop(stored)
        title = literal(f"{learner}, {where}, seed {seed}") if title is None else title
    else:
        learned = np.asarray(real_array("policy", policy), np.float64)
    if against is None:
        raise ValueError("against: None; accepted: an MDP or a policy [H, k+1]")
    if isinstance(against, MDP):
        optimal, losing, visitation = _plan(against, learned, visitation)
    else:
        optimal, losing = np.asarray(real_array("against", against), np.float64), None
    if learned.ndim != 2 or learned.shape != optimal.shape:
        raise ValueError(
            f"policy, against: shapes {learned.shape}, {optimal.shape}; accepted: [H, k+1], the same for both"
        )
    if visitation is not None and np.shape(visitation) != learned.shape:
        raise ValueError(
            f"visitation: shape {np.shape(visitation)}; accepted: that of the policy, {learned.shape}"
        )
    mine, best = upright(learned), upright(optimal)
    known = np.isfinite(mine) & np.isfinite(best)
    reached = np.ones_like(known) if visitation is None else upright(visitation) > SMALLEST_VISIT
    different = known & reached & (mine != best if losing is None else upright(losing) > 0)
    labels = labels_of(against) if isinstance(against, MDP) else Labels()
    names = common_names(labels)
    top = max(1.0, len(names) - 1.0, float(np.nanmax([mine, best])))
    does = "differ" if losing is None else "lose something"
    notes = [f"{different.sum()} of {int((known & reached).sum())} states {does}"]
    notes += [] if reached.all() else ["grey: never reached"]
    head = f"learned: {'; '.join(notes)}" if subtitle else "learned"
    maps = [action_map(head, mine, top, labels, reached), action_map("optimal", best, top, labels)]
    meaning = "" if names else "action" if not labels.actions else "number of the action"
    axes = draw_maps(ax, maps, title, size=size, level=labels.level, meaning=meaning, names=names)
    for level, stage in zip(*np.nonzero(different), strict=True):
        corner = (stage + 0.56, level + 0.56)
        axes[0].add_patch(Rectangle(corner, 0.88, 0.88, fill=False, ec=DIFFERENT, lw=1.2))
    found = {"learned": mine, "optimal": best, "different": different, "reached": reached}
    return Drawn(figure_of(axes[0]), axes, found, f"framed: {caption_of(notes)}")


def common_names(words: Labels) -> tuple[str, ...]:
    """The names of the actions, if they are the same at all stages."""
    return words.actions[0] if words.actions and len(set(words.actions)) == 1 else ()


def action_map(
    title: str, actions: np.ndarray, top: float, labels: Labels, reached: np.ndarray | None = None
) -> Map:
    """A map of actions; cells say the last word of the action's name ("0.5" of "accept from 0.5") if it has one."""
    texts = np.full(actions.shape, "", object) if labels.actions else None
    for level, stage in zip(*np.nonzero(np.isfinite(actions)), strict=True):
        if texts is not None:
            texts[level, stage] = labels.action(stage, int(actions[level, stage])).split(" ")[-1]
    return Map(title=title, values=actions, low=0.0, high=top, reached=reached, texts=texts)


def _plan(
    mdp: MDP, learned: np.ndarray, visitation: Array | None
) -> tuple[np.ndarray, np.ndarray | None, Array | None]:
    """The optimal policy, where the learned action is not an optimal one, and the visitation if
    known."""
    import jax.numpy as jnp

    _, best = planning.optimal(mdp)
    if learned.shape != best.shape:
        return np.asarray(best, np.float64), None, visitation
    known = np.isfinite(learned)
    actions = np.where(known, learned, 0).astype(np.int32)
    lost = np.take_along_axis(np.asarray(planning.gaps(mdp)), actions[:, :, None], axis=2)[:, :, 0]
    if visitation is None and known.all():
        visitation = np.asarray(planning.visitation(mdp, jnp.asarray(actions)))
    return np.asarray(best, np.float64), lost > SMALLEST_LOSS, visitation


def plot_instance(
    mdp: MDP,
    *,
    title: str | None = None,
    size: tuple[float, float] | None = None,
    ax: Sequence[Axes] | None = None,
) -> Drawn:
    """The optimal action and the optimal value of every state; grey where it never comes.

    Args:
        mdp: a single MDP; its labels, if it has some, name the actions.
        title: a heading, default the sizes.
        size: width and height of a new figure in inches; by default what the cells need.
        ax: two Axes instead of a new figure.

    Returns:
        `Drawn` with ``data``: "action", "value" and "reached", each [levels 1..k, stages 1..H].

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=4, capacity=2, num_values=3)
        >>> jb.plot_instance(mdp).data["value"].shape
        (2, 4)
    """
    single(mdp)
    values, policy = planning.optimal_values(mdp)
    action, value = upright(policy), upright(values[:-1])
    reached = upright(planning.visitation(mdp, policy)) > SMALLEST_VISIT
    labels = labels_of(mdp)
    *shared, _ = labels.action(0, 0).split(" ") if labels.actions else [""]
    head = literal(f"optimal action: {' '.join(shared)} ..." if shared else "optimal action")
    low, high = min(float(value.min()), 0.0), max(float(value.max()), 1e-9)
    maps = [
        action_map(head, action, max(1.0, mdp.num_actions - 1.0), labels, reached),
        Map("optimal value", value, low, high, form="{:.2f}", reached=reached),
    ]
    title = literal(repr(mdp)) if title is None else title
    axes = draw_maps(ax, maps, title, size=size, level=labels.level)
    if not all(a.texts for a in axes):  # each panel has its own scale
        for a, names in zip(axes, (common_names(labels), ()), strict=True):
            color_bar([a], "", names)
    found = {"action": action, "value": value, "reached": reached}
    grey = "" if reached.all() else "; grey: never reached by the optimal policy"
    return Drawn(figure_of(axes[0]), axes, found, f"optimal action and value{grey}")


def upright(values: Array) -> np.ndarray:
    """[H, k+1] -> [levels 1..k, stages]."""
    return np.asarray(values, np.float64)[:, 1:].T


class Map(NamedTuple):
    """What a panel of states shows."""

    title: str
    values: np.ndarray
    """float [levels 1..k, stages]; cells that are nan stay blank."""
    low: float
    high: float
    form: str = ""
    """Of the numbers in the cells; without one they are whole, and each has one colour."""
    reached: np.ndarray | None = None
    """bool [levels 1..k, stages]: the other cells are grey."""
    texts: np.ndarray | None = None
    """In place of the numbers."""


def draw_maps(
    ax: Any,
    maps: Sequence[Map],
    title: str | None,
    *,
    columns: int | None = None,
    size: tuple[float, float] | None = None,
    level: str = "level",
    meaning: str | None = None,
    names: Sequence[str] = (),
) -> list[Axes]:
    """Draws maps of one shape into the given axes, or into those of a new figure with a title and, if colours have a
    ``meaning``, one bar of them."""
    levels, stages = maps[0].values.shape
    usual = 1 if stages > MOST_STAGES else 2
    rows, across = grid_of(len(maps), usual if columns is None else columns)
    cell = min((6.2 if across == 1 else 3.4) / stages, 0.45)
    width = across * (max(cell * stages, 1.75) + 0.35) + 0.9
    height = rows * (max(min(cell, 0.3), 0.2) * levels + 0.42) + 0.65
    axes = panel_axes(ax, len(maps), (rows, across), size or (max(width, 3.3), max(height, 1.7)))
    for j, (a, shown) in enumerate(zip(axes, maps, strict=True)):
        draw_cells(a, shown)
        text = balanced(shown.title, int(_points_wide(a) / (LETTER * TICK_SIZE)))
        a.set_title(text, loc="left", fontsize=TICK_SIZE, pad=3)
        bottom, left = j + across >= len(maps), j % across == 0
        if bottom or ax is not None:
            a.set_xlabel("stage", fontsize=TICK_SIZE, labelpad=1)
        if left or ax is not None:
            a.set_ylabel(literal(level), fontsize=TICK_SIZE, labelpad=1)
        if ax is None:
            a.tick_params(labelbottom=bottom, labelleft=left)
    if ax is None and meaning is not None:
        color_bar(axes, meaning, names)
    if ax is None and title is not None:
        text = readable("title", title)
        axes[0].figure.suptitle(text, fontsize=TITLE_SIZE, x=0.01, ha="left")
    return axes


def _points_wide(ax: Axes) -> float:
    return 72 * figure_of(ax).get_figwidth() * ax.get_position().width


def draw_cells(ax: Axes, shown: Map) -> None:
    """Coloured cells with their numbers or texts."""
    from matplotlib import colormaps

    low, high = shown.low, shown.high
    values = (
        shown.values if shown.reached is None else np.where(shown.reached, shown.values, np.nan)
    )
    levels, stages = values.shape
    place: Any = {"origin": "lower", "aspect": "auto", "extent": (0.5, stages + 0.5, 0.5, levels + 0.5)}  # fmt: skip
    colors = colormaps["viridis"]
    if not shown.form and high - low < MOST_COLORS:
        colors, low, high = colors.resampled(round(high - low) + 1), low - 0.5, high + 0.5
    ax.imshow(values, cmap=colors, vmin=low, vmax=high, **place)
    if shown.reached is not None and not shown.reached.all():
        ax.imshow(np.where(shown.reached, np.nan, 0.5), cmap="Greys", vmin=0, vmax=1.6, **place)
    cells = list(zip(*np.nonzero(np.isfinite(values)), strict=True))
    form = shown.form or "{:.0f}"
    texts = [
        form.format(values[at] + 0.0) if shown.texts is None else str(shown.texts[at])
        for at in cells
    ]
    wide = _points_wide(ax) / stages
    if 1.25 * wide / max(map(len, texts), default=1) < TICK_SIZE:
        texts = [text.removeprefix("0") if "." in text else text for text in texts]
    # a digit is about 0.6 of its size wide
    size = min(1.25 * wide / max(map(len, texts), default=1), TEXT_SIZE)
    for (level, stage), text in zip(cells, texts, strict=True) if size >= SMALLEST_TEXT else ():
        dark = (values[level, stage] - low) / (high - low) < 0.55
        ax.text(
            stage + 1, level + 1, literal(text), ha="center", va="center", fontsize=size,
            color="white" if dark else "black",
        )  # fmt: skip
    ax.set_xticks(range(1, stages + 1, max(1, round(stages / 8))))
    ax.set_yticks(range(1, levels + 1, max(1, levels // 6)))
    ax.tick_params(labelsize=TICK_SIZE, length=2, width=0.5, color=GREY)
    ax.spines[:].set_linewidth(0.5)


def color_bar(axes: list[Axes], meaning: str, names: Sequence[str]) -> None:
    """What the colours of some panels are: numbers, or the ``names`` of 0, 1, ..."""
    from matplotlib.ticker import MaxNLocator

    image = axes[0].images[0]
    bar = axes[0].figure.colorbar(image, ax=axes, pad=0.015, fraction=0.04, aspect=18)
    bar.set_label(meaning, fontsize=NOTE_SIZE)
    bar.ax.tick_params(labelsize=NOTE_SIZE, length=2, width=0.5)
    bar.outline.set_linewidth(0.5)
    if names:
        bar.set_ticks(range(len(names)), labels=list(map(literal, names)))
    else:
        low, high = image.get_clim()
        bar.locator = MaxNLocator(nbins=5, integer=high - low > 1)
        bar.update_ticks()


def plot_episode(
    mdp: MDP, episode: Episode, *, title: str | None = None, ax: Axes | None = None
) -> Drawn:
    """Stages from left to right: the value offered in a box, the action and the level below it.

    Boxes are filled where the level changed or a reward came, and grey where nothing is left. If the
    MDP has no names for what is offered, the boxes hold the rewards. After eight stages a new strip of boxes begins;
    strips in which the episode is over are left out.

    Args:
        mdp: the MDP of the episode; its labels, if it has some, name offers and actions.
        episode: what `trace` returned for it.
        title: a heading, default the total.
        ax: Axes instead of a new figure.

    Returns:
        `Drawn` with ``data``: "box" (the words in the boxes) and "filled", each of length H.

    Example:
        >>> import jax, jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=4, capacity=2, num_values=3)
        >>> episode = jb.trace(mdp, jb.optimal(mdp)[1], jax.random.key(0))
        >>> len(jb.plot_episode(mdp, episode).data["box"])
        4
    """
    from matplotlib.patches import Rectangle

    words = labels_of(single(mdp))
    typed("episode", episode, Episode, "an Episode, as trace gives it")
    levels, rewards = episode.levels, episode.rewards
    if len(levels) != mdp.horizon:
        raise ValueError(
            f"episode: {len(levels)} stages; accepted: {mdp.horizon}, those of the mdp"
        )
    alive = 1 + int(np.max(np.flatnonzero(levels), initial=0))
    across = -(-mdp.horizon // -(-mdp.horizon // MOST_BOXES))
    strips = -(-alive // across)
    width = max(5.0, 0.95 * (across + 1.6))
    axes = axes_of(ax, (width, 2.1 * strips))
    filled = (levels > 0) & ((episode.next_levels != levels) | (rewards > 0))
    shown = [short(float(reward)) for reward in rewards]
    if words.offers:
        shown = [of[j] for of, j in zip(words.offers, episode.outcomes, strict=True)]
    for i in range(min(mdp.horizon, strips * across)):
        level, (strip, x) = int(levels[i]), divmod(i, across)
        ink, edge = ("black", GREY) if level else (LIGHT_GREY, LIGHT_GREY)
        color = TAKEN if filled[i] else LEFT if level else OVER
        corner = (x - 0.42, 0.4 - strip * STRIP)
        axes.add_patch(Rectangle(corner, 0.84, 0.7, facecolor=color, edgecolor=edge))
        done = _two_lines(literal(words.action(i, int(episode.actions[i])))) if level else "-"
        for row, word, color, size in (
            ("offered", literal(shown[i]), "white" if filled[i] else ink, TITLE_SIZE),
            ("stage", str(i + 1), GREY, TEXT_SIZE),
            ("action", done, ink, TEXT_SIZE),
            ("level", str(level), ink, TEXT_SIZE),
        ):
            y = ROWS[row] - strip * STRIP
            axes.text(x, y, word, ha="center", va="center", fontsize=size, color=color)
    boxes = "offered" if words.offers else "reward"
    names = {"stage": "stage", boxes: boxes, "action": "action", "level": literal(words.level)}
    for strip, (row, name) in itertools.product(range(strips), names.items()):
        y = ROWS[row] - strip * STRIP
        axes.text(-0.75, y, name, ha="right", va="center", fontsize=TEXT_SIZE, color=GREY)
    axes.set(
        xlim=(-2.1, across - 0.4), ylim=(-0.75 - (strips - 1) * STRIP, 1.7), xticks=[], yticks=[]
    )
    axes.set_axis_off()
    apart = ": " if width > 7 else "\n"  # the words of a short row do not fit on one line
    head = f"{mdp!r}{apart}{literal(episode.note)}" if title is None else title
    axes.set_title(readable("title", head), fontsize=TITLE_SIZE, loc="left")
    found = {"box": shown, "filled": filled.tolist()}
    return Drawn(figure_of(axes), axes, found, episode.note)


def _two_lines(words: str) -> str:
    """The last word, often a number, on a line of its own."""
    first, _, last = words.rpartition(" ")
    return f"{first}\n{last}" if first else last
