"""A learner's constants: evaluated on the host in float64, then placed in an engine's precision."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.learner.fitting import is_key
from jaxbandit.learner.forms import BlockForm, Learner
from jaxbandit.learner.protocols import Params, Problem
from jaxbandit.xla.compat import x64


def make_constants(rules: Learner | BlockForm, problem: Problem, params: Params) -> Any:
    """The constants of one instance and parameter setting, in the precision now in force.

    Without ``constants`` they are the parameters, name -> array. Evaluated on the host: ``problem`` has a whole number of episodes and no tracers. Reals become
    float32 (float64 under x64) and whole numbers int32 (int64); a number that has no place there is
    an error, never another number.

    Example:
        >>> import jaxbandit as jb
        >>> from jaxbandit.learner import make_constants
        >>> learner = jb.make_learner("expref")
        >>> problem = jb.Problem(horizon=15, width=2, num_actions=5, num_episodes=2_000_000_000)
        >>> make_constants(learner, problem, learner.params).episodes_per_arm[8:11].tolist()
        [16842553, 67370211, 0]
    """
    with x64():
        try:
            found = dict(params) if rules.constants is None else rules.constants(problem, params)
        except ValueError as error:  # such as a policy that does not fit this MDP
            name = getattr(rules, "name", None)
            raise ValueError(f"learner {name!r}: {error}" if name else str(error)) from error
        paths, tree = jax.tree_util.tree_flatten_with_path(found)
        leaves = [_array(rules, jax.tree_util.keystr(path), leaf) for path, leaf in paths]
    whole = jnp.result_type(int)
    narrow = {"f": jnp.result_type(float), "i": whole, "u": np.dtype(f"u{whole.name}")}
    placed = []
    for (path, _), leaf in zip(paths, leaves, strict=True):
        kind = leaf.dtype.kind
        if kind in narrow and leaf.dtype.itemsize > narrow[kind].itemsize:
            placed.append(_narrowed(rules, jax.tree_util.keystr(path), leaf, narrow[kind]))
        else:
            placed.append(leaf)
    return jax.tree.unflatten(tree, placed)


def _array(rules: Any, where: str, leaf: Any) -> np.ndarray:
    """A leaf as an array of numbers, or an error."""
    array = None if is_key(leaf) else np.asarray(leaf)
    if array is None or array.dtype.kind in "OSUMm":
        seen = "a key" if array is None else repr(leaf)[:60]
        more = "; of a key, jax.random.key_data(key)" if array is None else ""
        raise ValueError(
            f"learner {getattr(rules, 'name', 'in block form')!r}: constants{where}: {seen}; "
            f"accepted: a tree of numbers and arrays of them, at most 64 bits each{more}"
        )
    return array


def _narrowed(rules: Any, where: str, leaf: np.ndarray, dtype: Any) -> np.ndarray:
    """``leaf`` in a smaller type; an error if that would change a whole number or overflow."""
    with np.errstate(over="ignore"):
        placed = leaf.astype(dtype)
    whole = leaf.dtype.kind in "iu"
    wrong = placed != leaf if whole else np.isfinite(leaf) & ~np.isfinite(placed)
    if np.any(wrong):
        name = getattr(rules, "name", "in block form")
        accepted = f"numbers that {np.dtype(dtype).name} holds, on this engine"
        value = leaf[wrong].ravel()[0] if leaf.ndim else leaf.item()
        raise ValueError(f"learner {name!r}: constants{where}: {value}; accepted: {accepted}")
    return placed
