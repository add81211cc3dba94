"""UCB-VI with its tables in pieces of a few stages, for processors with a cache.

An episode changes one entry of every stage, and planning reads all entries of all stages, the last stage first. Over
whole tables, every step would find the cache full of stages that the step before has touched last. Stages do not depend
on each other until they are planned, so here a piece is counted and planned before the piece ahead of it is touched, and
comes from memory once. It is one loop over the pieces, which have equal lengths: stages that fill up the last one are
never visited and worth nothing, as everything after stage H.

Only with the Hoeffding bonus and without ``monotone``: the Bernstein bonus looks at counts of the next stage too.
"""

from __future__ import annotations

import math
from functools import cache, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learner import StraightForm
from jaxbandit.learners.ucbvi_counts import counted, modelled, paid, visited
from jaxbandit.learners.ucbvi_planning import WRITTEN_FROM, first_best
from jaxbandit.learners.ucbvi_values import UCBVIConstants, larger, q_of_fields
from jaxbandit.types import Array
from jaxbandit.xla.barriers import separate, together

SHORTEST = 5
"""Stages of a piece, at least: the loops over fewer are too short for XLA to vectorise them well."""


class Pieces(NamedTuple):
    """`UCBVIState` while the episodes of a call are played: P pieces of n stages each, P n >= H."""

    counts: Array
    """int32 [P, 1 + k, A, k, n, W]."""
    rewards: Array
    """int32 [P, 2, A, k, n, W]."""
    model: Array
    """float32 [P, 1 + k, A, k, n, W]."""
    values: Array
    """float32 [P n + 1, k W]: stages in front, so that those of a stage are written in one long loop."""
    policy: Array
    """int32 [k+1, P n, W]."""


@cache
def pieces_form(state_type: Any, plain: Any) -> StraightForm:
    """The form of the learner whose state is ``state_type`` (`UCBVIState`) and whose update is ``plain``.

    Tables of fewer than `WRITTEN_FROM` levels are left whole: they are small, and planned faster in another way.
    """

    def enter(state: Any, keys: Array, constants: UCBVIConstants) -> Any:
        del keys, constants
        width, horizon = state.counts.shape[2:4]
        if width < WRITTEN_FROM:
            return state
        extra = math.prod(_cuts(horizon)) - horizon
        counts, rewards, model, values = _cut_up(*state[:4])
        return Pieces(
            counts=counts,
            rewards=rewards,
            model=model,
            values=values,
            policy=_longer(state.policy, 1, extra),
        )

    def act(inner: Any, keys: Array, constants: UCBVIConstants) -> Array:
        del keys
        return jnp.moveaxis(inner.policy[:, : len(constants.scale)], 0, 1)

    def update(
        inner: Any,
        policy: Array,
        feedback: SemiBanditFeedback,
        constants: UCBVIConstants,
        live: Any,
    ) -> Any:
        del live  # a loop on a CPU takes no turns too many
        if isinstance(inner, Pieces):
            return renew(inner, feedback, constants)
        return plain(inner, policy, feedback, constants)

    def leave(inner: Any, constants: UCBVIConstants) -> Any:
        if not isinstance(inner, Pieces):
            return inner
        horizon = len(constants.scale)
        counts, rewards, model, values = _joined(horizon)(*inner[:4])
        return state_type(
            counts=counts,
            rewards=rewards,
            model=model,
            values=values,
            ceiling=None,
            policy=inner.policy[:, :horizon],
        )

    return StraightForm(enter=enter, act=act, update=update, leave=leave)


def _cuts(horizon: int) -> tuple[int, int]:
    """How many pieces, and the stages of each; fewer than one stage a piece is beyond H.

    Example:
        >>> _cuts(20), _cuts(17), _cuts(3)
        ((4, 5), (3, 6), (1, 3))
    """
    pieces = max(1, horizon // SHORTEST)
    return pieces, -(-horizon // pieces)


# Each of these two is one kernel: they run once a call, and many small ones would take long to compile.


@together
def _cut_up(counts: Array, rewards: Array, model: Array, values: Array) -> tuple[Array, ...]:
    """The tables of `UCBVIState` as those of `Pieces`."""
    horizon, lanes = counts.shape[3:]
    pieces, stages = _cuts(horizon)
    extra = pieces * stages - horizon

    def cut(table: Array) -> Array:
        whole = _longer(table, 3, extra)
        return jnp.moveaxis(whole.reshape(*table.shape[:3], pieces, stages, lanes), 3, 0)

    by_stages = jnp.moveaxis(_longer(values, 1, extra), 1, 0)
    return cut(counts), cut(rewards), cut(model), by_stages.reshape(len(by_stages), -1)


@cache
def _joined(horizon: int):
    """What `_cut_up` has cut."""

    def join(table: Array) -> Array:
        _, *leading, _, lanes = table.shape
        whole = jnp.moveaxis(table, 0, 3).reshape(*leading, -1, lanes)
        return whole[:, :, :, :horizon]

    @together
    def joined(counts: Array, rewards: Array, model: Array, values: Array) -> tuple[Array, ...]:
        width, lanes = counts.shape[3], counts.shape[5]
        by_stages = values[: horizon + 1].reshape(-1, width, lanes)
        return join(counts), join(rewards), join(model), jnp.moveaxis(by_stages, 0, 1)

    return joined


def _longer(x: Array, axis: int, extra: int) -> Array:
    """With ``extra`` zeros at the end of an axis."""
    return jnp.pad(x, [(0, extra if one == axis else 0) for one in range(x.ndim)]) if extra else x


@together
def renew(inner: Pieces, feedback: SemiBanditFeedback, constants: UCBVIConstants) -> Pieces:
    """As `ucbvi` does, piece by piece, the last one first.

    A loop over pieces, and in it one over stages: the kernels in it are as fast as those of unrolled stages, because they
    cut what they need out of the tables themselves and put their results in place, and they compile once.
    """
    pieces, _, num_actions, width, stages, lanes = inner.counts.shape
    size = stages * lanes
    extra = pieces * size - feedback.levels.size
    seen = jax.tree.map(lambda x: _longer(x.reshape(-1), 0, extra), feedback)
    entry, target, reward = visited(seen, jnp.int32(width))
    every = [x.reshape(-1) for x in constants]

    def flat(table: Array) -> Array:
        return table.reshape(pieces, -1, num_actions * width, size)

    def one(turn, carry):
        counts, rewards, model, values, policy = carry
        p = pieces - 1 - turn
        led, got = (jax.lax.dynamic_slice_in_dim(x, p * size, size) for x in (target, reward))
        count = counted(read(counts, entry, p), led)
        total = paid(read(rewards, entry, p), got)
        known = modelled(False)(count, total, *every)
        counts, rewards = write(counts, entry, count, p), write(rewards, entry, total, p)
        model = write(model, entry, known, p)
        tables = model.reshape(inner.model.shape)

        def plan(turn, carry):
            values, policy = carry
            i = stages - 1 - turn
            stage = p * stages + i
            q = _q(tables, values, constants, p, i, stage + 1)
            values = _put_value(values, q.reshape(num_actions, -1), stage)
            return values, _put_action(policy, q, stage)

        values, policy = jax.lax.fori_loop(0, stages, plan, (values, policy))
        return counts, rewards, model, values, policy

    tables = (flat(inner.counts), flat(inner.rewards), flat(inner.model))
    found = jax.lax.fori_loop(0, pieces, one, (*tables, inner.values, inner.policy))
    return Pieces(*(x.reshape(old.shape) for x, old in zip(found, inner, strict=True)))


@separate
def read(table: Array, entry: Array, p: Array) -> Array:
    """The fields [F, nW] of the entries visited in piece p, from [P, F, A k, nW] and entries [P nW]; 0 at entry -1."""
    _, fields, entries, size = table.shape
    here = jax.lax.dynamic_slice_in_dim(entry, p * size, size)
    # A sum of selects, and every one cut out of the table in one step: what is cut twice, XLA copies.
    chosen = [
        jnp.where(
            (here == e)[None],
            jax.lax.dynamic_slice(table, (p, 0, e, 0), (1, fields, 1, size))[0, :, 0],
            0,
        )
        for e in range(entries)
    ]
    return reduce(jnp.add, chosen)


@separate
def write(table: Array, entry: Array, fields: Array, p: Array) -> Array:
    """The table with the fields of the entries visited in piece p replaced, in place."""
    here = jax.lax.dynamic_slice_in_dim(entry, p * fields.shape[1], fields.shape[1])
    before = jax.lax.dynamic_slice_in_dim(table, p, 1)
    number = jax.lax.broadcasted_iota(jnp.int32, before.shape, 2)
    after = jnp.where(here[None, None, None] == number, fields[None, :, None], before)
    return jax.lax.dynamic_update_slice_in_dim(table, after, p, 0)


@separate
def _q(
    model: Array, values: Array, constants: UCBVIConstants, p: Array, i: Array, after: Array
) -> Array:
    """Q [A, k, W] of stage i of piece p, where ``after`` is the number of the stage after it."""
    _, fields, num_actions, width, _, lanes = model.shape
    shape = (1, 1, num_actions, width, 1, lanes)
    cut = [
        jax.lax.dynamic_slice(model, (p, f, 0, 0, i, 0), shape)[0, 0, :, :, 0]
        for f in range(fields)
    ]
    tails = [jax.lax.dynamic_slice(values, (after, s * lanes), (1, lanes)) for s in range(width)]
    return q_of_fields(cut, tails, None, *(x[:1] for x in constants))


@separate
def _put_value(values: Array, q: Array, stage: Array) -> Array:
    """V of a stage put in its place, from Q [A, k W]."""
    return jax.lax.dynamic_update_slice(values, reduce(larger, list(q))[None], (stage, 0))


@separate
def _put_action(policy: Array, q: Array, stage: Array) -> Array:
    """The greedy actions of a stage put in their place, from Q [A, k, W]."""
    return jax.lax.dynamic_update_slice(policy, first_best(list(q))[:, None], (1, stage, 0))
