"""Where two trees of arrays differ, said in a few words."""

from __future__ import annotations

from typing import Any

import chex
import jax
import numpy as np


def differing(one: Any, two: Any) -> str | None:
    """The path of the first leaf in which two trees differ in any bit (nan = nan); None if there is
    none.

    Example:
        >>> differing({"a": np.zeros(2), "b": np.ones(1)}, {"a": np.zeros(2), "b": np.zeros(1)})
        "['b']"
    """
    for name, a, b in leaf_pairs(one, two):
        if not np.array_equal(a, b, equal_nan=np.issubdtype(a.dtype, np.floating)):
            return name
    return None


def apart(one: Any, two: Any, tolerance: float = 1e-5) -> str | None:
    """As `differing`, but reals may differ by ``tolerance``, absolutely and relatively.

    Example:
        >>> apart(np.float32(1), np.float32(1 + 1e-6)) is None
        True
    """
    for name, a, b in leaf_pairs(one, two):
        if not np.issubdtype(a.dtype, np.floating):
            if not np.array_equal(a, b):
                return name
            continue
        try:
            chex.assert_trees_all_close(a, b, rtol=tolerance, atol=tolerance)
        except AssertionError:
            return name
    return None


def reshaped(before: Any, after: Any) -> str | None:
    """How the form of a state changed: structure, shapes or dtypes; None if it did not.

    Example:
        >>> reshaped((np.zeros(2, np.float32),), (np.zeros(2, np.int32),))
        '[0]: float32[2] becomes int32[2]'
    """
    try:
        chex.assert_trees_all_equal_structs(before, after)
    except AssertionError:
        return "the structure of the state changes"
    for name, a, b in leaf_pairs(before, after):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"{name}: {a.dtype}{list(a.shape)} becomes {b.dtype}{list(b.shape)}"
    return None


def leaf_pairs(one: Any, two: Any) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Name and values of the leaves of two trees of one structure.

    Example:
        >>> [name for name, a, b in leaf_pairs({"x": 1.0}, {"x": 2.0})]
        ["['x']"]
    """
    leaves, others = jax.tree_util.tree_leaves_with_path(one), jax.tree.leaves(two)
    return [
        (jax.tree_util.keystr(path) or "the value", np.asarray(a), np.asarray(b))
        for (path, a), b in zip(leaves, others, strict=True)
    ]
