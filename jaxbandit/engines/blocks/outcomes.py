"""The outcomes of an MDP as the count engine draws them: first where episodes go, then what groups of them are paid.

A *state* of a stage is a level or a pool. At a level, one outcome after another is split off: the pair (reward, next
level), or, if moves from several levels or stages can pay the same rewards, the next level alone; those episodes also
join a pool, and their rewards are split off there. Pools whose rewards turn out to have one law are one, and so is a
pool with itself in the next stage: n episodes that follow the same actions at all levels of a prophet inequality cost
k + A - 2 draws a stage instead of k (A - 1), and about k if the values of all stages have one distribution.

The tables of an instance are made for it alone, so that their sizes (`block_sizes`) are sizes of the instance.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from jaxbandit.engines.tables import normalised_prob, once_per_instance
from jaxbandit.mdp import MDP
from jaxbandit.types import Array

MAX_STATES, MAX_OUTCOMES = 63, 2**18
"""States but the empty one are bits of a signed word, outcomes fields of one. Not more words: ExpRef explores every level of
every stage apart, so that a phase at 255 levels is 100 million draws (`experiments/bench/README.md`)."""
Move = tuple[int, int]
"""Level and next level."""
Rewards = dict[float, np.ndarray]
"""Rewards of a move with their probabilities [A]."""
Entry = tuple[float, int, int]
"""An outcome: reward, next level, pool (0: none)."""


class Outcomes(NamedTuple):
    """Tables of one MDP. State 0 is nowhere, 1..P are pools, P + l is level l; X = 1 + P + k; U outcomes at most.

    In a tile, every leaf has a leading axis of lanes.
    """

    prob: Array
    """float64 [H, X, A, U]: at a level they sum to 1 over U; at a pool, to the probability of its move."""
    reward: Array
    """float64 [H, X, U]."""
    next_level: Array
    """int32 [H, X, U]: 0 at pools."""
    pool: Array
    """int32 [H, X, U]: the pool that the outcome joins, 0 for none."""
    level: Array
    """int32 [H, X]: the level whose actions count; for a pool, the one it is joined from."""
    kind: Array
    """int32 [H, P]: pools of one kind have the same rewards; below 0 where there is none."""
    start: Array
    """int32 []: the level."""


def block_sizes(mdp: MDP) -> tuple[int, int]:
    """P and U of `Outcomes`: beside H, k and A all that the block engine's programs depend on of an MDP.

    Example:
        >>> import jaxbandit as jb
        >>> block_sizes(jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=4))
        (2, 3)
    """
    known = merge_outcomes(mdp)
    return known.kind.shape[-1], known.reward.shape[-1]


@once_per_instance
def merge_outcomes(mdp: MDP) -> Outcomes:
    """The tables of one MDP; equal pairs are merged, the likeliest come first.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=4)
        >>> merge_outcomes(mdp).prob.shape
        (3, 5, 4, 3)
    """
    prob = normalised_prob(mdp)
    reward, target = np.asarray(mdp.reward, np.float64), np.asarray(mdp.next_level)
    H, levels, A, _ = prob.shape
    moves = [_moves(prob[i], reward[i], target[i]) for i in range(H)]
    kinds = _kinds(moves)
    P = max(map(len, kinds))
    if P + levels > MAX_STATES:
        kinds, P = [dict[Move, int]() for _ in kinds], 0
    chains = [_chains(*stage, P) for stage in zip(moves, kinds, strict=True)]
    # An MDP in which nothing can happen has no chains; it still has a table.
    U = max((len(chain) for stage in chains for chain in stage.values()), default=1)
    X = P + levels
    if X > MAX_STATES or U > MAX_OUTCOMES:
        raise ValueError(
            f"MDP: {X} levels with {U} different outcomes; accepted on the block engine: at most "
            f"{MAX_STATES} and {MAX_OUTCOMES} (the episode engine takes any)"
        )
    out = Outcomes(
        prob=np.zeros((H, X, A, U)),
        reward=np.zeros((H, X, U)),
        next_level=np.zeros((H, X, U), np.int32),
        pool=np.zeros((H, X, U), np.int32),
        level=np.tile(np.maximum(np.arange(X) - P, 0).astype(np.int32), (H, 1)),
        kind=np.tile(-1 - np.arange(P, dtype=np.int32), (H, 1)),
        start=np.asarray(mdp.start, np.int32),
    )
    for i in range(H):
        for number, ((level, _), kind) in enumerate(kinds[i].items()):
            out.level[i, 1 + number], out.kind[i, number] = level, kind
        for x, chain in chains[i].items():
            for u, ((pay, to, pool), weight) in enumerate(chain):
                out.prob[i, x, :, u], out.reward[i, x, u] = weight, pay
                out.next_level[i, x, u], out.pool[i, x, u] = to, pool
    for table in out:
        table.setflags(write=False)
    return out


def _moves(prob: np.ndarray, reward: np.ndarray, target: np.ndarray) -> dict[Move, Rewards]:
    """The possible moves of a stage; level 0 has none."""
    levels, A, M = prob.shape
    moves: dict[Move, Rewards] = {}
    for level in range(1, levels):
        for a, m in np.ndindex(A, M):
            if prob[level, a, m] > 0:
                rewards = moves.setdefault((level, int(target[level, a, m])), {})
                rewards.setdefault(float(reward[level, a, m]), np.zeros(A))[a] += prob[level, a, m]
    return moves


def _kinds(stages: list[dict[Move, Rewards]]) -> list[dict[Move, int]]:
    """The moves of each stage that get pools, numbered by their set of rewards: two or more, that other moves share."""
    uses = Counter(frozenset(rewards) for moves in stages for rewards in moves.values())
    shared = [rewards for rewards, count in uses.items() if len(rewards) > 1 and count > 1]
    numbers = {rewards: number for number, rewards in enumerate(sorted(shared, key=sorted))}
    return [
        {
            move: numbers[frozenset(rewards)]
            for move, rewards in moves.items()
            if frozenset(rewards) in numbers
        }
        for moves in stages
    ]


def _chains(
    moves: dict[Move, Rewards], kinds: dict[Move, int], num_pools: int
) -> dict[int, list[tuple[Entry, np.ndarray]]]:
    """State -> its outcomes in the order in which they are split off, with probabilities [A]."""
    chains: dict[int, list[tuple[Entry, np.ndarray]]] = {}
    pools = {move: number for number, move in enumerate(kinds, 1)}
    for (level, to), rewards in moves.items():
        entries = chains.setdefault(num_pools + level, [])
        if (level, to) in pools:
            pool = pools[level, to]
            entries.append(((0.0, to, pool), np.sum(list(rewards.values()), axis=0)))
            # In the order of the rewards: pools of one kind list them alike.
            chains[pool] = [((pay, 0, 0), rewards[pay]) for pay in sorted(rewards)]
        else:
            entries += [((pay, to, 0), weight) for pay, weight in rewards.items()]
    for x, entries in chains.items():
        if x > num_pools:
            entries.sort(key=lambda entry: (-entry[1].sum(), entry[0]))
    return chains
