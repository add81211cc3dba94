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

    @property
    def table(self) -> Table:
        """A row per stage, and the note."""
        return Table(self.head, self.rows, right=range(len(self.head)), note=self.note)

    def __repr__(self) -> str:
        """The table as text."""
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table.to("html")


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
    steps = list(zip(levels, actions, outcomes, rewards, following, strict=True))
    head, rows = _table(mdp, steps)
    words = labels_of(mdp)
    total = float(rewards.sum())
    worth = f" (worth {words.with_unit(words.total(total))})" if words.in_units else ""
    mean = short(expected)
    mean += f" ({words.with_unit(words.total(expected))})" if words.in_units else ""
    note = f"total reward {short(total)}{worth}; the policy's mean is {mean}"
    return Episode(
        levels=levels,
        actions=actions,
        outcomes=outcomes,
        rewards=rewards,
        next_levels=following,
        head=head,
        rows=rows,
        note=note,
    )


def _table(mdp: MDP, steps: list[Any]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    words = labels_of(mdp)
    offers = ("offered",) if words.offers else ()
    scaled = ("worth",) if words.in_units else ()
    head = ("stage", words.level, *offers, "action", "reward", *scaled, "then")
    rows = []
    for i, (level, action, outcome, paid, then) in enumerate(steps):
        offered = (words.offers[i][outcome],) if words.offers else ()
        money = (words.with_unit(words.paid(i, paid, then) if level else 0.0),) if scaled else ()
        # nothing can be done at level 0, so no action is shown there
        done = words.action(i, action) if level else "-"
        rows.append(
            (str(i + 1), words.state(level), *offered, done, short(paid), *money, words.state(then))
        )
    return head, tuple(rows)
