"""What a sweep is over: learners, each at settings of its parameters, and instances, each of a family.

`grid` and `points` turn one learner into many that differ in the values of their parameters; `family` draws many
instances of one kind. Both become array axes, so a sweep over them compiles once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxbandit import checks
from jaxbandit.learner import Learner, check_contract
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
    learner = _checked("grid", learner)
    columns = {name: _column("grid", learner, name, listed) for name, listed in values.items()}
    sizes = [len(column) for column in columns.values()]
    size = math.prod(sizes)
    if size > MOST_SETTINGS:
        raise ValueError(f"grid: {size:,} settings; accepted: at most {MOST_SETTINGS:,}")
    places = np.unravel_index(np.arange(size), sizes) if sizes else ()
    columns = {name: columns[name][place] for name, place in zip(columns, places, strict=True)}
    return _stacked("grid", learner, columns, size)


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
    learner = _checked("points", learner)
    given = list(settings) if isinstance(settings, Sequence) else []
    if not given or not all(isinstance(setting, Mapping) for setting in given):
        raise ValueError(
            f"settings: {settings!r}; accepted: a non-empty list of dictionaries, parameter -> value"
        )
    columns = {}
    for name in dict.fromkeys(name for setting in given for name in setting):
        own = np.asarray(learner.params.get(name))
        listed = [setting.get(name, own) for setting in given]
        columns[name] = _column("points", learner, name, listed, scalar=True)
    return _stacked("points", learner, columns, len(given))


def _column(
    where: str, learner: Learner, name: str, listed: Any, scalar: bool = False
) -> np.ndarray:
    """The values of one parameter as [P, ...] in the type of its default, which must hold them."""
    params = learner.params
    if name not in params or (scalar and np.ndim(params[name])):
        known = ", ".join(each for each in params if np.ndim(params[each]) == 0)
        raise ValueError(
            f"{where}: learner {learner.name!r} has no {'scalar' if scalar else 'array'} parameter {name!r}; "
            f"accepted: {known or 'none'}"
        )
    where, default = f"{where}: {name}", np.asarray(params[name])
    accepted = f"a non-empty list of values of shape {default.shape}"
    several = isinstance(listed, Iterable) and not isinstance(listed, str | bytes | Mapping)
    if several and not hasattr(listed, "dtype"):
        listed = list(listed)
    given = np.asarray(checks.real_array(where, listed, accepted))
    if given.ndim != 1 + default.ndim or given.shape[1:] != default.shape or not given.size:
        raise ValueError(f"{where}: {listed!r}; accepted: {accepted}")
    with np.errstate(over="ignore", invalid="ignore"):
        column = given.astype(default.dtype)
    if default.dtype.kind == "f":  # nan is how some parameters say "not given"
        strange = ~np.isfinite(column) & (np.isfinite(given) | np.isfinite(default).all())
    else:
        strange = column != given
    if strange.any():
        raise ValueError(
            f"{where}: {given[strange].flat[0]!r} for learner {learner.name!r}; "
            f"accepted: finite {default.dtype} values"
        )
    return column


def _stacked(where: str, learner: Learner, columns: Mapping[str, Any], size: int) -> LearnerGrid:
    """The learner at ``size`` settings: those of the columns, and its own for all other parameters."""
    stacked = {
        name: np.repeat(np.asarray(own)[None], size, 0) for name, own in learner.params.items()
    }
    return check_settings(
        where, LearnerGrid(learner._replace(params={**stacked, **columns}), tuple(columns))
    )


def check_settings(where: str, grid: LearnerGrid) -> LearnerGrid:
    """The grid, if its learner can mean every setting."""
    learner = grid.learner
    check: Any = learner.check
    for index in range(0 if check is None else grid.size):
        try:
            check({name: np.asarray(values)[index] for name, values in learner.params.items()})
        except ValueError as error:
            raise ValueError(f"{where}: learner {learner.name!r}: {error}") from None
    return grid


def _checked(where: str, learner: Learner) -> Learner:
    """The learner, if what it declares can be meant."""
    try:
        return check_contract(learner)._replace(params=dict(learner.params))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def expand_learners(learners: Mapping[str, Learner | LearnerGrid]) -> dict[str, LearnerGrid]:
    """Every learner as a grid, of one setting if it has none; the names are checked."""
    checks.names("learners", learners)
    expanded = {}
    for name, given in learners.items():
        where = f"learners[{name!r}]"
        accepted = "a Learner (make_learner) or a grid of one (jb.grid)"
        checks.typed(where, given, (Learner, LearnerGrid), accepted)
        if isinstance(given, LearnerGrid):
            expanded[name] = check_settings(where, given)
        else:
            expanded[name] = _stacked(where, _checked(where, given), {}, 1)
    return expanded


class Instances(dict[str, MDP]):
    """The single instances of a sweep by name, each with the name under which the user gave it.

    Instances given together under one name (a stack, a list) are replicates of one family; an
    instance given alone is a family of its own, whatever its name looks like.
    """

    def __init__(self) -> None:
        """None yet."""
        super().__init__()
        self.families: dict[str, str] = {}


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
    from jaxbandit.xla.threefry import single_key

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
    expanded = Instances()
    for name, given in instances.items():
        single = isinstance(given, MDP) and np.ndim(given.prob) != 5
        members: Any = [given] if single else given
        if isinstance(members, MDP):
            each = range(len(members.prob))
            members = [MDP(*(x if x is None else x[j] for x in members)) for j in each]
        several = isinstance(members, list | tuple) and len(members) > 0
        if not several or not all(isinstance(mdp, MDP) for mdp in members):
            raise TypeError(
                f"instances[{name!r}]: {type(given).__name__}; "
                "accepted: an MDP (make_instance), a stack or a non-empty list of them (jb.family)"
            )
        for j, mdp in enumerate(members):
            draw = name if single else f"{name}/{j}"
            if draw in expanded:
                raise ValueError(
                    f"instances: {draw!r} is named twice; give every instance its own name"
                )
            try:
                plain = (leaf if leaf is None else np.asarray(leaf) for leaf in canonical(mdp))
                expanded[draw] = validate(carry(mdp, MDP(*plain)))
            except ValueError as error:
                raise ValueError(f"instances[{draw!r}]: {error}") from error
            expanded.families[draw] = name
    return expanded
