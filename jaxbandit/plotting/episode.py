"""A picture of one episode: a row of boxes, one for every stage, with what was offered and what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxbandit.checks import typed
from jaxbandit.inspect.episode import Episode
from jaxbandit.mdp import MDP, single
from jaxbandit.mdp.labels import labels_of, short
from jaxbandit.plotting.figures import (
    GREY,
    LIGHT_GREY,
    TEXT_SIZE,
    TITLE_SIZE,
    Drawn,
    figure_of,
    literal,
    new_figure,
    readable,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TAKEN, LEFT, OVER = "#009E73", "white", "#eeeeee"
"""Colours of the boxes: something was taken or paid, nothing was, level 0."""
ROWS = {"stage": 1.45, "offered": 0.75, "reward": 0.75, "action": 0.05, "level": -0.45}
"""Height of each row; boxes are 1 wide and 1 high and stand at 0.35."""


def plot_episode(
    mdp: MDP, episode: Episode, *, title: str | None = None, ax: Axes | None = None
) -> Drawn:
    """Stages from left to right: the value offered in a box, the action and the level below it.

    Boxes are filled where the level changed or a reward came, and grey where nothing is left. If the
    MDP has no names for what is offered, the boxes hold the rewards.

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
    words = labels_of(single(mdp))
    typed("episode", episode, Episode, "an Episode, as trace gives it")
    if len(episode.levels) != mdp.horizon:
        raise ValueError(
            f"episode: {len(episode.levels)} stages; accepted: {mdp.horizon}, those of the mdp"
        )
    width = max(5.0, 0.95 * (mdp.horizon + 1.6))
    axes = new_figure((width, 2.1))[1][0] if ax is None else ax
    shown, filled = [], []
    for i, (level, action, outcome) in enumerate(
        zip(episode.levels, episode.actions, episode.outcomes, strict=True)
    ):
        paid, then = float(episode.rewards[i]), int(episode.next_levels[i])
        shown.append(words.offers[i][outcome] if words.offers else short(paid))
        filled.append(bool(level) and (then != level or paid > 0))
        done = _two_lines(literal(words.action(i, int(action)))) if level else "-"
        _box(axes, i, literal(shown[-1]), filled[-1], bool(level))
        for row, word, color in (
            ("stage", str(i + 1), GREY),
            ("action", done, "black" if level else LIGHT_GREY),
            ("level", str(level), "black" if level else LIGHT_GREY),
        ):
            axes.text(i, ROWS[row], word, ha="center", va="center", fontsize=TEXT_SIZE, color=color)
    boxes = "offered" if words.offers else "reward"
    for row, name in (
        ("stage", "stage"),
        (boxes, boxes),
        ("action", "action"),
        ("level", literal(words.level)),
    ):
        axes.text(-0.75, ROWS[row], name, ha="right", va="center", fontsize=TEXT_SIZE, color=GREY)
    axes.set_xlim(-2.1, mdp.horizon - 0.4)
    axes.set_ylim(-0.75, 1.7)
    axes.set(xticks=[], yticks=[])
    axes.set_axis_off()
    apart = ": " if width > 7 else "\n"  # the words of a short row do not fit on one line
    head = f"{mdp!r}{apart}{literal(episode.note)}" if title is None else title
    axes.set_title(readable("title", head), fontsize=TITLE_SIZE, loc="left")
    return Drawn(figure_of(axes), axes, {"box": shown, "filled": filled}, episode.note)


def _box(axes: Axes, stage: int, word: str, filled: bool, alive: bool) -> None:
    from matplotlib.patches import Rectangle

    color = TAKEN if filled else LEFT if alive else OVER
    edge = GREY if alive else LIGHT_GREY
    axes.add_patch(Rectangle((stage - 0.42, 0.4), 0.84, 0.7, facecolor=color, edgecolor=edge))
    ink = "white" if filled else "black" if alive else LIGHT_GREY
    axes.text(
        stage, ROWS["offered"], word, ha="center", va="center", fontsize=TITLE_SIZE, color=ink
    )


def _two_lines(words: str) -> str:
    """The last word, often a number, on a line of its own."""
    first, _, last = words.rpartition(" ")
    return f"{first}\n{last}" if first else last
