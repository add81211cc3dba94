"""The MDP: a table of joint outcomes, as a pytree.

Stages i = 1..H are array indices 0..H-1. Levels l = 0..k are array indices themselves: level 0 is
"exhausted", absorbing and paying nothing, and is never counted in the width k (Section 2 of the
paper).

Reward and next level are drawn *jointly*: in state (l, i) under action a, outcome m happens with
probability ``prob[i, l, a, m]``, pays ``reward[i, l, a, m]`` and leads to level ``next_level[i, l,
a, m]`` of stage i + 1. All arrays are leaves, so instances of one shape stack
(``jax.tree.map(lambda *x: jnp.stack(x), ...)``), go through ``jax.vmap`` and share one compilation.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.checks import distributions, entries, place, real_array, typed
from jaxbandit.tabular import Table
from jaxbandit.types import Array

ACCEPTED = "an MDP (jb.make_instance)"
AXES = "stage, level, action, outcome"
LARGEST = float(np.finfo(np.float32).max)


class MDP(NamedTuple):
    """An episodic MDP of horizon H, width k, A actions and at most M outcomes per (state, action).

    A state is a level 1..k: state s of a model with ``num_states`` = k states is level s + 1. Level 0 is no state but the
    end of an episode: it is absorbing, pays nothing and is not counted.
    From transitions P [S, A, S] and rewards R [S, A]: ``jaxbandit.from_arrays(P, R, horizon)``.

    Fields (instances of one shape can be stacked on a leading axis):
        prob: float [H, k+1, A, M], probability of each outcome.
        reward: float [H, k+1, A, M], what it pays; no run collects more than 1 in total.
        next_level: int32 [H, k+1, A, M], the level of the next stage it leads to.
        rank: int32 [H, k+1, A], the known order of the actions (larger = more likely to stay), or
            None.
        start: int32 [], the level of the first stage.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=4)
        >>> mdp
        MDP(H=3, k=2, A=4, ordered)
        >>> mdp.horizon, mdp.width, mdp.num_actions, mdp.num_outcomes
        (3, 2, 4, 4)
    """

    prob: Array
    """float [H, k+1, A, M]: probability of each outcome."""
    reward: Array
    """float [H, k+1, A, M]: reward of each outcome; no run collects more than 1 in total."""
    next_level: Array
    """int32 [H, k+1, A, M]: level of the next stage."""
    rank: Array | None
    """int32 [H, k+1, A]: the known order of Assumption 3.2 (larger = more likely to stay), or
    None."""
    start: Array
    """int32 []: level of the first stage."""

    @property
    def horizon(self) -> int:
        """H, the number of stages."""
        return self.prob.shape[-4]

    @property
    def width(self) -> int:
        """k, the number of levels, level 0 not counted."""
        return self.prob.shape[-3] - 1

    @property
    def num_states(self) -> int:
        """S = k, the number of states: state s is level s + 1, level 0 is the end of an episode."""
        return self.width

    @property
    def num_actions(self) -> int:
        """A, the number of actions."""
        return self.prob.shape[-2]

    @property
    def num_outcomes(self) -> int:
        """M, the number of outcomes per state and action (some may have probability 0)."""
        return self.prob.shape[-1]

    def __repr__(self) -> str:
        """Sizes and order, in one line."""
        shape: tuple[int, ...] = getattr(self.prob, "shape", ())
        if len(shape) < 4:  # not an MDP of arrays: axes, say, or shapes that a tree map left
            return f"MDP{tuple(self)!r}"
        stacked = f"{' x '.join(map(str, shape[:-4]))} stacked, " if len(shape) > 4 else ""
        order = "general" if self.rank is None else "ordered"
        return f"MDP({stacked}H={shape[-4]}, k={shape[-3] - 1}, A={shape[-2]}, {order})"

    def _repr_html_(self) -> str:
        """Sizes, and what each action does at the start, for notebooks."""
        head = f"<p>{self!r}</p>"
        if np.ndim(self.prob) != 4 or any(isinstance(x, jax.core.Tracer) for x in self):
            return head
        level = int(self.start)
        prob, reward, nxt = (np.asarray(x)[0, level] for x in self[:3])
        rows = []
        for a in range(self.num_actions):
            moves = {s: prob[a][nxt[a] == s].sum() for s in sorted(set(nxt[a].tolist()))}
            shown = ", ".join(f"{s}: {p:.3g}" for s, p in moves.items() if p > 0)
            rows.append((str(a), f"{(prob[a] * reward[a]).sum():.3g}", shown))
        names = ("action", "mean reward", "next level: probability")
        return head + Table(names, rows, title=f"stage 1, level {level} (the start)").to("html")


_new_tuple = MDP.__new__


@functools.wraps(_new_tuple)
def _new_mdp(cls: type[MDP], *arrays: Any, **named: Any) -> MDP:
    if missing := [name for name in MDP._fields[len(arrays) :] if name not in named]:
        raise TypeError(
            f"MDP: {', '.join(missing)} missing; accepted: {', '.join(MDP._fields)}, tables of outcomes [H, k+1, A, M]; "
            "from transitions P [S, A, S] and rewards R [S, A] use jb.from_arrays(P, R, horizon)"
        )
    return _new_tuple(cls, *arrays, **named)


MDP.__new__ = _new_mdp  # type: ignore


def transition_kernel(mdp: MDP) -> jax.Array:
    """p_i(s | l, a) as an array [H, k+1, A, k+1]; each row sums to 1.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> [f"{x:.3f}" for x in jb.transition_kernel(mdp)[0, 1, :, 1]]      # staying at level 1
        ['0.333', '0.667', '1.000']
    """
    return _transition_kernel(checked(mdp))


@jax.jit
def _transition_kernel(mdp: MDP) -> jax.Array:
    def add(kernel, outcome):  # one outcome at a time: all at once would be k times the table
        prob, following = outcome
        return kernel + jax.nn.one_hot(following, levels, dtype=prob.dtype) * prob[..., None], None

    levels = mdp.width + 1
    outcomes = tuple(jnp.moveaxis(jnp.asarray(x), -1, 0) for x in (mdp.prob, mdp.next_level))
    empty = jnp.zeros((*mdp.prob.shape[:3], levels), outcomes[0].dtype)
    return jax.lax.scan(add, empty, outcomes)[0]


def mean_reward(mdp: MDP) -> jax.Array:
    """r_{l,i}(a) as an array [H, k+1, A].

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> [f"{x:.3f}" for x in jb.mean_reward(mdp)[0, 1]]
        ['0.500', '0.333', '0.000']
    """
    return _mean_reward(checked(mdp))


@jax.jit
def _mean_reward(mdp: MDP) -> jax.Array:
    return jnp.sum(mdp.prob * mdp.reward, axis=-1)


def largest_total(mdp: MDP) -> float:
    """The largest total reward that any run can collect, by backward induction over possible
    outcomes.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
        >>> jb.mdp.largest_total(mdp)
        1.0
    """
    prob, reward, nxt = (np.asarray(x) for x in (mdp.prob, mdp.reward, mdp.next_level))
    best = np.zeros(mdp.width + 1)
    for i in reversed(range(mdp.horizon)):
        collected = np.where(prob[i] > 0, reward[i].astype(np.float64) + best[nxt[i]], 0.0)
        best = collected.max(axis=(1, 2))
    return float(best[int(mdp.start)])


def canonical(mdp: MDP) -> MDP:
    """The MDP in the types that everything runs on, or an error; the same object if it is so.

    Probabilities and rewards are float32 or float64, levels int32, ranks int32 0..A-1 in every
    state. Shapes are checked, values are not (`validate` does).

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=4)
        >>> loose = mdp._replace(rank=mdp.rank / 7 - 2)          # the same order
        >>> (jb.mdp.canonical(loose).rank == mdp.rank).all().item(), jb.mdp.canonical(mdp) is mdp
        (True, True)
    """
    typed("mdp", mdp, MDP, ACCEPTED)
    prob = floats("MDP.prob", mdp.prob)
    shape = prob.shape
    if len(shape) != 4 or min(shape) < 1 or shape[1] < 2:
        stacked = "; several instances stacked go through jax.vmap" if len(shape) == 5 else ""
        raise ValueError(
            f"MDP.prob: shape {shape}; accepted: [H, k+1, A, M] with H, k, A, M >= 1{stacked}"
        )
    reward, next_level = (
        floats("MDP.reward", mdp.reward),
        integers("MDP.next_level", mdp.next_level),
    )
    for name, array in (("reward", reward), ("next_level", next_level)):
        if array.shape != shape:
            raise ValueError(f"MDP.{name}: shape {array.shape}; accepted: that of prob, {shape}")
    rank = None if mdp.rank is None else ranks(mdp.rank, shape[:3])
    level = real_array("MDP.start", mdp.start, "a single level, an integer")
    if level.ndim or level.dtype.kind not in "iu":
        raise ValueError(f"MDP.start: {mdp.start!r}; accepted: a single level, an integer")
    start = integers("MDP.start", mdp.start)
    made = MDP(prob=prob, reward=reward, next_level=next_level, rank=rank, start=start)
    return mdp if all(a is b for a, b in zip(made, mdp, strict=True)) else made


def single(mdp: MDP) -> MDP:
    """The MDP if it is one, and not several that are stacked.

    Example:
        >>> single(None)
        Traceback (most recent call last):
        ...
        TypeError: mdp: NoneType; accepted: an MDP (jb.make_instance)
    """
    typed("mdp", mdp, MDP, ACCEPTED)
    shape = np.shape(mdp.prob)
    if len(shape) != 4:
        seen = f"{shape[0]} stacked" if len(shape) == 5 else f"prob of shape {shape}"
        raise ValueError(f"mdp: {seen}; accepted: a single MDP, prob [H, k+1, A, M]")
    return mdp


def checked(mdp: MDP) -> MDP:
    """The MDP if its numbers mean something: types, shapes, distributions, levels. What is being
    traced is taken as it is.

    Cheaper than `validate`, for planning: neither the order of the actions nor the bound on the
    total reward matters there.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=4)
        >>> jb.mdp.checked(mdp) is mdp
        True
    """
    typed("mdp", mdp, MDP, ACCEPTED)
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(mdp)):
        return mdp
    mdp = canonical(mdp)
    prob, reward, nxt = (np.asarray(x) for x in (mdp.prob, mdp.reward, mdp.next_level))
    distributions("MDP.prob", prob, AXES)
    # also where float64 is run in float32
    entries("MDP.reward", reward, ~(np.abs(reward) <= LARGEST), "finite numbers", AXES)
    entries("MDP.next_level", nxt, (nxt < 0) | (nxt > mdp.width), f"0..{mdp.width}", AXES)
    start = int(mdp.start)
    if not 1 <= start <= mdp.width:
        raise ValueError(f"MDP.start: level {start}; accepted: 1..{mdp.width}")
    return mdp


def validate(mdp: MDP) -> MDP:
    """Checks every assumption on the host; returns the MDP, or raises ValueError: what is wrong,
    and where.

    What comes back is the same object, or, where types had to be changed (integers for floats,
    float16, ranks that are not 0..A-1), the MDP that a sweep runs. Stages in messages count from 1,
    as in the paper; levels and actions are array indices.

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=4)
        >>> jb.validate(mdp) is mdp
        True
        >>> jb.validate(mdp._replace(prob=mdp.prob * 2))
        Traceback (most recent call last):
        ...
        ValueError: MDP.prob: probabilities at stage 1, level 0, action 0 sum to 2; they must sum to 1
    """
    mdp = checked(mdp)
    prob, reward, nxt = (np.asarray(x) for x in (mdp.prob, mdp.reward, mdp.next_level))
    possible = prob[:, :1] > 0
    entries("MDP.reward", reward, (reward < 0) | (reward > 1), "0 to 1", AXES)
    for name, table in (("reward", reward[:, :1]), ("next_level", nxt[:, :1])):
        accepted = "0, as level 0 is absorbing and pays nothing"
        entries(f"MDP.{name}", table, (table != 0) & possible, accepted, AXES)
    total = largest_total(mdp)
    if total > 1 + 1e-5:
        raise ValueError(
            f"MDP.reward: a run can collect {total:.6g} in total; accepted: at most 1 in every run"
        )
    if mdp.rank is not None:
        check_order(prob.astype(np.float64), nxt, np.asarray(mdp.rank))
    return mdp


def digest(mdp: MDP) -> str:
    """SHA-256 of an instance's arrays, types and shapes; float64 arrays of float32 numbers (as under x64) count as float32."""
    total = hashlib.sha256()
    for name, leaf in mdp._asdict().items():
        if leaf is None:
            total.update(f"{name} None;".encode())
            continue
        array = np.ascontiguousarray(leaf)
        if array.dtype == np.float64 and (array == array.astype("f4")).all():
            array = array.astype("f4")
        total.update(f"{name} {(array.dtype.str, array.shape)};".encode() + array.tobytes())
    return total.hexdigest()


def floats(name: str, value: Any) -> Array:
    """A table of float32 or float64, the same array if it is one; what fits exactly is converted.

    Example:
        >>> import numpy as np
        >>> floats("MDP.prob", np.array([0.5, 0.5], np.float16)).dtype
        dtype('float32')
    """
    array = real_array(name, value, "float32 or float64")
    if array.dtype in (np.float32, np.float64):
        return array
    wide = np.float64 if array.dtype.itemsize > 4 else np.float32
    converted = np.asarray(array).astype(wide)
    if (converted != np.asarray(array)).any() and not np.isnan(converted).any():
        raise ValueError(f"{name}: dtype {array.dtype}; accepted: float32 or float64")
    return converted


def integers(name: str, value: Any) -> Array:
    """A table of int32, the same array if it is one; other integers are converted if they fit.

    Example:
        >>> import numpy as np
        >>> integers("MDP.start", 2).dtype
        dtype('int32')
    """
    array = real_array(name, value, "integers")
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name}: dtype {array.dtype}; accepted: integers")
    if array.dtype == np.int32:
        return array
    limits = np.iinfo(np.int32)
    host = np.asarray(array)
    outside = host[(host < limits.min) | (host > limits.max)]
    if outside.size:
        raise ValueError(f"{name}: {outside.flat[0]}; accepted: integers of 32 bits")
    return host.astype(np.int32)


def ranks(value: Any, shape: tuple[int, ...]) -> Array:
    """The order of the actions as int32 0..A-1 in every state, from numbers of any kind and size.

    Only the order counts: fractions, negative and huge numbers mean what they say. Ties are an
    error where there is something to choose (level 0 is not looked at).

    Example:
        >>> import numpy as np
        >>> ranks(np.array([[[0.5, -3.0, 1e20]]] * 2).reshape(1, 2, 3), (1, 2, 3))[0, 1].tolist()
        [1, 0, 2]
    """
    array = real_array("MDP.rank", value, "numbers that order the actions, or None")
    host = np.asarray(array)
    if host.shape != shape:
        raise ValueError(f"MDP.rank: shape {host.shape}; accepted: [H, k+1, A] = {shape} or None")
    if host.dtype.kind not in "iu":
        host = host.astype(np.float64) if host.dtype.itemsize < 8 else host
        if not np.isfinite(host).all():
            raise ValueError("MDP.rank: not finite; accepted: numbers that order the actions")
    places = np.argsort(host, axis=-1, kind="stable")
    ordered = np.take_along_axis(host, places, axis=-1)
    tied = (ordered[..., 1:] == ordered[..., :-1]).any(axis=-1)
    tied[:, 0] = False
    for i, level in np.argwhere(tied)[:1]:
        raise ValueError(
            f"MDP.rank: actions tie at {place((i, level), AXES)}: {host[i, level].tolist()}; "
            "accepted: a total order, all ranks different"
        )
    dense = np.argsort(places, axis=-1).astype(np.int32)
    same = array.dtype == np.int32 and (dense[:, 1:] == host[:, 1:]).all()
    return array if same else dense


def check_order(prob: np.ndarray, nxt: np.ndarray, rank: np.ndarray) -> None:
    """Assumption 3.1 (no upward move) and Assumption 3.2 (rank agrees with the staying
    probabilities); ``rank`` is one that `ranks` returned."""
    levels = np.arange(prob.shape[1])[None, :, None, None]
    accepted = "no upward move in an ordered MDP (one with a rank; Assumption 3.1)"
    entries("MDP.next_level", nxt, (nxt > levels) & (prob > 0), accepted, AXES)
    staying = np.where(nxt == levels, prob, 0).sum(-1)
    order = np.argsort(rank, axis=-1)
    drops = np.diff(np.take_along_axis(staying, order, axis=-1), axis=-1) < -1e-6
    drops[:, 0] = False
    for i, level, j in np.argwhere(drops)[:1]:
        a, b = order[i, level, j : j + 2]
        raise ValueError(
            f"MDP.rank: at {place((i, level), AXES)} action {b} is ranked above action {a}, "
            f"but stays with probability {staying[i, level, b]:.6g} < {staying[i, level, a]:.6g} "
            "(Assumption 3.2)"
        )
