"""What a sweep is over: learners, each at settings of its parameters, and instances, each of a family.

`grid` and `points` turn one learner into many that differ in the values of their parameters; `family` draws many
instances of one kind. Both become array axes, so a sweep over them compiles once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxbandit import checks
from jaxbandit.learner import TAKEN, Learner
from jaxbandit.mdp import MDP, canonical, validate
from jaxbandit.mdp.labels import carry

MOST_SETTINGS, MOST_DRAWS = 10**6, 10**6


@dataclass(frozen=True)
class LearnerGrid:
    """One learner at P settings of its parameters; made by `grid` or `points`."""

    learner: Learner
    """Its ``params`` leaves have a leading axis [P]."""
    names: tuple[str, ...]
    """The parameters that vary."""

    @property
    def size(self) -> int:
        """P, the number of settings."""
        return len(next(iter(self.learner.params.values()))) if self.learner.params else 1


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
    params = _params("grid", learner)
    _check_names("grid", learner, values, "array")
    columns = {name: _column("grid", learner, name, listed) for name, listed in values.items()}
    sizes = [len(column) for column in columns.values()]
    size = math.prod(sizes)
    if size > MOST_SETTINGS:
        raise ValueError(f"grid: {size:,} settings; accepted: at most {MOST_SETTINGS:,}")
    places = np.unravel_index(np.arange(size), sizes) if sizes else ()
    columns = {name: columns[name][place] for name, place in zip(columns, places, strict=True)}
    return _stacked("grid", learner, params, columns, size)


def _check_names(where: str, learner: Learner, names: Iterable[str], kind: str) -> None:
    """An error for a name that is no parameter of the learner; ``kind``: "array", or "scalar" for those without axes."""
    params = learner.params
    for name in names:
        if name not in params or name in TAKEN or (kind == "scalar" and np.ndim(params[name])):
            known = [p for p in params if p not in TAKEN and np.ndim(params[p]) == 0]
            raise ValueError(
                f"{where}: learner {learner.name!r} has no {kind} parameter {name!r}; "
                f"accepted: {', '.join(known) or 'none'}"
            )


def _stacked(
    where: str, learner: Learner, params: Mapping[str, Any], columns: Mapping[str, Any], size: int
) -> LearnerGrid:
    """The learner at ``size`` settings: those of the columns, and its own for all other parameters."""
    stacked = {
        name: columns[name] if name in columns else np.repeat(np.asarray(own)[None], size, 0)
        for name, own in params.items()
    }
    made = LearnerGrid(learner._replace(params=stacked), tuple(columns))
    check_settings(where, made)
    return made


def _column(where: str, learner: Learner, name: str, listed: Any) -> np.ndarray:
    """The values of one parameter as [P, ...] in the type of its default, which must hold them."""
    where, default = f"{where}: {name}", np.asarray(learner.params[name])
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
        given = np.asarray(checks.real_array(where, listed, accepted))
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
            f"{where}: {seen!r} for learner {learner.name!r}; accepted: finite {default.dtype} values"
        )
    return column


def check_settings(argument: str, grid: LearnerGrid) -> None:
    """Asks the learner whether it can mean every setting of the grid."""
    learner = grid.learner
    if learner.check is None:
        return
    for index in range(grid.size):
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
    checks.typed("learner", learner, Learner, "a Learner, as make_learner gives it")
    settings = list(settings) if isinstance(settings, Sequence) else settings
    if (
        not isinstance(settings, list)
        or not settings
        or not all(isinstance(setting, Mapping) for setting in settings)
    ):
        raise ValueError(
            f"settings: {settings!r}; accepted: a non-empty list of dictionaries, parameter -> value"
        )
    params = _params("points", learner)
    names = tuple(dict.fromkeys(name for setting in settings for name in setting))
    _check_names("points", learner, names, "scalar")
    columns = {
        name: _column("points", learner, name, [each.get(name, np.asarray(params[name])) for each in settings])
        for name in names
    }  # fmt: skip
    return _stacked("points", learner, params, columns, len(settings))


def expand_learners(learners: Mapping[str, Learner | LearnerGrid]) -> dict[str, LearnerGrid]:
    """Every learner as a grid, of one setting if it has none; the names are checked."""
    checks.names("learners", learners)
    expanded = {}
    for name, learner in learners.items():
        where = f"learners[{name!r}]"
        if isinstance(learner, Learner):
            expanded[name] = _stacked(where, learner, _params(where, learner), {}, 1)
        elif isinstance(learner, LearnerGrid):
            check_settings(where, learner)
            expanded[name] = learner
        else:
            raise TypeError(
                f"{where}: {type(learner).__name__}; "
                "accepted: a Learner (make_learner) or a grid of one (jb.grid)"
            )
    return expanded


def _params(where: str, learner: Learner) -> dict[str, Any]:
    """The learner's parameters, if they are numbers by name."""
    if not isinstance(learner.params, Mapping):
        raise ValueError(
            f"{where}: params: {learner.params!r}; accepted: a dictionary, name -> number or array"
        )
    for key, value in learner.params.items():
        if np.asarray(value).dtype.kind not in "fiub":
            raise ValueError(
                f"{where}: parameter {key!r} has dtype {np.asarray(value).dtype}; accepted: numbers"
            )
    return dict(learner.params)


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

    count = checks.whole("count", count, at_most=MOST_DRAWS, what="a whole number of draws")
    single_key(key)
    return stack(
        [make_instance(name, key=jax.random.fold_in(key, j), **parameters) for j in range(count)]
    )


def stack(instances: list[MDP]) -> MDP:
    """Instances of one shape on a leading axis, as numpy arrays."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *instances)


def expand_instances(instances: Mapping[str, MDP | Iterable[MDP]]) -> Instances:
    """Single instances by name; a stack or a list called "I" becomes "I/0", "I/1", ..., which are
    replicates of the family "I".

    Example:
        >>> import jaxbandit as jb
        >>> mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
        >>> expand_instances({"A/k=2": mdp, "B": [mdp, mdp]}).families
        {'A/k=2': 'A/k=2', 'B/0': 'B', 'B/1': 'B'}
    """
    checks.names("instances", instances)
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
                expanded[draw] = validate(carry(mdp, MDP(*plain)))
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
