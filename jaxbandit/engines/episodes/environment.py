"""The environment's side of an episode, for a tile's lanes: tables of their MDPs, one episode, exact regrets of policies.

**An episode** is a chain: the level of a stage decides the outcome, and the outcome the level of the next stage. A CPU
follows it in one kernel. A look-up in the chain waits for the one before it, so with few levels (`AT_ONCE`) it is cut: where
each level of each stage *would* lead is looked up for all of them at once, from the same random word, and the path is
followed by shifts in words that hold the ways of a stage. With more levels a link is one loop over the lanes: the action at
the level, the look-up of where it leads, the next level. Where every link would be a kernel or several
(`Platform.straight`) the links are always cut, and the path is followed by selects. With `MOST_LEVELS` levels or more the
chain is followed stage by stage with tables that name any level. Either way there is one number per stage and lane, from
which everything else is unpacked for all stages at once.

**The regret** of a policy is the expected sum of gaps along its path, by backward induction. At a state where a policy is
none the value is nan, and nan passes through every sum before it, so the regret of a policy that is wrong anywhere is nan,
whether or not the state is ever visited. (Level 0, where nothing matters, is left out.)

Between kernels stages and lanes are one axis [HW]: XLA vectorises long loops only, and cuts an index of two axes out of
one the slow way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial, reduce
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines.tables import (
    exact_tables,
    normalised_prob,
    once_per_instance,
    unstacked,
)
from jaxbandit.feedback import Trajectory
from jaxbandit.learner import TOLERANCE
from jaxbandit.mdp import MDP, digest
from jaxbandit.types import Array
from jaxbandit.xla.platforms import active, separate, together
from jaxbandit.xla.threefry import unit_float32

MOST_OUTCOMES = 256
MOST_LEVELS = 16
"""Levels, level 0 among them, that a word of `EpisodeWorld.route` can name."""
AT_ONCE = 4
"""Levels from 1 on up to which all are looked up at once; 4 bits for each, and for level 0, fit in a word of 32."""
LINKS = 5
"""Stages that one kernel follows by shifts: it computes every link again for each of those after it."""
CUT_LINKS = 16
"""Stages that one kernel follows by selects."""
TERMS = 4
"""Outcomes whose look-ups are written out; more are a loop."""


class Sizes(NamedTuple):
    """The static sizes."""

    horizon: int
    width: int
    num_actions: int
    num_outcomes: int

    @property
    def by_outcomes(self) -> bool:
        """Whether regrets are computed outcome by outcome: from some levels on, if few of them can follow."""
        return self.width >= MOST_LEVELS and 4 * self.num_outcomes <= self.width


class EpisodeWorld(NamedTuple):
    """What the engine knows of the MDPs of W lanes."""

    alias: Array
    """uint32 [W * H * (k+1) * A * M]: alias tables of the outcomes, see `alias_tables`."""
    route: Array
    """uint32, the same with the next levels of both sides of a column (4 bits each) in place of the other outcome;
    not filled with more than `MOST_LEVELS` levels."""
    paid: Array
    """float32 [2 * W * H * (k+1) * A * M]: the rewards of both sides of a column, the other outcome's first."""
    next_level: Array
    """int32 [W * H * (k+1) * A * M]."""
    chance: Array
    """float32 [W * H * (k+1) * A * M]: the probability of each outcome."""
    start: Array
    """int32 [W]: the level of the first stage."""
    row: Array
    """int32 [H, W]: where the tables of a lane's stage begin; lanes with the same MDP share them, and so the cache."""
    gap: Array
    """float32 [H, k, A, W]: Opt_{l,i} - Q*_{l,i}(a), levels 1..k."""
    transition: Array
    """float32 [H, k, A, k, W]: p_i(s | l, a) among the levels 1..k; [0] where outcomes are looked up instead
    (`Sizes.by_outcomes`)."""


def make_episode_world(mdps: MDP) -> EpisodeWorld:
    """The tables of MDPs stacked along a leading axis [W], numpy."""
    size, horizon = mdps.prob[0].size, mdps.horizon
    each = unstacked(mdps)
    digests = [digest(mdp) for mdp in each]
    first = np.asarray([digests.index(one) for one in digests], np.int32)
    tables = [_tables(mdp) for mdp in each]
    by_lane = {name: [table[name] for table in tables] for name in tables[0]}
    looked_up = Sizes(horizon, mdps.width, mdps.num_actions, mdps.num_outcomes).by_outcomes
    transition = np.zeros(0, np.float32) if looked_up else np.stack(by_lane.pop("transition"), -1)
    flat = ("alias", "route", "paid", "next_level", "chance")
    return EpisodeWorld(
        **{name: np.concatenate(by_lane[name]) for name in flat},
        start=np.asarray(mdps.start, np.int32),
        row=first[None] * size + np.arange(horizon, dtype=np.int32)[:, None] * (size // horizon),
        gap=np.stack(by_lane["gap"], axis=-1),
        transition=transition,
    )


@once_per_instance
def _tables(mdp: MDP) -> dict[str, np.ndarray]:
    """Those of one MDP, made from it alone."""
    gap, transition = exact_tables(mdp)
    chex.assert_equal_shape([mdp.prob, mdp.reward, mdp.next_level])
    prob = normalised_prob(mdp)
    alias = alias_tables(prob)
    second = (alias & 255).astype(np.int64)
    target, reward = np.asarray(mdp.next_level, np.int32), np.asarray(mdp.reward, np.float32)
    sides = (target << 4) | np.take_along_axis(target, second, axis=-1)
    paid = np.stack([np.take_along_axis(reward, second, axis=-1), reward], axis=-1)
    return {
        "alias": alias.ravel(),
        "route": ((alias & ~np.uint32(255)) | (sides.astype(np.uint32) & 255)).ravel(),
        "paid": paid.ravel(),
        "next_level": target.ravel(),
        "chance": prob.astype(np.float32).ravel(),
        "gap": gap.astype(np.float32)[:, 1:],
        "transition": transition.astype(np.float32)[:, 1:, :, 1:],
    }


def alias_tables(prob: np.ndarray) -> np.ndarray:
    """Walker's alias tables of distributions [..., M], as uint32 [..., M]: a draw costs one look-up.

    Column j holds outcome j with a probability in its upper 24 bits, and otherwise the outcome in
    its lower 8. A draw takes a column and then a side, both from one word; probabilities are right
    to 2^-24, and impossible outcomes never come up. The table depends on the probabilities alone,
    so states that share them see the same outcome for one word.
    """
    *shape, M = prob.shape
    weight = (prob / prob.sum(-1, keepdims=True) * M).reshape(-1, M)
    rows = np.arange(len(weight))
    keep = np.ones_like(weight)
    other = np.tile(np.arange(M), (len(weight), 1))
    open_ = np.ones(weight.shape, bool)
    for _ in range(M - 1):
        poor = np.where(open_, weight, np.inf).argmin(-1)
        rich = np.where(open_, weight, -np.inf).argmax(-1)
        short = np.minimum(weight[rows, poor], 1)
        keep[rows, poor], other[rows, poor] = short, rich
        weight[rows, rich] -= 1 - short
        open_[rows, poor] = False
    side = np.minimum(np.round(keep * 2**24), 2**24 - 1).astype(np.uint32)
    # A column that is sure of its outcome names it on both sides.
    other = np.where(keep >= 1, np.arange(M), other).astype(np.uint32)
    return ((side << 8) | other).reshape(*shape, M)


# One episode.


def by_levels(policy: Array) -> jax.Array:
    """Actions [H, k+1, W] as [k+1, HW], so that kernels run over stages and lanes as one axis."""
    return jnp.moveaxis(policy, 1, 0).reshape(policy.shape[1], -1)


def simulate(sizes: Sizes, world: EpisodeWorld, policy: Array, words: Array) -> Trajectory:
    """One episode in every lane, of actions int32 [k+1, HW], from words [H, W].

    An action that is none is played as the nearest one: what is no policy is told by its regret.
    """
    if sizes.width < MOST_LEVELS:
        row = world.row.reshape(-1)
        args = (world.route, world.paid, row, world.start, policy, words.reshape(-1))
        return Trajectory(*(x.reshape(words.shape) for x in _walk(sizes)(*args)))
    policy = jnp.moveaxis(policy.reshape(len(policy), *words.shape), 0, 1)
    return _any_levels(sizes, world, jnp.clip(policy, 0, sizes.num_actions - 1), words)


def _any_levels(sizes: Sizes, world: EpisodeWorld, policy: Array, words: Array) -> Trajectory:
    """The episode of a policy int32 [H, k+1, W] of actions in range, however many the levels: stage by stage."""
    A, M = sizes[2:]
    lanes = words.shape[1]
    lane = jnp.arange(lanes, dtype=jnp.int32)

    def step(level, stage):
        row, actions, word = stage
        action = look(actions.reshape(-1), level * lanes + lane)
        index = row + (level * A + action) * M
        place, rest = column(word, M)
        entry = look(world.alias, index + place)
        own = rest < (entry >> jnp.uint32(8))
        outcome = index + jnp.where(own, place, (entry & jnp.uint32(255)).astype(jnp.int32))
        return look(world.next_level, outcome), outcome

    # One number a stage: what else happened is looked up for all stages at once, which is much quicker on a CPU.
    unroll = sizes.horizon if active().straight else 1
    outcomes = jax.lax.scan(step, world.start, (world.row, policy, words), unroll=unroll)[1]
    following = look(world.next_level, outcomes)
    levels = jnp.concatenate([world.start[None], following[:-1]])
    actions = (outcomes - world.row) // M - levels * A
    return Trajectory(levels, actions, look(world.paid, 2 * outcomes + 1), following)


def draw_actions(policy: Array, words: Array) -> jax.Array:
    """Actions int32 [H, k+1, W] of a randomised policy [H, k+1, A, W]; a stage's levels share its word."""
    num_actions = policy.shape[2]
    passed = policy[:, :, 0]
    # Not jnp.sum, which XLA hands to a library that is slow for a few numbers.
    total = reduce(jnp.add, [policy[:, :, a] for a in range(num_actions)])
    target = unit_float32(words)[:, None] * total
    action = jnp.zeros(passed.shape, jnp.int32)
    for a in range(1, num_actions):
        action = action + (target >= passed).astype(jnp.int32)
        passed = passed + policy[:, :, a]
    return action


@cache
def _walk(sizes: Any):
    _, k, A, M = sizes
    one_by_one = _one_level(sizes) if k > AT_ONCE else None
    all_at_once = _all_levels(sizes)

    @separate
    def side(packed, row, words):
        """Where the rewards of both sides begin, and the side [HW]."""
        level, own, action = packed & 15, (packed >> 8) & 15, packed >> 12
        return 2 * (row + (level * A + action) * M + column(words, M)[0]) + own

    @together
    def walked(route, paid, row, start, policy, words):
        path_of = all_at_once if active().straight or one_by_one is None else one_by_one
        path = path_of(route, row, start, policy, words)
        rewards = separate(look)(paid, side(path, row, words))
        return path & 15, path >> 12, rewards, (path >> 4) & 15

    return walked


# Both ways to the path give packed numbers [HW]: level, next level, side of the column (4 bits each), action.


def _one_level(sizes: Any):
    """Link after link."""
    H, _, A, M = sizes

    @separate
    def link(before, route, row, policy, words, i):
        """The packed number [W] of stage i."""
        lanes = before.shape[0]

        def here(x):
            return jax.lax.dynamic_slice_in_dim(x, i * lanes, lanes, axis=-1)

        level = (before >> 4) & 15
        action = jnp.clip(at_level(here(policy), level), 0, A - 1)
        place, rest = column(here(words), M)
        entry = look(route, here(row) + (level * A + action) * M + place)
        return packed(level, entry, rest, action)

    def path_of(route, row, start, policy, words):
        def step(i, carry):
            here, path = carry
            here = link(here, route, row, policy, words, i)
            at = i * start.shape[0]
            return here, jax.lax.dynamic_update_slice_in_dim(path, here, at, axis=0)

        carry = (start << 4, jnp.zeros(row.shape, jnp.int32))
        return jax.lax.fori_loop(0, H, step, carry)[1]

    return path_of


def _all_levels(sizes: Any):
    """What every level would lead to first."""
    H, _, A, M = sizes

    def levels_of(policy):
        return jnp.arange(1, policy.shape[0], dtype=jnp.int32)[:, None]

    @separate
    def everywhere(row, policy, words):
        """The column that is drawn at each level from 1 on [k, HW]."""
        action = jnp.clip(policy[1:], 0, A - 1)
        return row[None] + (levels_of(policy) * A + action) * M + column(words, M)[0][None]

    @separate
    def lead(entry, policy, words):
        """The packed numbers of each level from 1 on [k, HW]."""
        action = jnp.clip(policy[1:], 0, A - 1)
        return packed(levels_of(policy), entry, column(words, M)[1][None], action)

    @separate
    def ways_of(would):
        """The next levels of all levels [HW], 4 bits each; level 0 leads nowhere else."""
        ways = [((x >> 4) & 15) << 4 * level for level, x in enumerate(would, 1)]
        return reduce(jnp.bitwise_or, ways)

    @separate
    def chosen(levels, would, policy):
        """The packed numbers of the levels [HW]."""
        found = jnp.clip(policy[0], 0, A - 1) << 12
        for level, x in enumerate(would, 1):
            found = jnp.where(levels == level, x, found)
        return found

    def path_of(route, row, start, policy, words):
        index = everywhere(row, policy, words)
        # The look-ups alone in one kernel: with arithmetic beside them XLA vectorises neither.
        entry = separate(look)(route, index.reshape(-1)).reshape(index.shape)
        would = lead(entry, policy, words)
        if active().straight:
            return _followed([jnp.clip(policy[0], 0, A - 1) << 12, *would], start)
        ways, lanes = ways_of(would), start.shape[0]
        level, levels = start, [start]
        for first in range(0, H - 1, LINKS):
            last = min(first + LINKS, H - 1)
            found = _links(last - first)(level, ways[first * lanes : last * lanes])
            levels.append(found.reshape(-1))
            level = found[-1]
        return chosen(join(levels), would, policy)

    return path_of


def _followed(would: list[Array], level: Array) -> jax.Array:
    """The packed numbers [HW] of the path, of those that stand at each level [HW]."""
    rows = [x.reshape(-1, level.size) for x in would]
    path = []
    for i in range(len(rows[0])):
        path.append(at_level([row[i] for row in rows], level))
        level = (path[-1] >> 4) & 15
        if (i + 1) % CUT_LINKS == 0:
            level = jax.lax.optimization_barrier(level)
    return jnp.concatenate(path)


@cache
def _links(count: int):
    """The levels int32 [count, W] after some stages, from the level [W] before them and their ways [count * W]."""

    @separate
    def links(level, ways):
        row = jnp.arange(count, dtype=jnp.int32)[:, None]
        found = jnp.broadcast_to(level[None], (count, *level.shape))
        # One select over all stages, not one stage after the other: XLA vectorises a loop only if much is done in it.
        for i, way in enumerate(ways.reshape(count, -1)):
            level = jax.lax.shift_right_logical(way, level << 2) & 15
            found = jnp.where(row >= i, level[None], found)
        return found

    return links


join = separate(jnp.concatenate)


def packed(level: Array, entry: Array, rest: Array, action: Array) -> jax.Array:
    """The packed numbers of levels, where ``rest`` picks the side of the columns ``entry`` of `EpisodeWorld.route`."""
    own = rest < (entry >> jnp.uint32(8))
    after = jnp.where(own, entry >> jnp.uint32(4), entry) & jnp.uint32(15)
    return level | (after.astype(jnp.int32) << 4) | (own.astype(jnp.int32) << 8) | action << 12


def column(words: Array, num_outcomes: int) -> tuple[jax.Array, jax.Array]:
    """The column of an alias table that a word picks, and 24 bits that pick its side."""
    place = (words >> jnp.uint32(8)) * jnp.uint32(num_outcomes)
    return (place >> jnp.uint32(24)).astype(jnp.int32), place & jnp.uint32(0xFFFFFF)


def at_level(row: Sequence[Array], level: Array) -> jax.Array:
    """row[level] with levels in front: row [k+1, ..., W], level [..., W]."""
    value = row[0]
    for one in range(1, len(row)):
        value = jnp.where(level == one, row[one], value)
    return value


def look(table: Array, index: Array) -> jax.Array:
    """table[index], all of them in bounds."""
    return table.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


# Exact regrets.


def regrets(sizes: Sizes, world: EpisodeWorld, policies: Array) -> jax.Array:
    """float32 [E, W] of policies int [E, k, H, W], or of one randomised policy float [H, k, A, W]; level 0 is left out."""
    if sizes.by_outcomes:
        tables = (world.gap, world.chance, world.next_level, world.row)
        tail = _of_outcomes(sizes.num_outcomes)(tables, policies)
        # A level that no outcome leads to is seen by no sum.
        tail = jnp.where(_is_wrong(policies, sizes.num_actions), jnp.nan, tail)
    elif sizes.width < MOST_LEVELS or is_randomised(policies):
        tail = _summed(world.gap, world.transition, policies)
    else:
        tail = _multiplied(world.gap, world.transition, policies)
    value, wrong = tail[0], jnp.isnan(tail[0])
    for level in range(1, len(tail)):
        value = jnp.where((world.start == level + 1)[None], tail[level], value)
        wrong = wrong | jnp.isnan(tail[level])
    return jnp.where(wrong, jnp.nan, value)


def is_randomised(policy: Any) -> bool:
    """Whether it holds probabilities, and not actions."""
    return not jnp.issubdtype(policy.dtype, jnp.integer)


def _is_wrong(policies: Array, num_actions: int) -> jax.Array:
    """bool [E, W]: whether a policy is none at some state."""
    if is_randomised(policies):
        low, total = jnp.min(policies, axis=2), jnp.sum(policies, axis=2)
        return ~jnp.all((low >= 0) & (jnp.abs(total - 1) <= TOLERANCE), axis=(0, 1))[None]
    return jnp.any((policies < 0) | (policies >= num_actions), axis=(1, 2))


def _chosen(played: Array, q: Callable[[int], Array], num_actions: int) -> jax.Array:
    """The values of the actions that are played; nan where none is."""
    value = jnp.full(played.shape, jnp.nan, jnp.float32)
    for a in range(num_actions):
        value = jnp.where(played == a, q(a), value)
    return value


def _mixed(shares: Sequence[Array], q: Callable[[int], Array]) -> jax.Array:
    """The mean value of actions; nan where their shares are no probabilities."""
    value = reduce(jnp.add, [x * q(a) for a, x in enumerate(shares)])
    low, total = reduce(jnp.minimum, shares), reduce(jnp.add, shares)
    # Written so that nan is wrong too.
    right = (low >= 0) & (jnp.abs(total - 1) <= TOLERANCE)
    return jnp.where(right, value, jnp.nan)


def _backwards(back: Callable, tail: Array, horizon: int) -> Array:
    """What ``tail = back(tail, i)`` comes to for i = H-1, ..., 0. Tables are looked up by the stage's number: handed over
    stage by stage they would be copied."""
    if not active().straight:
        stages = jnp.arange(horizon - 1, -1, -1, dtype=jnp.int32)
        return jax.lax.scan(lambda tail, i: (back(tail, i), None), tail, stages)[0]
    for i in reversed(range(horizon)):
        tail = back(tail, i)
    return tail


@together
def _summed(gap: Array, transition: Array, policies: Array) -> jax.Array:
    """From every level, float32 [k, E, W]: sums written out."""
    horizon, width, num_actions, lanes = gap.shape
    episodes = 1 if is_randomised(policies) else len(policies)

    def back(tail, i):
        def q(a):
            here = gap[i, :, a][:, None]
            for s in range(width):
                here = here + transition[i, :, a, s][:, None] * tail[s][None]
            return here

        if is_randomised(policies):
            return _mixed([policies[i, :, a][:, None] for a in range(num_actions)], q)
        return _chosen(jnp.moveaxis(policies[:, :, i], 0, 1), q, num_actions)

    return _backwards(back, jnp.zeros((width, episodes, lanes), jnp.float32), horizon)


def _multiplied(gap: Array, transition: Array, policies: Array) -> jax.Array:
    """With many levels: a matrix product per stage and lane, of all actions and episodes."""
    _, width, num_actions, lanes = gap.shape
    exact = jax.lax.Precision.HIGHEST

    def back(tail, stage):
        gap, transition, policies = stage
        ahead = jnp.einsum("lasw,sew->alew", transition, tail, precision=exact)
        q = jnp.moveaxis(gap, 1, 0)[:, :, None] + ahead
        return _chosen(jnp.moveaxis(policies, 0, 1), lambda a: q[a], num_actions), None

    tail = jnp.zeros((width, len(policies), lanes), jnp.float32)
    stages = (gap, transition, jnp.moveaxis(policies, 2, 0))
    return jax.lax.scan(back, tail, stages, reverse=True)[0]


def randomised_regrets(sizes: Sizes, world: EpisodeWorld, policies: Array) -> jax.Array:
    """Of randomised policies float [E, H, k+1, A, W], as float32 [E, W].

    Where branches are free a policy that is the one before it in every lane is not evaluated again: block learners play
    one policy for many episodes.
    """

    def regret(policy):
        return regrets(sizes, world, policy[:, 1:])[0]

    if not active().branches:
        return jax.vmap(regret)(policies)

    def one(last, turn):
        policy, new = turn
        found = jax.lax.cond(new, lambda: regret(policy), lambda: last)
        return found, found

    new = jnp.any(_renewed(policies), axis=-1)
    last = jnp.zeros(policies.shape[-1:], jnp.float32)
    return jax.lax.scan(one, last, (policies, new))[1]


@separate
def _renewed(policies: Array) -> jax.Array:
    """bool [E, W]: whether a policy differs from the one before it; nan differs from nan. Lanes stay apart: a reduction
    of all axes is not vectorised."""
    differ = jnp.any(policies[1:] != policies[:-1], axis=(1, 2, 3))
    return jnp.concatenate([jnp.ones((1, differ.shape[1]), bool), differ])


@cache
def _of_outcomes(num_outcomes: int):
    """From every level, float32 [k, E, W], by looking up where each outcome leads: H k A M rows of values and not H k^2 A.

    Episodes are the last axis inside: what is looked up is the same for all of them.
    """

    @together
    def tails(tables, policies):
        gap, chance, next_level, row = tables
        horizon, width, num_actions, lanes = gap.shape
        episodes = 1 if is_randomised(policies) else len(policies)
        level = jnp.arange(1, width + 1, dtype=jnp.int32)[:, None]
        lane = jnp.arange(lanes, dtype=jnp.int32)[None]

        def q(tail, i, a):
            """Of one action at every level, [k, W, E]."""
            index = row[i][None] + (level * num_actions + a) * num_outcomes

            def add(m, here):
                following = look(next_level, index + m) * lanes + lane
                return here + look(chance, index + m)[..., None] * look(tail, following)

            here = jnp.broadcast_to(gap[i, :, a][..., None], (width, lanes, episodes))
            unroll = num_outcomes if active().straight else min(num_outcomes, TERMS)
            return jax.lax.fori_loop(0, num_outcomes, add, here, unroll=unroll)

        def back(tail, i):
            if is_randomised(policies):
                shares = [policies[i, :, a][..., None] for a in range(num_actions)]
                value = _mixed(shares, partial(q, tail, i))
            else:
                played = jnp.moveaxis(policies[:, :, i], 0, -1)
                value = _chosen(played, partial(q, tail, i), num_actions)
            return jnp.concatenate([tail[:lanes], value.reshape(-1, episodes)])

        tail = jnp.zeros(((width + 1) * lanes, episodes), jnp.float32)
        found = _backwards(back, tail, horizon)[lanes:]
        return jnp.moveaxis(found.reshape(width, lanes, episodes), -1, 1)

    return tails
