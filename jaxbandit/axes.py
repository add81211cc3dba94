"""The axes of a sweep: learners (with their parameter grids) and instances (with families of random draws).

`grid` turns one learner into many that differ in the values of their parameters; `family` draws many
instances of one kind. Both become array axes, so a sweep over them compiles once.
"""

from __future__ import annotations

import hashlib
import itertools
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxbandit.learners.base import Learner
from jaxbandit.mdp import MDP

RESERVED = ("learner", "instance", "parameter", "seed", "episode", "phase", "stage", "level", "family")


@dataclass(frozen=True)
class LearnerGrid:
    """One learner at P parameter points; made by `grid`."""

    learner: Learner
    """Its ``params`` leaves have a leading axis [P]."""
    names: tuple[str, ...]
    """The parameters that vary."""

    @property
    def size(self) -> int:
        """P, the number of parameter points."""
        return len(next(iter(self.learner.params.values()))) if self.learner.params else 1


def grid(learner: Learner, **values: Sequence[float]) -> LearnerGrid:
    """The learner at every combination of the given parameter values, the last one varying fastest.

    Example:
        >>> import jaxbandit as jb
        >>> scales = jb.grid(jb.make_learner("ucbvi"), bonus_scale=[0.1, 0.25, 1.0])
        >>> scales.size, scales.names
        (3, ('bonus_scale',))
    """
    params = dict(learner.params)
    for name, listed in values.items():
        if name not in params or name in RESERVED:
            accepted = [p for p in params if p not in RESERVED and np.ndim(params[p]) == 0]
            raise ValueError(
                f"grid: learner {learner.name!r} has no array parameter {name!r}; "
                f"accepted: {', '.join(accepted) or 'none'}"
            )
        shape = np.shape(params[name])
        if np.ndim(listed) != 1 + len(shape) or np.size(listed) == 0:
            raise ValueError(
                f"grid: {name}: {listed!r}; accepted: a non-empty list of values of shape {shape}"
            )
    points = list(itertools.product(*(list(listed) for listed in values.values())))
    stacked = {}
    for name, default in params.items():
        column = (
            [point[list(values).index(name)] for point in points]
            if name in values
            else [default] * len(points)
        )
        stacked[name] = np.asarray(column, dtype=np.asarray(default).dtype)
    return LearnerGrid(learner._replace(params=stacked), tuple(values))


def family(name: str, *, count: int, key: jax.Array, **parameters: Any) -> MDP:
    """``count`` draws of a random instance, stacked on a leading axis; draw j uses ``fold_in(key, j)``.

    In a sweep, ``instances={"I2": family(...)}`` becomes "I2/0", "I2/1", ..., which share one panel.

    Example:
        >>> import jaxbandit as jb, jax
        >>> sizes = dict(horizon=5, capacity=2, num_values=3)
        >>> draws = jb.family("prophet-random", count=8, key=jax.random.key(1), **sizes)
        >>> draws.prob.shape
        (8, 5, 3, 3, 3)
    """
    from jaxbandit.instances import make_instance

    if int(count) != count or count < 1:
        raise ValueError(f"count: {count!r}; accepted: a whole number of draws, at least 1")
    return stack([make_instance(name, key=jax.random.fold_in(key, j), **parameters) for j in range(count)])


def stack(instances: list[MDP]) -> MDP:
    """Instances of one shape on a leading axis, as numpy arrays."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *instances)


def expand_learners(learners: Mapping[str, Learner | LearnerGrid]) -> dict[str, LearnerGrid]:
    """Every learner as a grid, of one point if it has none; the names are checked."""
    _check_names("learners", learners)
    expanded = {}
    for name, learner in learners.items():
        if isinstance(learner, Learner):
            params = {key: np.asarray(value)[None] for key, value in learner.params.items()}
            expanded[name] = LearnerGrid(learner._replace(params=params), ())
        elif isinstance(learner, LearnerGrid):
            expanded[name] = learner
        else:
            raise TypeError(
                f"learners[{name!r}]: {type(learner).__name__}; "
                "accepted: a Learner (make_learner) or a grid of one (jb.grid)"
            )
    return expanded


def expand_instances(instances: Mapping[str, MDP | Iterable[MDP]]) -> dict[str, MDP]:
    """Single instances by name; a stack or a list called "I" becomes "I/0", "I/1", ..."""
    _check_names("instances", instances)
    expanded: dict[str, MDP] = {}
    for name, given in instances.items():
        if isinstance(given, MDP) and np.ndim(given.prob) == 4:
            draws = {name: given}
        elif isinstance(given, MDP) and np.ndim(given.prob) == 5:
            draws = {f"{name}/{j}": jax.tree.map(lambda x, j=j: x[j], given) for j in range(len(given.prob))}
        elif (
            not isinstance(given, MDP)
            and isinstance(given, list | tuple)
            and all(isinstance(m, MDP) for m in given)
        ):
            draws = {f"{name}/{j}": mdp for j, mdp in enumerate(given)}
        else:
            raise TypeError(
                f"instances[{name!r}]: {type(given).__name__}; "
                "accepted: an MDP (make_instance), a stack or a list of them (jb.family)"
            )
        for draw, mdp in draws.items():
            if draw in expanded:
                raise ValueError(f"instances: {draw!r} is named twice; give every instance its own name")
            expanded[draw] = jax.tree.map(np.asarray, mdp)
    return expanded


def shape_of(mdp: MDP) -> tuple[Any, ...]:
    """What instances must share to run side by side: H, k, A, M, the types, and having a rank or not."""
    return (
        mdp.horizon,
        mdp.width,
        mdp.num_actions,
        mdp.num_outcomes,
        str(mdp.prob.dtype),
        mdp.rank is not None,
    )


def digest(mdp: MDP) -> str:
    """SHA-256 of an instance's arrays, types and shapes."""
    total = hashlib.sha256()
    for name, leaf in mdp._asdict().items():
        array = None if leaf is None else np.ascontiguousarray(leaf)
        total.update(f"{name} {None if array is None else (array.dtype.str, array.shape)};".encode())
        if array is not None:
            total.update(array.tobytes())
    return total.hexdigest()


def program_digest(learner: Learner) -> str:
    """SHA-256 of what a learner *does* whatever its parameters: its functions' code and what they close over.

    Two learners of one name that differ in a variant, or in code edited between two runs, differ here, so
    that a checkpoint of one is never continued by the other.
    """
    return hashlib.sha256(repr(_describe(learner.rules, ())).encode()).hexdigest()


def _describe(thing: Any, seen: tuple[int, ...]) -> Any:  # noqa: PLR0911  (one case per kind of value)
    """A value that is equal for equal programs and has no memory addresses in it."""
    if id(thing) in seen:
        return "recursion"
    inside = (*seen, id(thing))
    if isinstance(thing, str | bytes | int | float | complex | bool | type(None)):
        return thing
    if isinstance(thing, types.CodeType):
        return (
            thing.co_name,
            thing.co_code,
            thing.co_names,
            [_describe(const, inside) for const in thing.co_consts],
        )
    if isinstance(thing, Mapping):
        return [(str(key), _describe(value, inside)) for key, value in thing.items()]
    if isinstance(thing, tuple | list | set | frozenset):
        return [
            _describe(item, inside)
            for item in (sorted(thing, key=repr) if isinstance(thing, set | frozenset) else thing)
        ]
    if hasattr(thing, "dtype") and hasattr(thing, "shape"):
        array = np.asarray(thing)
        return (array.dtype.str, array.shape, array.tobytes())
    if hasattr(thing, "func") and hasattr(thing, "keywords"):  # functools.partial
        return [_describe(part, inside) for part in (thing.func, thing.args, thing.keywords)]
    if hasattr(thing, "__wrapped__"):  # jit, lru_cache
        return _describe(thing.__wrapped__, inside)
    if isinstance(thing, types.FunctionType):
        closed = [_describe(cell.cell_contents, inside) for cell in thing.__closure__ or ()]
        return (
            thing.__module__,
            thing.__qualname__,
            _describe(thing.__code__, inside),
            closed,
            _describe(thing.__defaults__, inside),
        )
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _check_names(argument: str, given: Mapping[str, Any]) -> None:
    if not isinstance(given, Mapping) or not given:
        raise ValueError(f"{argument}: {given!r}; accepted: a non-empty dictionary, name -> {argument[:-1]}")
    for name in given:
        if not isinstance(name, str) or not name:
            raise ValueError(f"{argument}: name {name!r}; accepted: a non-empty string")
