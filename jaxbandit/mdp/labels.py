"""Names and units of an MDP, kept beside its arithmetic: what actions and outcomes are called, and
what a reward of 1 is worth.

An MDP is five arrays, which engines stack, compile and compare; words have no place among them. So
labels are remembered for the object ``mdp.prob``: they go wherever that array goes (``_replace``,
another variable, a sweep's instances), vanish with it, and never touch a number. Instances that are
stacked or drawn under ``vmap`` are new arrays and have no labels.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxbandit.checks import number, printable, typed
from jaxbandit.mdp.model import ACCEPTED, MDP, single
from jaxbandit.types import Array

Words = tuple[tuple[str, ...], ...]


class Labels(NamedTuple):
    """What the numbers of an MDP are called.

    Fields:
        unit: of rewards, such as "$"; empty if they have none.
        scale: what a reward of 1 is in that unit.
        actions: [H][A], a name for every action of every stage; empty if they have none.
        offers: [H][M], what outcome m of a stage is (the value offered); empty if unknown.
        level: what a level counts, such as "capacity left".
        offsets: [H], what is added at every stage to a reward in the unit. Only MDPs made from arrays in units of
            their own (`jaxbandit.from_arrays`) have them, zeros or not; for these, planning answers in the unit.
        states: [k], the names of the states, which are the levels 1..k; empty if they have none.
        arrays: the form of the arrays that the MDP was made from, for `jaxbandit.to_arrays`.
    """

    unit: str = ""
    scale: float = 1.0
    actions: Words = ()
    offers: Words = ()
    level: str = "level"
    offsets: tuple[float, ...] = ()
    states: tuple[str, ...] = ()
    arrays: Any = None

    @property
    def in_units(self) -> bool:
        """Whether a reward in the unit is anything but the number itself."""
        return self.scale != 1.0 or bool(self.unit) or any(self.offsets)

    def total(self, value: float) -> float:
        """The total reward of an episode, in the unit.

        Example:
            >>> Labels(scale=10.0, offsets=(-1.0, -1.0)).total(0.5)
            3.0
        """
        return value * self.scale + sum(self.offsets)

    def paid(self, stage: int, reward: float, next_level: int) -> float:
        """A reward of a stage (from 0) in the unit. An outcome that ends the episode also pays the offsets of the
        stages left (`jaxbandit.from_arrays`), which are taken off again.

        Example:
            >>> Labels(scale=4.0, offsets=(-1.0, -1.0)).paid(0, 0.5, next_level=0)
            0.0
        """
        after = self.offsets[stage : stage + 1] if next_level else self.offsets[stage:]
        return reward * self.scale + sum(after)

    def state(self, level: int) -> str:
        """The name of a level: its state, or its number.

        Example:
            >>> Labels(states=("left", "right")).state(2), Labels().state(2), Labels().state(0)
            ('right', '2', '0')
        """
        return self.states[level - 1] if self.states and level else str(level)

    def action(self, stage: int, action: int) -> str:
        """The name of an action of a stage (from 0).

        Example:
            >>> Labels(actions=(("no", "yes"),)).action(0, 1), Labels().action(0, 1)
            ('yes', 'action 1')
        """
        return self.actions[stage][action] if self.actions else f"action {action}"

    def money(self, reward: float) -> str:
        """A reward of the MDP's tables in the unit, without the offsets. What planning answers for MDPs with offsets is in
        the unit already: `with_unit`.

        Example:
            >>> Labels("$", 500.0).money(0.5)
            '$250'
        """
        return self.with_unit(reward * self.scale)

    def with_unit(self, amount: float) -> str:
        """An amount of the unit as text.

        Example:
            >>> Labels("$").with_unit(250.0), Labels("miles").with_unit(-1.5)
            ('$250', '-1.5 miles')
        """
        text = short(amount)
        return (
            f"{self.unit}{text}" if self.unit in ("$", "€", "£") else f"{text} {self.unit}".strip()
        )


_KNOWN: dict[int, tuple[weakref.ref, Labels]] = {}


def label(
    mdp: MDP,
    *,
    unit: str | None = None,
    scale: float | None = None,
    actions: Sequence[Any] | None = None,
    offers: Sequence[Any] | None = None,
    level: str | None = None,
) -> MDP:
    """The same MDP with names and units for tables and figures; its numbers stay as they are.

    Args:
        mdp: a single MDP, not a stack.
        unit: of rewards, such as "$".
        scale: what a reward of 1 is in that unit.
        actions: names, [A] for all stages or [H][A].
        offers: names of the outcomes, [M] or [H][M].
        level: what a level counts.

    What is not given stays as it was.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("posted-pricing", values=[[200, 500]], probabilities=[[0.5, 0.5]], capacity=1)
        >>> mdp = jb.label(mdp, unit="$")
        >>> words = jb.labels_of(mdp)
        >>> words.money(1.0), words.action(0, 1)
        ('$500', 'price 500')
    """
    old = labels_of(single(mdp))
    horizon, num_actions, num_outcomes = mdp.prob.shape[-4], mdp.num_actions, mdp.num_outcomes
    worth = old.scale if scale is None else number("scale", scale, low=0, above=True)
    words = old._replace(
        unit=old.unit if unit is None else _word("unit", unit),
        scale=worth,
        offsets=tuple(x * worth / old.scale for x in old.offsets),
        actions=old.actions
        if actions is None
        else names_of("actions", actions, horizon, num_actions),
        offers=old.offers if offers is None else names_of("offers", offers, horizon, num_outcomes),
        level=old.level if level is None else _word("level", level),
    )
    prob = mdp.prob
    # an array of its own, so that the MDP that was given keeps its labels
    copied = prob.copy() if isinstance(prob, np.ndarray) else jnp.array(prob, copy=True)
    return remember(mdp._replace(prob=copied), words)


def remember(mdp: MDP, words: Labels) -> MDP:
    """Keeps the labels for as long as the array ``mdp.prob`` lives; for constructors."""
    place = id(mdp.prob)
    _KNOWN[place] = (weakref.ref(mdp.prob, lambda _: _KNOWN.pop(place, None)), words)
    return mdp


def carry(old: MDP, new: MDP) -> MDP:
    """``new``, the same MDP in other arrays, with the labels of ``old``."""
    words = labels_of(old)
    return new if words == Labels() else remember(new, words)


def plain(mdp: MDP) -> MDP:
    """The MDP without labels: planning answers in its own reward, of which a run collects at most 1.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.from_arrays([[[1.0]]], [-5.0], horizon=2)
        >>> float(jb.optimal(mdp)[0]), float(jb.optimal(jb.mdp.plain(mdp))[0])
        (-10.0, 0.0)
    """
    prob = mdp.prob
    if labels_of(mdp) == Labels():
        return mdp
    return mdp._replace(prob=prob.view() if isinstance(prob, np.ndarray) else jnp.array(prob))


def labels_of(mdp: MDP) -> Labels:
    """The labels of an MDP; empty ones if it has none.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> jb.labels_of(mdp).actions[0]
        ('accept from 0.5', 'accept from 1', 'accept none')
    """
    found = _KNOWN.get(id(typed("mdp", mdp, MDP, ACCEPTED).prob))
    return found[1] if found is not None and found[0]() is mdp.prob else Labels()


def short(value: float) -> str:
    """A number as one would write it: 3 digits below 100, no fraction of whole numbers.

    Example:
        >>> [short(v) for v in (0.25, 1 / 3, 12, 1250.0, 99.5)]
        ['0.25', '0.333', '12', '1250', '99.5']
    """
    if abs(value - round(value)) < 1e-6 * max(1.0, abs(value)):
        return str(round(value))
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"


def threshold_names(values: Array) -> Words:
    """Names of thresholds [H, A] in increasing order: what is the smallest value that is taken.

    Example:
        >>> threshold_names([[0.0, 0.5, 1.0]])
        (('accept from 0.5', 'accept from 1', 'accept none'),)
    """
    rows = []
    for row in np.asarray(values, np.float64):
        above = [row[row > threshold] for threshold in row]
        rows.append(
            tuple(f"accept from {short(x.min())}" if x.size else "accept none" for x in above)
        )
    return tuple(rows)


def value_names(values: Array, before: str = "") -> Words:
    """Values [H, M] as words.

    Example:
        >>> value_names([[1, 2.5]], "price ")
        (('price 1', 'price 2.5'),)
    """
    return tuple(
        tuple(f"{before}{short(x)}" for x in row) for row in np.asarray(values, np.float64)
    )


def _word(name: str, given: Any) -> str:
    """A name, or a number as one; it may be empty."""
    counts = isinstance(given, int | float | np.number) and not isinstance(given, bool)
    text = str(given) if counts else given
    return "" if isinstance(text, str) and not text else printable(name, text)


def names_of(name: str, given: Sequence[Any], horizon: int, size: int) -> Words:
    """Names [H][size], from [size] for all stages or [H][size].

    Example:
        >>> names_of("actions", ["no", "yes"], horizon=2, size=2)
        (('no', 'yes'), ('no', 'yes'))
    """
    if (
        isinstance(given, str)
        or not isinstance(given, Sequence | np.ndarray)
        or np.ndim(given) == 0
    ):
        raise ValueError(f"{name}: {given!r}; accepted: {size} names, or {horizon} rows of them")
    listed = list(given)
    if listed and not isinstance(listed[0], (list, tuple, np.ndarray)):
        listed = [listed] * horizon
    words = tuple(tuple(_word(name, word) for word in row) for row in listed)
    if len(words) != horizon or any(len(row) != size for row in words):
        raise ValueError(
            f"{name}: {len(words)} rows of {sorted({len(row) for row in words})}; "
            f"accepted: {size} names, or {horizon} rows of them"
        )
    return words
