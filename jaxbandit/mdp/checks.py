"""Checks of an MDP's tables, on the host: types, shapes, values and the order of the actions.

They know arrays only; `jaxbandit.mdp.validate` puts them together, and planning asks for the part
without which its numbers would mean nothing. Stages in messages count from 1, as in the paper;
levels and actions are array indices.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxbandit.checks import real_array
from jaxbandit.types import Array

LARGEST = float(np.finfo(np.float32).max)


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


def order(value: Any) -> Array:
    """Numbers of any kind and shape that may order actions."""
    return real_array("MDP.rank", value, "numbers that order the actions, or None")


def ranks(value: Any) -> Array:
    """The order of the actions as int32 0..A-1 in every state, from numbers of any kind and size.

    Only the order counts: fractions, negative and huge numbers mean what they say. Ties are an
    error where there is something to choose (level 0 is not looked at).

    Example:
        >>> import numpy as np
        >>> ranks(np.array([[[0.5, -3.0, 1e20]]] * 2).reshape(1, 2, 3))[0, 1].tolist()
        [1, 0, 2]
    """
    array = order(value)
    host = np.asarray(array)
    if host.ndim != 3:
        raise ValueError(f"MDP.rank: shape {host.shape}; accepted: [H, k+1, A] or None")
    if host.dtype.kind not in "iu":
        host = host.astype(np.float64) if host.dtype.itemsize < 8 else host
        if not np.isfinite(host).all():
            raise ValueError("MDP.rank: not finite; accepted: numbers that order the actions")
    places = np.argsort(host, axis=-1, kind="stable")
    ordered = np.take_along_axis(host, places, axis=-1)
    tied = np.argwhere((ordered[:, 1:, 1:] == ordered[:, 1:, :-1]).any(axis=-1))
    if tied.size:
        i, level = int(tied[0, 0]), int(tied[0, 1]) + 1
        raise ValueError(
            f"MDP.rank: actions tie at stage {i + 1}, level {level}: {host[i, level].tolist()}; "
            "accepted: a total order, all ranks different"
        )
    dense = np.argsort(places, axis=-1).astype(np.int32)
    same = array.dtype == np.int32 and (dense[:, 1:] == host[:, 1:]).all()
    return array if same else dense


def check_shapes(prob: Array, reward: Array, next_level: Array, rank: Any, start: Any) -> None:
    """An error unless the shapes are [H, k+1, A, M] three times, [H, k+1, A] and []."""
    shape = prob.shape
    if len(shape) != 4 or min(shape) < 1 or shape[1] < 2:
        stacked = "; several instances stacked go through jax.vmap" if len(shape) == 5 else ""
        raise ValueError(
            f"MDP.prob: shape {shape}; accepted: [H, k+1, A, M] with H, k, A, M >= 1{stacked}"
        )
    for name, array in (("reward", reward), ("next_level", next_level)):
        if array.shape != shape:
            raise ValueError(f"MDP.{name}: shape {array.shape}; accepted: that of prob, {shape}")
    if rank is not None and np.shape(rank) != shape[:3]:
        raise ValueError(
            f"MDP.rank: shape {np.shape(rank)}; accepted: [H, k+1, A] = {shape[:3]} or None"
        )
    level = real_array("MDP.start", start, "a single level, an integer")
    if level.ndim or level.dtype.kind not in "iu":
        raise ValueError(f"MDP.start: {start!r}; accepted: a single level, an integer")


def check_values(prob: np.ndarray, reward: np.ndarray, nxt: np.ndarray, start: int) -> None:
    """An error unless probabilities are distributions, rewards finite and levels 0..k."""
    width = prob.shape[1] - 1
    first_bad("MDP.prob", ~np.isfinite(prob), "probability is not finite", prob)
    first_bad("MDP.prob", prob < 0, "probability is negative", prob)
    sums = prob.sum(axis=-1, dtype=np.float64)
    bad = np.argwhere(np.abs(sums - 1) > 1e-5)
    if bad.size:
        i, level, a = bad[0]
        raise ValueError(
            f"MDP.prob: probabilities at stage {i + 1}, level {level}, action {a} "
            f"sum to {sums[i, level, a]:.7g}; they must sum to 1"
        )
    finite = np.abs(reward) <= LARGEST  # also where float64 is run in float32
    first_bad("MDP.reward", ~finite, "reward is not finite", reward)
    first_bad("MDP.next_level", (nxt < 0) | (nxt > width), f"next level is outside 0..{width}", nxt)
    if not 1 <= start <= width:
        raise ValueError(f"MDP.start: level {start}; accepted: 1..{width}")


def check_order(prob: np.ndarray, nxt: np.ndarray, rank: np.ndarray) -> None:
    """Assumption 3.1 (no upward move) and Assumption 3.2 (rank agrees with the staying
    probabilities); ``rank`` is one that `ranks` returned."""
    levels = np.arange(prob.shape[1])[None, :, None, None]
    what = "upward move in an ordered MDP (one with a rank; Assumption 3.1)"
    first_bad("MDP.next_level", (nxt > levels) & (prob > 0), what, nxt)
    staying = np.where(nxt == levels, prob, 0).sum(-1)
    order = np.argsort(rank, axis=-1)
    drops = np.diff(np.take_along_axis(staying, order, axis=-1), axis=-1) < -1e-6
    wrong = np.argwhere(drops[:, 1:])
    if wrong.size:
        i, level, j = int(wrong[0, 0]), int(wrong[0, 1]) + 1, int(wrong[0, 2])
        a, b = int(order[i, level, j]), int(order[i, level, j + 1])
        raise ValueError(
            f"MDP.rank: at stage {i + 1}, level {level} action {b} is ranked above action {a}, "
            f"but stays with probability {staying[i, level, b]:.6g} < {staying[i, level, a]:.6g} "
            "(Assumption 3.2)"
        )


def first_bad(name: str, bad: np.ndarray, what: str, values: np.ndarray | None = None) -> None:
    """Raises for the first True of ``bad`` [H, levels, A, M], where the levels count from 0."""
    where = np.argwhere(bad)
    if not where.size:
        return
    index = tuple(int(j) for j in where[0])
    i, level, a, m = index
    seen = "" if values is None else f": {values[index]}"
    raise ValueError(
        f"{name}: {what} at stage {i + 1}, level {level}, action {a}, outcome {m}{seen}"
    )
