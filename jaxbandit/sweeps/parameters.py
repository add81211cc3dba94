"""The learners of a sweep: one learner at many settings of its parameters.

`grid` and `points` turn one learner into many that differ in the values of their parameters; these
become an array axis, so a sweep over them compiles once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxbandit import checks
from jaxbandit.learner import Learner
from jaxbandit.learner.checks import TAKEN

MOST_SETTINGS = 10**6


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
    columns = {}
    for name, listed in values.items():
        if name not in params or name in TAKEN:
            raise ValueError(
                f"grid: learner {learner.name!r} has no array parameter {name!r}; "
                f"accepted: {_accepted(params)}"
            )
        columns[name] = _column("grid", learner.name, name, listed, np.asarray(params[name]))
    size = math.prod(len(column) for column in columns.values())
    if size > MOST_SETTINGS:
        raise ValueError(f"grid: {size:,} settings; accepted: at most {MOST_SETTINGS:,}")
    sizes = [len(column) for column in columns.values()]
    places = np.unravel_index(np.arange(size), sizes) if sizes else ()
    stacked = {name: np.repeat(np.asarray(value)[None], size, 0) for name, value in params.items()}
    for (name, column), place in zip(columns.items(), places, strict=True):
        stacked[name] = column[place]
    made = LearnerGrid(learner._replace(params=stacked), tuple(values))
    check_settings("grid", made)
    return made


def _accepted(params: Mapping[str, Any]) -> str:
    scalars = [p for p in params if p not in TAKEN and np.ndim(params[p]) == 0]
    return ", ".join(scalars) or "none"


def _column(where: str, learner: str, name: str, listed: Any, default: np.ndarray) -> np.ndarray:
    """The values of one parameter as [P, ...] in the type of its default, which must hold them."""
    where = f"{where}: {name}"
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
            f"{where}: {seen!r} for learner {learner!r}; accepted: finite {default.dtype} values"
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
    for name in names:
        if name not in params or name in TAKEN or np.ndim(params[name]):
            raise ValueError(
                f"points: learner {learner.name!r} has no scalar parameter {name!r}; "
                f"accepted: {_accepted(params)}"
            )
    stacked = {}
    for name, default in params.items():
        own = np.asarray(default)
        column = [setting.get(name, own) for setting in settings]
        stacked[name] = (
            _column("points", learner.name, name, column, own)
            if name in names
            else np.stack([own] * len(settings))
        )
    made = LearnerGrid(learner._replace(params=stacked), names)
    check_settings("points", made)
    return made


def expand_learners(learners: Mapping[str, Learner | LearnerGrid]) -> dict[str, LearnerGrid]:
    """Every learner as a grid, of one setting if it has none; the names are checked."""
    checks.names("learners", learners)
    expanded = {}
    for name, learner in learners.items():
        if isinstance(learner, Learner):
            own = _params(f"learners[{name!r}]", learner)
            params = {key: np.asarray(value)[None] for key, value in own.items()}
            expanded[name] = LearnerGrid(learner._replace(params=params), ())
        elif isinstance(learner, LearnerGrid):
            expanded[name] = learner
        else:
            raise TypeError(
                f"learners[{name!r}]: {type(learner).__name__}; "
                "accepted: a Learner (make_learner) or a grid of one (jb.grid)"
            )
        check_settings(f"learners[{name!r}]", expanded[name])
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
