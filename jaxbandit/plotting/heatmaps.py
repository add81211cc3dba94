"""Heat maps over the states (level x stage): the active sets of ExpRef, and policies against the
optimal one.

Stages run to the right, levels upwards; level 0 (exhausted) is left out, since nothing is chosen
there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit.checks import accept, real_array
from jaxbandit.mdp import MDP
from jaxbandit.mdp.labels import Labels, labels_of
from jaxbandit.plotting.figures import TICK_SIZE, Drawn, compact, figure_of, literal
from jaxbandit.plotting.state_cells import (
    crop,
    draw_cells,
    finish,
    frame_cells,
    state_axes,
    upright,
)
from jaxbandit.result_axes import whole
from jaxbandit.results.selection import instance_of
from jaxbandit.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SMALLEST_VISIT = 1e-9
"""States visited with a smaller probability count as never reached."""
SMALLEST_LOSS = 1e-6
"""Actions that lose less (rounding in float32) count as optimal: several actions can be."""


def plot_active_sets(
    ds: Any,
    learner: str,
    instance: str | None = None,
    *,
    phases: Sequence[int] | None = None,
    parameter: int | None = None,
    columns: int = 2,
    title: str | None = None,
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
        columns: panels per row.
        title: default learner and instance.
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
    runs, ends = _phase_runs(ds, learner, instance, parameter)
    finished = [r + 1 for r in range(runs.shape[1]) if not np.isnan(runs[:, r]).all()]
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
    done = {
        phase: runs[~np.isnan(runs[:, phase - 1]).all(axis=(1, 2)), phase - 1] for phase in chosen
    }
    data = {phase: upright(crop(alive.mean(axis=0))) for phase, alive in done.items()}
    levels, stages = next(iter(data.values())).shape
    axes = state_axes(ax, len(chosen), columns, stages, levels)
    top = max(float(np.nanmax(runs)), 2.0)
    image = None
    for a, phase in zip(axes, chosen, strict=True):
        image = draw_cells(a, data[phase], 1.0, top, "{:.2g}")
        count = len(done[phase])
        when = (
            ""
            if ends is None
            else f", episode {compact(float(f'{np.nanmedian(ends[:, phase - 1]):.2g}'))}"
        )
        seeds = "" if count == len(runs) else f" ({count} of {len(runs)} seeds)"
        a.set_title(f"phase {phase}{when}{seeds}", loc="left", fontsize=TICK_SIZE, pad=3)
    where = instance or str(ds["instance"].values[0])
    finish(
        axes,
        image,
        f"actions alive, mean of {len(runs)} seeds",
        title or literal(f"{learner}, {where}"),
        ax is None,
    )
    return Drawn(figure_of(axes[0]), axes, data)


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
    if hasattr(policy, "data_vars"):
        policy = whole(policy)
        learned, stored, heading = _stored_policy(policy, learner, instance, seed, parameter)
        if against is None:
            against = instance_of(policy, instance) if "mdp_prob" in policy else stored
        title = literal(heading) if title is None else title
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
    data = {"learned": upright(learned), "optimal": upright(optimal)}
    known = np.isfinite(data["learned"]) & np.isfinite(data["optimal"])
    reached = (
        np.ones(known.shape, bool) if visitation is None else upright(visitation) > SMALLEST_VISIT
    )
    apart = data["learned"] != data["optimal"] if losing is None else upright(losing) > 0
    different = known & reached & apart
    levels, stages = known.shape
    axes = state_axes(ax, 2, 2, stages, levels)
    top = max(1.0, float(np.nanmax([*data["learned"].flat, *data["optimal"].flat])))
    words = labels_of(against) if isinstance(against, MDP) else Labels()
    names = words.actions[0] if words.actions and len(set(words.actions)) == 1 else ()
    top = max(top, len(names) - 1.0)
    image = draw_cells(
        axes[0],
        np.where(reached, data["learned"], np.nan),
        0.0,
        top,
        "{:.0f}",
        ~reached,
        action_words(words, data["learned"]),
    )
    draw_cells(
        axes[1], data["optimal"], 0.0, top, "{:.0f}", words=action_words(words, data["optimal"])
    )
    frame_cells(axes[0], different)
    wrong = f"{different.sum()} of {int((known & reached).sum())} states differ"
    grey = "" if reached.all() else "\ngrey: never reached"
    for a, name in zip(axes, (f"learned: {wrong}{grey}", "optimal"), strict=True):
        a.set_title(name, loc="left", fontsize=TICK_SIZE, pad=3)
    meaning = "" if names else "action" if not words.actions else "number of the action"
    finish(axes, image, meaning, title, ax is None, names, words.level)
    return Drawn(figure_of(axes[0]), axes, {**data, "different": different, "reached": reached})


def action_words(words: Labels, actions: np.ndarray) -> np.ndarray | None:
    """The last word of every action's name ("0.5" of "accept from 0.5"), [levels, stages]."""
    if not words.actions:
        return None
    texts = np.full(actions.shape, "", object)
    for level, stage in zip(*np.nonzero(np.isfinite(actions)), strict=True):
        texts[level, stage] = words.action(stage, int(actions[level, stage])).split(" ")[-1]
    return texts


def _one_run_axis(
    ds: Any, learner: str | None, instance: str | None, parameter: int | None, variable: str
) -> Any:
    """``ds[variable]`` of one learner, instance and parameter point, over seeds."""
    accept("learner", learner, [str(name) for name in ds["learner"].values])
    names = [str(name) for name in ds["instance"].values]
    if instance is None and len(names) > 1:
        raise ValueError(f"instance: not given; accepted: one of {', '.join(names)}")
    accept("instance", names[0] if instance is None else instance, names)
    if variable not in ds:
        raise ValueError(f"ds: no variable {variable!r}; accepted: the Dataset of a sweep")
    array = ds[variable].sel(learner=learner, instance=names[0] if instance is None else instance)
    if "parameter" not in array.dims:
        return array
    size = array.sizes["parameter"]
    chosen = 0 if parameter is None and size == 1 else parameter
    if chosen is None or not 0 <= chosen < size:
        raise ValueError(
            f"parameter: {chosen}; accepted: an index 0..{size - 1} of the parameter grid"
        )
    return array.isel(parameter=chosen)


def _phase_runs(
    ds: Any, learner: str, instance: str | None, parameter: int | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Active actions [seeds, phases, H, k+1] and, if stored, phase ends [seeds, phases]."""
    alive = _one_run_axis(ds, learner, instance, parameter, "active_actions")
    runs = np.asarray(alive.transpose("seed", "phase", "stage", "level").values, np.float64)
    if "phase_end" not in ds:
        return runs, None
    ends = _one_run_axis(ds, learner, instance, parameter, "phase_end")
    return runs, np.asarray(ends.transpose("seed", "phase").values, np.float64)


def _stored_policy(
    ds: Any, learner: str | None, instance: str | None, seed: int, parameter: int | None
) -> tuple[np.ndarray, np.ndarray, str]:
    """Learned and optimal policy of a run, both [H, k+1] of the instance's own size, and a
    heading."""
    runs = _one_run_axis(ds, learner, instance, parameter, "final_policy")
    accept("seed", seed, list(range(runs.sizes["seed"])))
    where = str(ds["instance"].values[0]) if instance is None else instance
    learned = runs.isel(seed=seed).transpose("stage", "level").values
    optimal = crop(ds["optimal_policy"].sel(instance=where).transpose("stage", "level").values)
    stages, levels = optimal.shape
    return (
        np.asarray(learned, np.float64)[:stages, :levels],
        optimal,
        f"{learner}, {where}, seed {seed}",
    )


def _plan(
    mdp: MDP, learned: np.ndarray, visitation: Array | None
) -> tuple[np.ndarray, np.ndarray | None, Array | None]:
    """The optimal policy, where the learned action is not an optimal one, and the visitation if
    known."""
    import jax.numpy as jnp

    from jaxbandit import planning

    _, best = planning.optimal(mdp)
    if learned.shape != best.shape:
        return np.asarray(best, np.float64), None, visitation
    known = np.isfinite(learned)
    actions = np.where(known, learned, 0).astype(np.int32)
    lost = np.take_along_axis(np.asarray(planning.gaps(mdp)), actions[:, :, None], axis=2)[:, :, 0]
    if visitation is None and known.all():
        visitation = np.asarray(planning.visitation(mdp, jnp.asarray(actions)))
    return np.asarray(best, np.float64), lost > SMALLEST_LOSS, visitation
