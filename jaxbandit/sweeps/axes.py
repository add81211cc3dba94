"""The axes of a sweep: learners (with their parameter grids) and instances (with families of random
draws).

`grid` and `points` turn one learner into many that differ in the values of their parameters; `family` draws
many instances of one kind. Both become array axes, so a sweep over them compiles once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxbandit.checks import label, real_array, whole
from jaxbandit.learner import Learner
from jaxbandit.mdp import MDP, canonical
from jaxbandit.mdp.labels import carry

MOST_POINTS = 10**6
"""Of a parameter grid, and draws of a family."""

RESERVED = (
    "learner",
    "instance",
    "parameter",
    "seed",
    "episode",
    "phase",
    "stage",
    "level",
    "family",
)


@dataclass(frozen=True)
class LearnerGrid:
    """One learner at P parameter points; made by `grid` or `points`."""

    learner: Learner
    """Its ``params`` leaves have a leading axis [P]."""
    names: tuple[str, ...]
    """The parameters that vary."""

    @property
    def size(self) -> int:
        """P, the number of parameter points."""
        return len(next(iter(self.learner.params.values()))) if self.learner.params else 1


class Instances(Mapping[str, MDP]):
    """The single instances of a sweep by name, each with the name under which the user gave it.

    Instances given together under one name (a stack, a list) are replicates of one family; an
    instance given alone is a family of its own, whatever its name looks like.
    """

    def __init__(self, members: Mapping[str, MDP], families: Mapping[str, str]):
        """``families``: the family of every member."""
        self._members, self.families = dict(members), dict(families)

    def __getitem__(self, name: str) -> MDP:
        """The instance of that name."""
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        """The names, in the order given."""
        return iter(self._members)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._members)


def grid(learner: Learner, **values: Sequence[float]) -> LearnerGrid:
    """The learner at every combination of the given parameter values, the last one varying fastest.

    Values are refused as the learner's constructor refuses them.

    Example:
        >>> import jaxbandit as jb
        >>> scales = jb.grid(jb.make_learner("ucbvi"), bonus_scale=[0.1, 0.25, 1.0])
        >>> scales.size, scales.names
        (3, ('bonus_scale',))
    """
    if not isinstance(learner, Learner):
        raise TypeError(
            f"grid: learner: {type(learner).__name__}; accepted: a Learner (jb.make_learner)"
        )
    params = dict(learner.params)
    columns = {}
    for name, listed in values.items():
        if name not in params or name in RESERVED:
            raise ValueError(
                f"grid: learner {learner.name!r} has no array parameter {name!r}; "
                f"accepted: {_accepted(params)}"
            )
        columns[name] = _column(learner.name, name, listed, np.asarray(params[name]))
    size = math.prod(len(column) for column in columns.values())
    if size > MOST_POINTS:
        raise ValueError(f"grid: {size:,} points; accepted: at most {MOST_POINTS:,}")
    sizes = [len(column) for column in columns.values()]
    places = np.unravel_index(np.arange(size), sizes) if sizes else ()
    stacked = {name: np.repeat(np.asarray(value)[None], size, 0) for name, value in params.items()}
    for (name, column), place in zip(columns.items(), places, strict=True):
        stacked[name] = column[place]
    made = LearnerGrid(learner._replace(params=stacked), tuple(values))
    check_points("grid", made)
    return made


def _accepted(params: Mapping[str, Any]) -> str:
    scalars = [p for p in params if p not in RESERVED and np.ndim(params[p]) == 0]
    return ", ".join(scalars) or "none"


def _column(learner: str, name: str, listed: Any, default: np.ndarray) -> np.ndarray:
    """The values of one parameter as [P, ...] in the type of its default, which must hold them."""
    where = f"grid: {name}"
    if isinstance(listed, str | bytes | Mapping):
        raise ValueError(f"{where}: {listed!r}; accepted: a non-empty list of values")
    if isinstance(listed, Iterable) and not hasattr(listed, "dtype"):
        listed = list(listed)
    accepted = f"a non-empty list of values of shape {default.shape}"
    if default.dtype.kind == "b":
        given = np.asarray(listed)
        if given.dtype.kind != "b":
            raise ValueError(f"{where}: {listed!r}; accepted: truth values")
    else:
        given = np.asarray(real_array(where, listed, accepted))
    if given.ndim != 1 + default.ndim or given.shape[1:] != default.shape or not given.size:
        raise ValueError(f"{where}: {listed!r}; accepted: {accepted}")
    with np.errstate(over="ignore", invalid="ignore"):
        column = given.astype(default.dtype)
    strange = ~np.isfinite(column) if default.dtype.kind == "f" else np.zeros(column.shape, bool)
    if default.dtype.kind == "f" and not np.isfinite(default).all():
        strange &= np.isfinite(given)  # nan is how this parameter says "not given"
    elif default.dtype.kind in "iu":
        strange = column.astype(np.float64) != given.astype(np.float64)
    if strange.any():
        seen = given[strange].flat[0]
        raise ValueError(
            f"{where}: {seen!r} for learner {learner!r}; accepted: finite {default.dtype} values"
        )
    return column


def check_points(argument: str, points: LearnerGrid) -> None:
    """Asks the learner whether it can mean every point of the grid."""
    learner = points.learner
    if learner.check is None:
        return
    for index in range(points.size):
        params = {name: np.asarray(values)[index] for name, values in learner.params.items()}
        try:
            learner.check(params)
        except ValueError as error:
            raise ValueError(f"{argument}: learner {learner.name!r}: {error}") from None


def points(learner: Learner, settings: Sequence[Mapping[str, float]]) -> LearnerGrid:
    """The learner at each of the given settings, in this order and without their product.

    A parameter that a setting does not name keeps the learner's own value.

    Example:
        >>> import jaxbandit as jb
        >>> expref = jb.make_learner("expref", preset="practical")
        >>> tried = jb.points(expref, [{"threshold": 0.05}, {"threshold": 0.1, "first_epsilon": 0.4}])
        >>> tried.size, tried.names
        (2, ('threshold', 'first_epsilon'))
    """
    settings = list(settings)
    if not settings or not all(isinstance(setting, Mapping) for setting in settings):
        raise ValueError(
            f"settings: {settings!r}; accepted: a non-empty list of dictionaries, parameter -> value"
        )
    params = dict(learner.params)
    names = tuple(dict.fromkeys(name for setting in settings for name in setting))
    for name in names:
        if name not in params or name in RESERVED or np.ndim(params[name]):
            accepted = [p for p in params if p not in RESERVED and np.ndim(params[p]) == 0]
            raise ValueError(
                f"points: learner {learner.name!r} has no scalar parameter {name!r}; "
                f"accepted: {', '.join(accepted) or 'none'}"
            )
    stacked = {}
    for name, default in params.items():
        column = [setting.get(name, default) for setting in settings]
        if name in names and any(np.ndim(value) for value in column):
            raise ValueError(f"points: {name}: {column!r}; accepted: one number per setting")
        stacked[name] = np.asarray(column, dtype=np.asarray(default).dtype)
    return LearnerGrid(learner._replace(params=stacked), names)


def family(name: str, *, count: int, key: jax.Array, **parameters: Any) -> MDP:
    """``count`` draws of a random instance, stacked on a leading axis; draw j uses ``fold_in(key,
    j)``.

    In a sweep, ``instances={"I2": family(...)}`` becomes "I2/0", "I2/1", ..., which share one
    panel.

    Example:
        >>> import jaxbandit as jb, jax
        >>> sizes = dict(horizon=5, capacity=2, num_values=3)
        >>> draws = jb.family("prophet-random", count=8, key=jax.random.key(1), **sizes)
        >>> draws.prob.shape
        (8, 5, 3, 3, 3)
    """
    from jaxbandit.instances import make_instance
    from jaxbandit.instances.checks import single_key

    count = whole("count", count, at_most=MOST_POINTS, what="a whole number of draws")
    single_key(key)
    return stack(
        [make_instance(name, key=jax.random.fold_in(key, j), **parameters) for j in range(count)]
    )


def stack(instances: list[MDP]) -> MDP:
    """Instances of one shape on a leading axis, as numpy arrays."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *instances)


def expand_learners(learners: Mapping[str, Learner | LearnerGrid]) -> dict[str, LearnerGrid]:
    """Every learner as a grid, of one point if it has none; the names are checked."""
    _check_names("learners", learners)
    expanded = {}
    for name, learner in learners.items():
        if isinstance(learner, Learner):
            _check_params(name, learner)
            params = {key: np.asarray(value)[None] for key, value in learner.params.items()}
            expanded[name] = LearnerGrid(learner._replace(params=params), ())
        elif isinstance(learner, LearnerGrid):
            expanded[name] = learner
        else:
            raise TypeError(
                f"learners[{name!r}]: {type(learner).__name__}; "
                "accepted: a Learner (make_learner) or a grid of one (jb.grid)"
            )
        check_points(f"learners[{name!r}]", expanded[name])
    return expanded


def _check_params(name: str, learner: Learner) -> None:
    for key, value in learner.params.items():
        if np.asarray(value).dtype.kind not in "fiub":
            raise ValueError(
                f"learners[{name!r}]: parameter {key!r} has dtype {np.asarray(value).dtype}; "
                "accepted: numbers"
            )


def expand_instances(instances: Mapping[str, MDP | Iterable[MDP]]) -> Instances:
    """Single instances by name; a stack or a list called "I" becomes "I/0", "I/1", ..., which are
    replicates of the family "I".

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
        >>> expand_instances({"A/k=2": mdp, "B": [mdp, mdp]}).families
        {'A/k=2': 'A/k=2', 'B/0': 'B', 'B/1': 'B'}
    """
    _check_names("instances", instances)
    expanded: dict[str, MDP] = {}
    families: dict[str, str] = {}
    for name, given in instances.items():
        for draw, mdp in _draws(name, given).items():
            if draw in expanded:
                raise ValueError(
                    f"instances: {draw!r} is named twice; give every instance its own name"
                )
            try:
                plain = (leaf if leaf is None else np.asarray(leaf) for leaf in canonical(mdp))
                expanded[draw] = carry(mdp, MDP(*plain))
            except ValueError as error:
                raise ValueError(f"instances[{draw!r}]: {error}") from error
            families[draw] = name
    return Instances(expanded, families)


def _draws(name: str, given: Any) -> dict[str, MDP]:
    """The instances given under one name."""
    if isinstance(given, MDP) and np.ndim(given.prob) == 5:
        if not len(given.prob):
            raise ValueError(f"instances[{name!r}]: an empty stack; accepted: at least one MDP")
        return {
            f"{name}/{j}": MDP(*(leaf if leaf is None else leaf[j] for leaf in given))
            for j in range(len(given.prob))
        }
    if isinstance(given, MDP):
        return {name: given}
    if isinstance(given, list | tuple) and given and all(isinstance(m, MDP) for m in given):
        return {f"{name}/{j}": mdp for j, mdp in enumerate(given)}
    raise TypeError(
        f"instances[{name!r}]: {type(given).__name__}; "
        "accepted: an MDP (make_instance), a stack or a non-empty list of them (jb.family)"
    )


def shape_of(mdp: MDP) -> tuple[Any, ...]:
    """What instances must share to run side by side: H, k, A, M, the types, and having a rank or
    not."""
    return (
        mdp.horizon,
        mdp.width,
        mdp.num_actions,
        mdp.num_outcomes,
        str(mdp.prob.dtype),
        mdp.rank is not None,
    )


def _check_names(argument: str, given: Mapping[str, Any]) -> None:
    if not isinstance(given, Mapping) or not given:
        raise ValueError(
            f"{argument}: {given!r}; accepted: a non-empty dictionary, name -> {argument[:-1]}"
        )
    for name in given:
        label(argument, name)
