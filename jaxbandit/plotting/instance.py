"""A picture of an instance: what is best in every state, and what the state is worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jaxbandit import planning
from jaxbandit.mdp import MDP, single
from jaxbandit.mdp.labels import labels_of
from jaxbandit.plotting.figures import TICK_SIZE, TITLE_SIZE, Drawn, figure_of, literal
from jaxbandit.plotting.heatmaps import SMALLEST_VISIT, action_words
from jaxbandit.plotting.look import readable
from jaxbandit.plotting.state_cells import draw_cells, finish, state_axes, upright

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_instance(mdp: MDP, *, title: str | None = None, ax: Sequence[Axes] | None = None) -> Drawn:
    """The optimal action and the optimal value of every state; grey where it never comes.

    Args:
        mdp: a single MDP; its labels, if it has some, name the actions.
        title: a heading, default the sizes.
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
    levels, stages = action.shape
    axes = state_axes(ax, 2, 2, stages, levels)
    words = labels_of(mdp)
    top = max(1.0, mdp.num_actions - 1.0)
    hidden = np.where(reached, action, np.nan)
    draw_cells(axes[0], hidden, 0.0, top, "{:.0f}", ~reached, action_words(words, action))
    low, high = min(float(value.min()), 0.0), max(float(value.max()), 1e-9)
    draw_cells(axes[1], np.where(reached, value, np.nan), low, high, "{:.2f}", ~reached)
    shared = f": {' '.join(words.action(0, 0).split(' ')[:-1])} ..." if words.actions else ""
    for a, name in zip(axes, (f"optimal action{shared}", "optimal value"), strict=True):
        a.set_title(literal(name), loc="left", fontsize=TICK_SIZE, pad=3)
    # no colour bar: each panel has its own scale, and its numbers in the cells
    finish(axes, None, "", None, ax is None, level=words.level)
    figure = figure_of(axes[0])
    if ax is None:
        head = literal(repr(mdp)) if title is None else title
        figure.suptitle(readable("title", head), fontsize=TITLE_SIZE, x=0.01, ha="left")
    return Drawn(figure, axes, {"action": action, "value": value, "reached": reached})
