"""The count machine: n episodes of a randomised Markov policy, exactly in law, at a cost that does not depend on n.

Of the n episodes of an arm, the number in a state of stage i that see an outcome (`Outcomes`) is binomial given how
many are there and have not been assigned yet, so an arm costs a number of binomial draws that depends on the sizes of
the MDP: T = 10^12 costs little more than T = 10^6. A block learner only looks at the sum of the rewards, and the regret
of an arm is n times an exactly known number, so nothing else is needed.

Outcomes. A *state* of a stage is a level or a pool. At a level, one outcome after another is split off: the pair
(reward, next level), or, if moves from several levels or stages can pay the same rewards, the next level alone; those
episodes also join a pool, and their rewards are split off there. Pools whose rewards turn out to have one law are one,
and so is a pool with itself in the next stage: n episodes that follow the same actions at all levels of a prophet
inequality cost k + A - 2 draws a stage instead of k (A - 1), and about k if the values of all stages have one
distribution. The tables of an instance are made for it alone, so that their sizes (`block_sizes`) are its own.

Rows. A *row* is a stage of a policy. Of each lane there are the H rows of the policy that its arms share, then a row
for each arm at the stage where they differ. What an outcome's entry in a row says stands in one int64, and a set of
states in one word, a bit each:

    bits    field        meaning
    0-5     TARGET       the state in the next stage of the episodes that see the outcome (0: none)
    6-11    POOL         the pool that they join (0: none)
    12-17   REST_TARGET  the same two of the following outcome; both together are REST
    18-23   REST_POOL
    24      CERTAIN      1: the following outcome is certain for all others, being the last possible one
    32-49   FOLLOWING    its number
    50-61   STANDING     the same in all entries of a row: bit j is set if pool j + 1 pays by the same law in the next
                         stage (in the shared row before the arms' own stage, where the next is not shared, for none)

The fields of the low half are read from its int32 alone, which is cheaper.

Workers. A worker is at an outcome of a state of a stage and has just drawn how many of the episodes that are left there
see it. A step of all workers (`step`) is

1. `settle`: the episodes drawn join the outcome's pool and its level of the next stage, and are paid. If the draw was
   rejected nobody moves; if the following outcome is certain, the others go there at once.
2. `go_on`: where nobody is left, to the next state with episodes; where no state is left, to the next stage; where
   there is none in that stage either, the arm is finished.
3. `draw`: one attempt (`binomial.attempt`) at the count of the next outcome.

Parts that several others need are `separate`, and so computed once on platforms where XLA would repeat them.
The tests have the same law in thirty lines, one binomial per split and no packing.

Arms are pushed side by side, V at a time, each at its own pace: an arm whose rejection sampler needs another attempt
does not hold up the others, outcomes of probability 0, splits that are certain and states that nobody reaches are
passed over, pools that go on unchanged in the next stage wait for it, and every few steps the finished arms make room
for the next ones. An arm's numbers come from its own key and its own counter: they do not depend on the worker, nor on
what the others do. Everything is float64 (whole numbers are exact to 2^53) and needs x64.

One-bit feedback (`push_bits`): n episodes of an arm are one binomial draw. Shown is a coin that falls on 1 with
probability equal to the episode's total reward X, given X. So each coin of an arm falls on 1 with probability E[X] =
V, the value of its policy, the coins of different episodes are independent, and their sum is Binomial(n, V) exactly:
nothing of the episodes themselves needs to be drawn. V is Opt - regret, from the float64 tables that give exact
regret, so it is off by a few 10^-16: the mean of n <= 2^53 coins by a few units where their standard deviation is up
to 4.7e7.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engines.blocks import binomial
from jaxbandit.engines.tables import normalised_prob, once_per_instance
from jaxbandit.learner import Blocks
from jaxbandit.mdp import MDP
from jaxbandit.types import Array
from jaxbandit.xla.platforms import active, separate, together
from jaxbandit.xla.threefry import fold_in, threefry, unit_float64

MAX_STATES, MAX_OUTCOMES = 63, 2**18
"""States but the empty one are bits of a signed word, outcomes fields of one. Not more words: ExpRef explores every level of
every stage apart, so that a phase at 255 levels is 100 million draws (`experiments/bench/README.md`)."""
FEW = 8
"""Up to so many entries, comparing with each is faster than looking one up, and a loop over them is written out."""
NEXT_STAGE = 64
"""What `_choose` adds to states of the next stage: more than any state."""
ATTEMPTS = 8
"""Attempts between two looks whether all arms are done, where looking costs an answer of the host. At least 73 % of the
attempts succeed, so 8 are enough for all of 10,000 arms three times out of four."""
Move = tuple[int, int]
"""Level and next level."""
Rewards = dict[float, np.ndarray]
"""Rewards of a move with their probabilities [A]."""
Key = tuple[Array, Array]


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
    moves = [_moves(*stage) for stage in zip(prob, reward, target, strict=True)]
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
            for u, entry in enumerate(chain):
                out.reward[i, x, u], out.next_level[i, x, u], out.pool[i, x, u] = entry[:3]
                out.prob[i, x, :, u] = entry[3]
    for table in out:
        table.setflags(write=False)
    return out


def _moves(prob: np.ndarray, reward: np.ndarray, target: np.ndarray) -> dict[Move, Rewards]:
    """The possible moves of a stage; level 0 has none."""
    moves: dict[Move, Rewards] = {}
    for level, a, m in np.argwhere(prob > 0).tolist():
        if level > 0:
            rewards = moves.setdefault((level, int(target[level, a, m])), {})
            chances = rewards.setdefault(float(reward[level, a, m]), np.zeros(prob.shape[1]))
            chances[a] += prob[level, a, m]
    return moves


def _kinds(stages: list[dict[Move, Rewards]]) -> list[dict[Move, int]]:
    """The moves of each stage that get pools, numbered by their set of rewards: two or more, that other moves share."""
    uses = Counter(frozenset(rewards) for moves in stages for rewards in moves.values())
    shared = [rewards for rewards, count in uses.items() if len(rewards) > 1 and count > 1]
    numbers = {rewards: number for number, rewards in enumerate(sorted(shared, key=sorted))}
    return [
        {move: numbers[found] for move in moves if (found := frozenset(moves[move])) in numbers}
        for moves in stages
    ]


def _chains(
    moves: dict[Move, Rewards], kinds: dict[Move, int], num_pools: int
) -> dict[int, list[tuple[float, int, int, np.ndarray]]]:
    """State -> its outcomes in the order in which they are split off: reward, next level, pool (0: none), chances [A]."""
    chains: dict[int, list[tuple[float, int, int, np.ndarray]]] = {}
    pools = {move: number for number, move in enumerate(kinds, 1)}
    for (level, to), rewards in moves.items():
        entries = chains.setdefault(num_pools + level, [])
        if pool := pools.get((level, to)):
            entries.append((0.0, to, pool, np.sum(list(rewards.values()), axis=0)))
            # In the order of the rewards: pools of one kind list them alike.
            chains[pool] = [(pay, 0, 0, rewards[pay]) for pay in sorted(rewards)]
        else:
            entries += [(pay, to, 0, chances) for pay, chances in rewards.items()]
    for x, entries in chains.items():
        if x > num_pools:
            entries.sort(key=lambda entry: (-entry[3].sum(), entry[:3]))
    return chains


class Field(NamedTuple):
    """Some bits of a word.

    Example:
        >>> field = Field(shift=6, width=3)
        >>> word = field.write(jnp.int32(5)) | Field(0, 6).write(jnp.int32(63))
        >>> int(field.read(word)), int(word)
        (5, 383)
    """

    shift: int
    """The lowest bit."""
    width: int
    """How many."""

    def read(self, word: Array) -> jax.Array:
        """The field of a word, int32."""
        return ((word >> self.shift) & (2**self.width - 1)).astype(jnp.int32)

    def write(self, value: Array) -> jax.Array:
        """A word that holds nothing else; join words with ``|``. The value must fit."""
        wide = jnp.int32 if self.shift + self.width < 32 else jnp.int64
        return value.astype(wide) << self.shift


TARGET, POOL = Field(0, 6), Field(6, 6)
REST_TARGET, REST_POOL = Field(12, 6), Field(18, 6)
REST = Field(12, 12)
CERTAIN = Field(24, 1)
FOLLOWING, STANDING = Field(32, 18), Field(50, 12)


class ArmTables(NamedTuple):
    """What workers look up, of L lanes: their H shared rows, then those of their B arms."""

    chance: Array
    """float64 [L * (H + B), X, U]: those of `splits`."""
    code: Array
    """int64, the same: words."""
    reward: Array
    """float64 [L * H, X, U]."""


def make_tables(outcomes: Outcomes, blocks: Blocks) -> ArmTables:
    """The tables of the arms of ``blocks``, leaves [L, ...] like those of ``outcomes``."""
    H, P = outcomes.kind.shape[1:]
    stages = jnp.arange(H, dtype=jnp.int32)[None]

    def at_stage(table, stage):
        where = stage.reshape(-1, *[1] * (table.ndim - 1))
        return jnp.take_along_axis(table, where, axis=1)

    # Nobody goes on from the last stage.
    ahead = jnp.where((stages < H - 1)[..., None, None], outcomes.next_level, 0)
    tables = outcomes._replace(next_level=ahead, start=None)
    there = jax.tree.map(lambda table: at_stage(table, blocks.stage), tables)
    chance, code = _rows(tables, blocks.policy)
    own_chance, own_code = _rows(there, blocks.rows)

    laws = chance[..., 1 : P + 1, :], tables.kind
    own_laws = own_chance[..., 1 : P + 1, :], there.kind
    # A pool stands if it pays by the same law in the next stage: its draws can wait and be made once for both.
    following = jnp.minimum(blocks.stage + 1, H - 1)  # after the last stage nobody looks
    stand = _standing(*laws, *(jnp.roll(law, -1, axis=1) for law in laws))
    # The row after the shared one before the own stage differs from arm to arm, so there no pool stands: that costs draws,
    # and is right for every arm.
    stand = jnp.where(stages == blocks.stage[:, None] - 1, 0, stand)
    own_stand = _standing(*own_laws, *(at_stage(law, following) for law in laws))
    code, own_code = code | stand[..., None, None], own_code | own_stand[..., None, None]
    both = (jnp.concatenate(x, 1) for x in ((chance, own_chance), (code, own_code)))
    return ArmTables(*(x.reshape(-1, *x.shape[2:]) for x in (*both, outcomes.reward)))


def _rows(known: Outcomes, policy: Array) -> tuple[jax.Array, jax.Array]:
    """Chances and words [L, R, X, U] of R rows of a policy [L, R, k+1, A]."""
    P = known.kind.shape[-1]
    shape = (*policy.shape[:2], known.level.shape[-1])
    chance, following, certain = splits(_weights(known.prob, known.level, policy))
    target = jnp.where(known.next_level > 0, known.next_level + P, 0)
    pool = jnp.broadcast_to(known.pool, chance.shape)
    if P:
        first = merge_pools(
            chance[..., 1 : P + 1, :], jnp.broadcast_to(known.kind, (*shape[:2], P))
        )
        first = jnp.concatenate([jnp.zeros_like(first[..., :1]), first], -1)
        pool = _pick(first[..., None], pool.reshape(*shape[:2], -1)).reshape(pool.shape)
    itself = TARGET.write(target) | POOL.write(pool)
    low = itself | REST.write(_pick(itself[..., None], following)[..., 0])
    low = low | CERTAIN.write(certain)
    return chance, low.astype(jnp.int64) | FOLLOWING.write(following)


@separate
def _weights(prob: Array, level: Array, policy: Array) -> jax.Array:
    """Probabilities [L, R, X, U] of the outcomes."""
    actions = _pick(policy, jnp.broadcast_to(level, (*policy.shape[:2], level.shape[-1])))
    # Not jnp.sum: XLA would hand it to a library that takes ten times as long for a few numbers.
    return sum(actions[..., a, None] * prob[..., a, :] for a in range(policy.shape[-1]))


def _pick(table: Array, where: Array) -> jax.Array:
    """Rows [..., n, c] of a table [..., N, c] at ``where`` [..., n]."""
    N = table.shape[-2]
    if N > FEW:
        return jnp.take_along_axis(table, where[..., None], axis=-2)
    found = jnp.broadcast_to(table[..., :1, :], (*where.shape, table.shape[-1]))
    for number in range(1, N):
        here = (where == number)[..., None]
        found = jnp.where(here, table[..., number : number + 1, :], found)
    return found


@separate
def splits(weight: Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The chain of binomial splits for outcomes of weights [..., X, U], not normalised. Of each outcome

    * chance, float64: its probability given that it is none of the earlier ones; exactly 1 at the last possible one, 0
      at impossible ones;
    * following, int32: the next possible outcome;
    * certain, bool: there is one such and no other.
    """
    U = weight.shape[-1]

    def back(carry, x):
        after, following, possible = carry
        u, here = x
        left = after + here
        # From the back, because the chance at the last possible outcome must be exactly 1: a sum from the front would round
        # and leave an episode behind. 1e-300 is only there where the division is not used.
        chance = jnp.where(here > 0, jnp.where(after > 0, here / jnp.maximum(left, 1e-300), 1), 0)
        before = (left, jnp.where(here > 0, u, following), possible + (here > 0).astype(jnp.int32))
        return before, (chance, following, possible == 1)

    none = jnp.zeros_like(weight[..., 0])
    start = (none, jnp.full(none.shape, U - 1, jnp.int32), jnp.zeros(none.shape, jnp.int32))
    steps = (jnp.arange(U, dtype=jnp.int32), jnp.moveaxis(weight, -1, 0))
    _, chain = jax.lax.scan(back, start, steps, reverse=True, unroll=min(U, FEW))
    chance, following, certain = (jnp.moveaxis(x, 0, -1) for x in chain)
    return chance, following, certain


def same_law(chance: Array, kind: Array, other_chance: Array, other_kind: Array) -> jax.Array:
    """Whether pools pay the same rewards by the same chain, bool [...]: ``chance`` [..., U], ``kind`` [...]."""
    equal = kind == other_kind
    for u in range(chance.shape[-1]):
        equal = equal & (chance[..., u] == other_chance[..., u])
    return equal


def _standing(*laws: Array) -> jax.Array:
    """Which pools [..., P] have the same law here and there, as the STANDING field of a word [...]; those that have no
    bit are left out."""
    flags = same_law(*laws)[..., : STANDING.width].astype(jnp.int64)
    place = jax.lax.broadcasted_iota(jnp.int64, flags.shape, flags.ndim - 1)
    return STANDING.write(jnp.sum(flags << place, axis=-1))


def merge_pools(chance: Array, kind: Array) -> jax.Array:
    """For each of P pools the first one of the same law, int32 [..., P], numbered from 1.

    ``chance`` [..., P, U], ``kind`` [..., P].
    """
    equal = same_law(
        chance[..., :, None, :], kind[..., :, None], chance[..., None, :, :], kind[..., None, :]
    )
    return 1 + jnp.argmax(equal, axis=-1).astype(jnp.int32)


def singleton(state: Array, kind: Any) -> jax.Array:
    """The set of one state.

    Example:
        >>> int(singleton(jnp.int32(5), jnp.int32))
        32
    """
    return jnp.ones_like(state, kind) << state.astype(kind)


def largest(states: Array) -> jax.Array:
    """The largest state of a set; 0 of the empty one (state 0 is in none).

    Example:
        >>> largest(jnp.asarray([0, 2, 40], jnp.int32)).tolist()
        [0, 1, 5]
    """
    return (states.dtype.itemsize * 8 - 1 - jax.lax.clz(states | 1)).astype(jnp.int32)


def look(table: Array, where: Array) -> jax.Array:
    """Entries of a flat table; the indices must be inside."""
    return table.at[where].get(mode="promise_in_bounds")


class Push(NamedTuple):
    """Where the arms of V workers stand; ``drawn`` is not yet acted on."""

    stage: Array
    """int32 [V]."""
    state: Array
    """int32 [V]: a pool or a level, see `Outcomes`; 0 when the arm is finished."""
    outcome: Array
    """int32 [V]: the outcome whose count is being drawn."""
    left: Array
    """float64 [V]: episodes in the state not yet assigned to an outcome."""
    pools: Array
    """float64 [P, V]: episodes whose rewards of this stage, or of the stages just before it, are yet to be drawn."""
    here: Array
    """float64 [k, V]: episodes at each level of the stage, from 1 on."""
    there: Array
    """float64 [k, V]: the same of the next stage."""
    waiting: Array
    """int [V]: the states of the stage with episodes to be pushed on."""
    arrived: Array
    """int [V]: the levels of the next stage with episodes, as states."""
    total: Array
    """float64 [V]: sum of rewards."""
    drawn: Array
    """float64 [V]: the last draw, or -1 if it was rejected."""
    tries: Array
    """uint32 [V]: the counter of the random words."""


class Work(NamedTuple):
    """What each worker works on, [V] each."""

    arm: Array
    """int32: its number, B per lane; a worker without work has the number of arms."""
    row: Array
    """int32: where the lane's rows begin."""
    own: Array
    """int32: the stage with a row of its own."""
    shift: Array
    """int32: from that stage to the row."""
    first: Array
    """int32: where the lane's stages begin."""
    key: Key


def step(tables: ArmTables, work: Work, push: Push) -> Push:
    """All workers one attempt further."""
    # A draw is acted on in the next step: one that was rejected then needs no loop of its own, which would hold up
    # all workers until the last one is accepted. Its worker moves nobody and tries again beside the others.
    word = _look_up(tables.code, work, push.stage, push.state, push.outcome)
    push = go_on(word, settle(tables, word, work, push))
    chance = _look_up(tables.chance, work, push.stage, push.state, push.outcome)
    return push._replace(drawn=draw(work.key, push.tries, push.left, chance))


def settle(tables: ArmTables, word: Array, work: Work, push: Push) -> Push:
    """Acts on the last draws, at the outcomes of these words."""
    low, moved = _low(word), _moved(push.drawn)
    # Of U possible outcomes only U - 1 are drawn: the last one takes who is left, in the same step.
    rest = _rest(word, push.left, push.drawn)
    pool, rest_pool = POOL.read(low), REST_POOL.read(low)
    target, rest_target = TARGET.read(low), REST_TARGET.read(low)
    place = (push.stage, push.state, push.outcome, FOLLOWING.read(word))
    return push._replace(
        left=push.left - moved - rest,  # exact: whole numbers below 2^53
        pools=_join(push.pools, 1, pool, rest_pool, moved, rest),
        there=_join(push.there, len(push.pools) + 1, target, rest_target, moved, rest),
        waiting=_with(push.waiting, low >> POOL.shift, moved, rest),
        arrived=_with(push.arrived, low, moved, rest),
        total=push.total + _paid(tables.reward, work, *place, moved, rest),
    )


def go_on(word: Array, push: Push) -> Push:
    """To the next outcome, and where no episode is left to the next state."""
    go = _choose(word, push.left, push.waiting, push.arrived)
    over, leave, state = go >= 0, go >= NEXT_STAGE, go & (NEXT_STAGE - 1)
    here = jnp.where(leave[None], push.there, push.here)
    # After a rejected draw the worker stays at its outcome.
    outcome = jnp.where(push.drawn >= 0, FOLLOWING.read(word), push.outcome)
    states = jnp.where(leave, push.arrived | push.waiting, push.waiting)
    number = jnp.arange(1, len(push.pools) + 1, dtype=states.dtype)[:, None]
    # Pools that wait for the next stage keep their episodes, the others have been paid.
    paid = leave[None] & ((push.waiting[None] >> number) & 1 == 0)
    return push._replace(
        # State 0 is nowhere: nobody has a level left, so the stages to come pay nothing and the arm ends early.
        stage=push.stage + (leave & (state > 0)).astype(jnp.int32),
        state=jnp.where(over, state, push.state),
        outcome=jnp.where(over, 0, outcome).astype(jnp.int32),
        left=jnp.where(over, _episodes_in(push.pools, here, state), push.left),
        pools=jnp.where(paid, 0, push.pools),
        here=here,
        there=jnp.where(leave[None], 0, push.there),
        waiting=jnp.where(over, states & ~singleton(state, states.dtype), push.waiting),
        arrived=jnp.where(leave, 0, push.arrived),
        # Counted in every step, drawn or not, so that no random word serves twice.
        tries=push.tries + jnp.uint32(1),
    )


def draw(key: Key, tries: Array, left: Array, chance: Array) -> jax.Array:
    """One attempt at Binomial(left, chance) for every worker: the count, or -1. Free of look-ups, so it vectorises."""
    u, v = (_uniform(*key, tries * jnp.uint32(2) + jnp.uint32(word)) for word in (0, 1))
    sure = (chance >= 1) | (chance <= 0) | (left == 0)
    # Where nothing is drawn: an n that calls for nothing but what most others need anyway.
    accepted, x = binomial.attempt(jnp.where(sure, 100.0, left), jnp.where(sure, 0.5, chance), u, v)
    # Where it is sure, left * chance is exactly left or 0: chances there are exactly 1 or 0.
    return jnp.where(sure, left * chance, jnp.where(accepted, x, -1.0))


@separate
def _uniform(high: Array, low: Array, counter: Array) -> jax.Array:
    return unit_float64(*threefry((high, low), (jnp.zeros_like(counter), counter)))


@separate
def _look_up(table, work, stage, state, outcome):
    # The arms of a block share every row but one: H + B rows a lane instead of B H.
    row = work.row + stage + jnp.where(stage == work.own, work.shift, 0)
    _, X, U = table.shape
    return look(table.reshape(-1), (row * X + state) * U + outcome)


@separate
def _paid(reward, work, stage, state, outcome, following, moved, rest):
    _, X, U = reward.shape
    at, reward = ((work.first + stage) * X + state) * U, reward.reshape(-1)
    return moved * look(reward, at + outcome) + rest * look(reward, at + following)


@separate
def _low(word):
    return word.astype(jnp.int32)


@separate
def _moved(drawn):
    """How many episodes the draw moves to its outcome."""
    return jnp.maximum(drawn, 0)


@separate
def _rest(word, left, drawn):
    """And how many to the following outcome, if that is certain."""
    return jnp.where((drawn >= 0) & (CERTAIN.read(word) == 1), left - drawn, 0)


@separate
def _with(states, low, moved, rest):
    """A set and the states to which episodes go; of a word that is shifted by `POOL`, the pools."""
    for field, count in ((TARGET, moved), (REST_TARGET, rest)):
        state = field.read(low)
        there = singleton(state, states.dtype)
        states = states | jnp.where((count > 0) & (state > 0), there, 0)
    return states


@separate
def _choose(word, left, waiting, arrived):
    """-1: stay. Else the state to go on to (0: the arm is finished), plus NEXT_STAGE if it is one of the next stage.

    Levels come before pools, so pools are complete when their turn comes. Where nobody goes on, all are due.
    """
    standing = STANDING.read(word).astype(waiting.dtype) << 1
    due = jnp.where(arrived == 0, waiting, waiting & ~standing)
    leave = due == 0
    state = largest(jnp.where(leave, arrived, due))
    return jnp.where(left == 0, state + jnp.where(leave, NEXT_STAGE, 0), -1).astype(jnp.int32)


def _join(counts: Array, first: int, to: Array, rest_to: Array, moved: Array, rest: Array) -> Array:
    """Counts [n, V] of the states ``first`` on, after the draw."""
    index = jnp.arange(first, first + counts.shape[0], dtype=jnp.int32)[:, None]
    counts = counts + jnp.where(index == to[None], moved[None], 0)
    return counts + jnp.where(index == rest_to[None], rest[None], 0)


def _episodes_in(pools: Array, here: Array, state: Array) -> Array:
    """The episodes in a state; 0 in state 0."""
    value = jnp.zeros(state.shape, here.dtype)
    for x, counts in enumerate([*pools, *here], 1):
        value = jnp.where(state == x, counts, value)
    return value


@together
def _steps(tables: ArmTables, work: Work, push: Push) -> Push:
    """A round of steps, one kernel where the platform wants it.

    Handing out arms looks at all workers, so it is done once in several steps. Straight-line platforms take two per turn:
    what a turn hands to the next one is copied.
    """
    return jax.lax.fori_loop(
        0,
        active().steps,
        lambda _, push: step(tables, work, push),
        push,
        unroll=2 if active().straight else 1,
    )


def push_arms(outcomes: Outcomes, blocks: Blocks, episodes: Array, keys: Key) -> jax.Array:
    """Sums of the total rewards of ``episodes`` [L, B] episodes of every arm of ``blocks`` (leaves [L, ...]).

    ``keys`` are the uint32 words [L] of each lane's key for this block; arm b uses fold_in(key, b).
    """
    (L, B), (H, X, _) = episodes.shape, outcomes.reward.shape[1:]
    chex.assert_shape([*keys, outcomes.start, blocks.stage], (L,))
    chex.assert_tree_shape_prefix((blocks.rows, episodes), (L, B))
    N, P = L * B, outcomes.kind.shape[-1]
    V = min(active().workers, N)
    tables = make_tables(outcomes, blocks)
    number = episodes.reshape(-1)
    # Arms of 0 episodes are left out: one would keep a worker for a whole round.
    place = jnp.cumsum(number > 0, dtype=jnp.int32)
    queue, busy = jnp.arange(N, dtype=jnp.int32), place[-1]
    queue = queue.at[jnp.where(number > 0, place - 1, N)].set(queue, mode="drop")

    def begin(place: Array) -> tuple[Work, Push]:
        """The arms at places of the queue before the first draw; beyond its end, arms of 0 episodes that are never handed
        in: N is no arm."""
        fresh = place < busy
        arm = look(queue, jnp.where(fresh, place, 0))
        lane, b = arm // B, arm % B
        own = look(blocks.stage, lane)
        high, low = (look(words, lane) for words in keys)
        work = Work(
            arm=jnp.where(fresh, arm, N),
            row=lane * (H + B),
            own=own,
            shift=H + b - own,
            first=lane * H,
            key=fold_in((high, low), b.astype(jnp.uint32)),
        )
        no_state = jnp.zeros(V, jnp.int32 if X < 32 else jnp.int64)  # signed: one bit less
        push = Push(
            stage=jnp.zeros(V, jnp.int32),
            state=jnp.where(fresh, look(outcomes.start, lane) + P, 0),
            outcome=jnp.zeros(V, jnp.int32),
            left=jnp.where(fresh, look(number, arm), 0),
            pools=jnp.zeros((P, V)),
            here=jnp.zeros((X - 1 - P, V)),
            there=jnp.zeros((X - 1 - P, V)),
            waiting=no_state,
            arrived=no_state,
            total=jnp.zeros(V),
            drawn=jnp.full(V, -1.0),
            tries=jnp.zeros(V, jnp.uint32),
        )
        return work, push

    def hand_in(work: Work, push: Push, totals: Array) -> jax.Array:
        """The sums of the arms, with those that are finished."""
        arm = jnp.where(push.state == 0, work.arm, N)
        return totals.at[arm].set(push.total, mode="drop")

    def round_(crew):
        taken, work, push, totals = crew
        totals, free = hand_in(work, push, totals), push.state == 0
        # The j-th free worker takes the j-th arm that is left. Who takes which changes no number: an arm brings its key.
        place = taken + jnp.cumsum(free, dtype=jnp.int32)
        work, push = jax.tree.map(partial(jnp.where, free), begin(place - 1), (work, push))
        return jnp.minimum(place[-1], busy), work, _steps(tables, work, push), totals

    def unfinished(crew):
        taken, _, push, _ = crew
        return (taken < busy) | jnp.any(push.state > 0)

    idle = begin(jnp.full(V, N, jnp.int32))
    crew = (jnp.int32(0), *idle, jnp.zeros(N))
    return hand_in(*jax.lax.while_loop(unfinished, round_, crew)[1:]).reshape(L, B)


def push_bits(value: Array, episodes: Array, keys: Key) -> jax.Array:
    """Sums of the bits of ``episodes`` [L, B] episodes of arms of exact ``value`` [L, B].

    ``keys`` are the uint32 words [L] of each lane's key for this block; arm b uses fold_in(key, b).
    An arm's numbers come from its own key and its own attempts: they do not depend on the other arms.
    """
    L, B = episodes.shape
    high, low = (jnp.repeat(words, B) for words in keys)
    key = fold_in((high, low), jnp.tile(jnp.arange(B, dtype=jnp.uint32), L))
    number, chance = episodes.reshape(-1), jnp.clip(value, 0, 1).reshape(-1)

    def attempt(_, carry):
        tries, drawn = carry
        new = draw(key, jnp.full(number.shape, tries), number, chance)
        return tries + jnp.uint32(1), jnp.where(drawn < 0, new, drawn)

    def attempts(carry):
        return jax.lax.fori_loop(0, 1 if active().branches else ATTEMPTS, attempt, carry)

    def unfinished(carry):
        return jnp.any(carry[1] < 0)

    first = (jnp.uint32(0), jnp.full(number.shape, -1.0))
    return jax.lax.while_loop(unfinished, attempts, first)[1].reshape(L, B)
