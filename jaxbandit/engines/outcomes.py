"""The outcomes of MDPs as the count engine draws them: first where episodes go, then what groups of them are paid.

A *state* of a stage is a level or a pool. At a level, one outcome after another is split off: the pair (reward, next level),
or, if moves from several levels or stages can pay the same rewards, the next level alone; those episodes also join a pool,
and their rewards are split off there. Pools whose rewards turn out to have one law are one, and so is a pool with itself in
the next stage: n episodes that follow the same actions at all levels of a prophet inequality cost k + A - 2 draws a stage
instead of k (A - 1), and about k if the values of all stages have one distribution.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.mdp import MDP

Array = Any
MAX_STATES, MAX_OUTCOMES = 63, 2**18
"""States but the empty one are bits of a signed word, outcomes fields of one."""
Entry = tuple[float, int, int]
"""An outcome: reward, next level, pool (0: none)."""


class Outcomes(NamedTuple):
    """Tables of G groups. State 0 is nowhere, 1..P are pools, P + l is level l; X = 1 + P + k; U outcomes at most."""

    prob: Array
    """float64 [G, H, X, A, U]: at a level they sum to 1 over U; at a pool, to the probability of its move."""
    reward: Array
    """float64 [G, H, X, U]."""
    next_level: Array
    """int32 [G, H, X, U]: 0 at pools."""
    pool: Array
    """int32 [G, H, X, U]: the pool that the outcome joins, 0 for none."""
    level: Array
    """int32 [G, H, X]: the level whose actions count; for a pool, the one it is joined from."""
    kind: Array
    """int32 [G, H, P]: pools of one kind have the same rewards; below 0 where there is none."""
    start: Array
    """int32 [G]: the level."""


def merge_outcomes(mdps: MDP) -> Outcomes:
    """The tables of MDPs stacked along a leading axis [G]; equal pairs are merged, the likeliest come first."""
    prob = np.asarray(mdps.prob, np.float64)
    prob = prob / prob.sum(-1, keepdims=True)
    reward, target = np.asarray(mdps.reward, np.float64), np.asarray(mdps.next_level)
    G, H, levels, _, _ = prob.shape
    stages = {(g, i): _pairs(prob[g, i], reward[g, i], target[g, i]) for g, i in np.ndindex(G, H)}
    kinds = _kinds(stages)
    P = max(map(len, kinds.values()))
    if P + levels > MAX_STATES:
        kinds, P = {place: dict[tuple[int, int], int]() for place in kinds}, 0
    listed = {place: _states(stages[place], kinds[place], P) for place in stages}
    U = max(len(entries) for states in listed.values() for entries in states.values())
    X, A = P + levels, prob.shape[3]
    states, entries = (G, H, X), (G, H, X, U)
    out = Outcomes(
        prob=np.zeros((*states, A, U)),
        reward=np.zeros(entries),
        next_level=np.zeros(entries, np.int32),
        pool=np.zeros(entries, np.int32),
        level=np.broadcast_to(np.maximum(np.arange(X) - P, 0).astype(np.int32), states).copy(),
        kind=np.broadcast_to(-1 - np.arange(P, dtype=np.int32), (G, H, P)).copy(),
        start=np.asarray(mdps.start, np.int32),
    )
    for (g, i), chains in listed.items():
        for number, ((level, _), kind) in enumerate(kinds[g, i].items()):
            out.level[g, i, 1 + number], out.kind[g, i, number] = level, kind
        for x, chain in chains.items():
            for u, ((pay, to, pool), weight) in enumerate(chain):
                at = (g, i, x)
                out.prob[*at, :, u], out.reward[*at, u], out.next_level[*at, u], out.pool[*at, u] = weight, pay, to, pool
    return out


def _pairs(prob: np.ndarray, reward: np.ndarray, target: np.ndarray) -> dict[tuple[int, int], dict[float, np.ndarray]]:
    """Moves (level, next level) of a stage -> rewards -> probabilities [A]; level 0 has none."""
    levels, A, M = prob.shape
    moves: dict[tuple[int, int], dict[float, np.ndarray]] = {}
    for level in range(1, levels):
        for a, m in np.ndindex(A, M):
            if prob[level, a, m] > 0:
                rewards = moves.setdefault((level, int(target[level, a, m])), {})
                rewards.setdefault(float(reward[level, a, m]), np.zeros(A))[a] += prob[level, a, m]
    return moves


def _kinds(stages: dict[tuple[int, int], dict]) -> dict[tuple[int, int], dict[tuple[int, int], int]]:
    """The moves of each stage that get pools, numbered by their set of rewards: two or more, that other moves share."""
    sets = {place: [frozenset(rewards) for rewards in moves.values()] for place, moves in stages.items()}
    uses = Counter((g, rewards) for (g, _), here in sets.items() for rewards in here)
    shared = {rewards for (_, rewards), count in uses.items() if len(rewards) > 1 and count > 1}
    numbers = {rewards: number for number, rewards in enumerate(sorted(shared, key=sorted))}
    return {
        place: {
            move: numbers[rewards]
            for move, rewards in zip(moves, sets[place], strict=True)
            if uses[place[0], rewards] > 1 and rewards in numbers
        }
        for place, moves in stages.items()
    }


def _states(moves: dict, kinds: dict, num_pools: int) -> dict[int, list[tuple[Entry, np.ndarray]]]:
    """State -> its outcomes, with probabilities [A]."""
    states: dict[int, list[tuple[Entry, np.ndarray]]] = {}
    pools = {move: number for number, move in enumerate(kinds, 1)}
    for (level, to), rewards in moves.items():
        entries = states.setdefault(num_pools + level, [])
        if (level, to) in pools:
            pool = pools[level, to]
            entries.append(((0.0, to, pool), sum(rewards.values())))
            # In the order of the rewards: pools of one kind list them alike.
            states[pool] = [((pay, 0, 0), rewards[pay]) for pay in sorted(rewards)]
        else:
            entries += [((pay, to, 0), weight) for pay, weight in rewards.items()]
    for x, entries in states.items():
        if x > num_pools:
            entries.sort(key=lambda entry: (-entry[1].sum(), entry[0]))
    return states


class Splits(NamedTuple):
    """The chains of binomial splits of a policy, leaves [..., X, U]."""

    chance: Array
    """float64: probability of outcome u given that it is none of the earlier ones; exactly 1 at the last possible one, 0 at
    impossible ones."""
    following: Array
    """int32: the next possible outcome after u."""
    certain: Array
    """bool: there is one such and no other."""


def splits(weight: Array) -> Splits:
    """The chain for outcomes of weights [..., U], not normalised."""
    U = weight.shape[-1]

    def back(carry, x):
        after, following, possible = carry
        u, here = x
        left = after + here
        chance = jnp.where(here > 0, jnp.where(after > 0, here / jnp.maximum(left, 1e-300), 1), 0)
        before = (left, jnp.where(here > 0, u, following), possible + (here > 0).astype(jnp.int32))
        return before, (chance, following, possible == 1)

    none = jnp.zeros_like(weight[..., 0])
    start = (none, jnp.full(none.shape, U - 1, jnp.int32), jnp.zeros(none.shape, jnp.int32))
    steps = (jnp.arange(U, dtype=jnp.int32), jnp.moveaxis(weight, -1, 0))
    _, chain = jax.lax.scan(back, start, steps, reverse=True)
    return Splits(*(jnp.moveaxis(x, 0, -1) for x in chain))


def same_law(chance: Array, kind: Array, other_chance: Array, other_kind: Array) -> jax.Array:
    """Whether pools pay the same rewards by the same chain, bool [...]: ``chance`` [..., U], ``kind`` [...]."""
    equal = kind == other_kind
    for u in range(chance.shape[-1]):
        equal = equal & (chance[..., u] == other_chance[..., u])
    return equal


def merge_pools(chance: Array, kind: Array) -> jax.Array:
    """For each of P pools the first one of the same law, int32 [..., P], numbered from 1.

    ``chance`` [..., P, U], ``kind`` [..., P].
    """
    equal = same_law(chance[..., :, None, :], kind[..., :, None], chance[..., None, :, :], kind[..., None, :])
    return 1 + jnp.argmax(equal, axis=-1).astype(jnp.int32)
