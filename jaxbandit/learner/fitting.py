"""A learner's constants on the host, and whether its functions fit together: shapes and types of what they give.

A sweep comes here when a program cannot be made, to say whose fault it is; a single run before it begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.errors import LearnerError
from jaxbandit.feedback import Trajectory, observe
from jaxbandit.learner.forms import BlockForm, Blocks, Learner, Params, Problem
from jaxbandit.types import Array
from jaxbandit.xla.compat import x64

TOLERANCE = 1e-4
"""Of the sum of probabilities in 32 bits. Float32 sums of up to 1,000 terms below 1 err by less than 1e-4."""
MOST_SHOWN = 12
"""Probabilities of a state that an error lists."""


@contextmanager
def named(name: str, function: str) -> Iterator[None]:
    """What fails inside says whose it is.

    Example:
        >>> with named("mine", "act"):
        ...     raise LearnerError("act gives 3")
        Traceback (most recent call last):
        ...
        jaxbandit.errors.LearnerError: learner 'mine': act gives 3
    """
    try:
        yield
    except LearnerError as error:
        raise LearnerError(f"learner {name!r}: {error}") from error
    except Exception as error:
        error.add_note(f"in {function} of learner {name!r}")
        raise


def check_first_state(state: Any) -> Any:
    """The state if every leaf is an array or a number, else LearnerError. A key of jax is neither.

    Example:
        >>> check_first_state({"mean": 0.0, "best": "left"})
        Traceback (most recent call last):
        ...
        jaxbandit.errors.LearnerError: init gives ['best']: str; accepted: a tree of arrays and numbers
    """
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        if not _is_array(leaf) or is_key(leaf):
            where = jax.tree_util.keystr(path)
            seen = "a key" if is_key(leaf) else type(leaf).__name__
            accepted = "a tree of arrays and numbers"
            if is_key(leaf):  # states are saved, and jax keeps keys from being numbers
                accepted += "; of a key, jax.random.key_data(key)"
            raise LearnerError(
                f"init gives {where}{': ' if where else ''}{seen}; accepted: {accepted}"
            )
    return state


def check_steps(rules: Any, sizes: tuple[int, int, int], constants: Any, state: Any) -> None:
    """Raises LearnerError unless ``act`` gives a policy and ``update`` a state like the one before.

    Args:
        rules: a learner.
        sizes: H, k and A.
        constants: its constants for one lane, arrays or their shapes.
        state: its first state for one lane, likewise.
    """
    whole, real = (jax.ShapeDtypeStruct(sizes[:1], dtype) for dtype in (jnp.int32, jnp.float32))
    episode = Trajectory(levels=whole, actions=whole, rewards=real, next_levels=whole)
    word = jax.ShapeDtypeStruct((), jnp.uint32)

    def step(state, constants, episode, word):
        with named(rules.name, "act"):
            policy = rules.act(state, jax.random.key(0), constants)
        _check_policy_shape(rules.name, sizes, policy)
        seen = observe(rules.feedback, episode, word)
        with named(rules.name, "update"):
            after = rules.update(state, policy, seen, constants)
        _check_same_state(rules.name, state, after)

    shapes = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(np.shape(x), jax.dtypes.canonicalize_dtype(x.dtype)),
        (state, constants),
    )
    jax.eval_shape(step, *shapes, episode, word)


def check_blocks(blocks: Any, sizes: tuple[int, int, int] | None = None) -> None:
    """Raises LearnerError unless these are blocks of one lane whose arrays fit together, and fit H, k and A if they are known."""
    if not isinstance(blocks, Blocks):
        raise LearnerError(f"next_block returns {type(blocks).__name__}; accepted: jb.Blocks")
    arms = (max(1, *np.shape(blocks.episodes)[:1]),) if np.ndim(blocks.episodes) else (1,)
    if sizes is None:
        states = (*np.shape(blocks.policy), 1, 1, 1)[:3]
    else:
        states = (sizes[0], sizes[1] + 1, sizes[2])
    wanted = {
        "policy": ("float [H, k+1, A]", jnp.floating, states),
        "stage": ("int []", jnp.integer, ()),
        "rows": ("float [B, k+1, A]", jnp.floating, (*arms, *states[1:])),
        "episodes": ("numbers [B]", jnp.number, arms),
    }
    for field, (words, kind, shape) in wanted.items():
        leaf = getattr(blocks, field)
        seen = np.shape(leaf) if _is_array(leaf) else None
        dtype = jnp.result_type(leaf) if _is_array(leaf) else type(leaf).__name__
        if seen != shape or not jnp.issubdtype(dtype, kind) or 0 in seen:
            shown = "" if seen is None else f" {list(seen)}"
            raise LearnerError(
                f"next_block gives {field}: {dtype}{shown}; accepted: {words} = {list(shape)}"
            )


def check_absorbed(before: Any, after: Any) -> None:
    """Raises LearnerError unless ``absorb`` gives a state like the one before."""
    if described(after) != described(before):
        raise LearnerError(
            f"absorb returns {described(after)}; accepted: a state like that of init, "
            f"{described(before)}"
        )


def in_32_bits(numbers: Any) -> Any:
    """Actions or a stage of 64 bits as int32, where those that do not fit are still out of range: jax alone would keep
    their last 32 bits, and so another action. Everything else is left as it is.

    Example:
        >>> in_32_bits(np.array([[1, 2**32 + 1]])).tolist()
        [[1, 2147483647]]
    """
    if getattr(numbers, "dtype", None) not in (np.int64, np.uint64):
        return numbers
    if not isinstance(numbers, jax.core.Tracer):
        return np.clip(np.asarray(numbers), -1, 2**31 - 1).astype(np.int32)
    with x64():  # also where engines compute in 32 bits
        return jnp.clip(numbers.astype(jnp.int64), -1, 2**31 - 1).astype(jnp.int32)


def is_policy(policy: Array, num_actions: int) -> jax.Array:
    """Whether actions [H, k+1] or probabilities [H, k+1, A] are those of a policy at each state, bool [H, k+1].

    Level 0, where nothing matters, always is.
    """
    if policy.ndim == 2:
        right = (policy >= 0) & (policy < num_actions)
    else:  # written so that nan is wrong too; a sum of half floats would be rounded to 1
        policy = policy.astype(jnp.float32)
        total = jnp.sum(policy, axis=-1)
        right = (jnp.min(policy, axis=-1) >= 0) & (jnp.abs(total - 1) <= TOLERANCE)
    return right.at[:, 0].set(True)


def wrong_policy(name: str, policy: np.ndarray, num_actions: int, episode: int) -> LearnerError:
    """The error for a policy that is none at some state; episodes count from 1."""
    right = np.asarray(is_policy(jnp.asarray(policy), num_actions))
    stage, level = np.argwhere(~right)[0]
    seen = np.asarray(policy[stage, level]).tolist()
    if policy.ndim == 2:
        what, accepted = "action", f"0..{num_actions - 1}"
    else:
        what, accepted = "probabilities", f"{num_actions} probabilities >= 0 that sum to 1"
        if num_actions > MOST_SHOWN:
            seen = f"{str(seen[:MOST_SHOWN])[:-1]}, ...] (sum {sum(seen):.7g})"
    return LearnerError(
        f"learner {name!r}, episode {episode}, stage {stage + 1}, level {level}: {what} {seen}; "
        f"accepted: {accepted}"
    )


def check_policy(name: str, sizes: tuple[int, int, int], policy: Any, episode: int) -> None:
    """Raises LearnerError unless this is the policy of an MDP of these sizes, H, k and A."""
    _check_policy_shape(name, sizes, policy)
    if not np.asarray(is_policy(jnp.asarray(policy), sizes[2])).all():
        raise wrong_policy(name, np.asarray(policy), sizes[2], episode)


def _check_policy_shape(name: str, sizes: tuple[int, int, int], policy: Any) -> None:
    H, k, A = sizes
    seen, words = None, type(policy).__name__
    if _is_array(policy):
        dtype = jnp.result_type(policy)
        seen = np.shape(policy)
        words = f"{dtype}{list(seen)}"
        if jnp.issubdtype(dtype, jnp.integer) and seen == (H, k + 1):
            return
        if jnp.issubdtype(dtype, jnp.floating) and seen == (H, k + 1, A):
            return
    raise LearnerError(
        f"learner {name!r}: act gives {words}; accepted: actions, integers [H, k+1] = {[H, k + 1]}, "
        f"or probabilities, floats [H, k+1, A] = {[H, k + 1, A]}"
    )


def _check_same_state(name: str, before: Any, after: Any) -> None:
    if described(after) != described(before):
        raise LearnerError(
            f"learner {name!r}: update gives {described(after)}; accepted: a state like that of init, "
            f"{described(before)}"
        )


def described(tree: Any) -> str:
    """The structure, types and shapes of a tree in words; equal for trees that can stand for each other."""
    leaves, structure = jax.tree.flatten(tree)
    words = ", ".join(
        f"{jnp.result_type(leaf)} {list(np.shape(leaf))}"
        if _is_array(leaf)
        else type(leaf).__name__
        for leaf in leaves
    )
    return f"{structure} of {words}" if words else str(structure)


def is_key(leaf: Any) -> bool:
    """Whether it is a typed key, or an array of them."""
    dtype = getattr(leaf, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)


def _is_array(leaf: Any) -> bool:
    """Arrays, tracers, shapes and numbers; no text, no objects."""
    if isinstance(leaf, bool | int | float | complex):
        return True
    dtype = getattr(leaf, "dtype", None)
    return dtype is not None and getattr(dtype, "kind", "f") not in "OSUMm"


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
