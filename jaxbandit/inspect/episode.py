"""One episode, stage by stage: what was offered, what was done, what it paid."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbandit.mdp import MDP, plain, single
from jaxbandit.mdp.labels import labels_of, short
from jaxbandit.planning import evaluate, sample_episode
from jaxbandit.tabular import Table
from jaxbandit.types import Array
from jaxbandit.xla.compat import drawing
from jaxbandit.xla.threefry import single_key


class Episode(NamedTuple):
    """An episode; prints as a table, and as one of HTML in notebooks.

    Fields:
        levels: int [H], the level visited at each stage.
        actions: int [H], the action played there.
        outcomes: int [H], the outcome that was drawn.
        rewards: float [H], what it paid.
        next_levels: int [H], where it led.
        head: names of the table's columns.
        rows: the table, as words.
        note: total and expectation, in words.
    """

    levels: np.ndarray
    actions: np.ndarray
    outcomes: np.ndarray
    rewards: np.ndarray
    next_levels: np.ndarray
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str

    @property
    def total(self) -> float:
        """The total reward."""
        return float(self.rewards.sum())

    def table(self) -> Table:
        """The stages as a table."""
        return Table(self.head, self.rows, right=range(len(self.head)), note=self.note)

    def __repr__(self) -> str:
        """The table."""
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table().to("html")


def trace(mdp: MDP, policy: Array, key: Any) -> Episode:
    """Plays one episode of a policy and returns it as a table.

    Args:
        mdp: a single MDP.
        policy: actions, int [H, k+1], or action probabilities, float [H, k+1, A].
        key: a typed key; the same key gives the same episode.

    Example:
        >>> import jax, jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=4, capacity=2, num_values=5)
        >>> value, policy = jb.optimal(mdp)
        >>> jb.trace(mdp, policy, jax.random.key(0))
        stage  capacity left  offered ...
    """
    single_key(key)
    expected = float(evaluate(plain(single(mdp)), policy))  # checks the policy, too
    with drawing():
        draws = np.asarray(jax.random.uniform(key, (mdp.horizon, 2)))
    levels, actions, outcomes, rewards, following = sample_episode(mdp, policy, draws)
    words = labels_of(mdp)
    offers, unit, visits = words.offers, words.in_units, list(zip(levels, actions, strict=True))
    steps = zip(levels, rewards, following, strict=True)
    paid = [words.paid(i, r, to) if level else 0.0 for i, (level, r, to) in enumerate(steps)]
    columns: list[tuple[str, list[str]]] = [
        ("stage", [str(i + 1) for i in range(mdp.horizon)]),
        (words.level, [words.state(level) for level in levels]),
        ("offered", [words.offers[i][m] for i, m in enumerate(outcomes)] if offers else []),
        # nothing can be done at level 0, so no action is shown there
        ("action", [words.action(i, a) if level else "-" for i, (level, a) in enumerate(visits)]),
        ("reward", [short(paid) for paid in rewards]),
        ("worth", [words.with_unit(each) for each in paid] if unit else []),
        ("then", [words.state(level) for level in following]),
    ]
    columns = [(name, cells) for name, cells in columns if cells]
    total = float(rewards.sum())
    seen, mean = short(total), short(expected)
    if unit:
        seen += f" (worth {words.with_unit(words.total(total))})"
        mean += f" ({words.with_unit(words.total(expected))})"
    return Episode(
        levels=levels,
        actions=actions,
        outcomes=outcomes,
        rewards=rewards,
        next_levels=following,
        head=tuple(name for name, _ in columns),
        rows=tuple(zip(*(cells for _, cells in columns), strict=True)),
        note=f"total reward {seen}; the policy's mean is {mean}",
    )
