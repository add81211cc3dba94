"""Checks of the learners' parameters: `Learner.check` of each, which constructors and `grid` call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from jaxbandit.checks import number
from jaxbandit.learners.phases import MAX_PHASES

UNSET = {"threshold": np.nan, "deviations": np.nan, "last_epsilon": np.nan, "num_phases": np.inf}
"""Values that stand for "as in the paper" and "no limit"."""


@cache
def at_least_zero(*names: str, above: bool = False) -> Callable[[Mapping[str, Any]], None]:
    """A `Learner.check` that refuses values of these parameters below 0 (``above``: 0 as well).

    The same object for the same names, so that learners that differ in values only are one program.

    Example:
        >>> at_least_zero("bonus_scale")({"bonus_scale": -1.0})
        Traceback (most recent call last):
        ...
        ValueError: bonus_scale: -1.0; accepted: a finite number >= 0
    """

    def check(params: Mapping[str, Any]) -> None:
        for name in names:
            for value in np.ravel(np.asarray(params[name])).tolist():
                number(name, value, low=0, above=above)

    return check


def scales(*, above: bool = False, **values: Any) -> dict[str, Any]:
    """The fields ``params`` and ``check`` of a learner whose parameters are numbers >= 0 (``above``:
    > 0), float32.

    Example:
        >>> scales(bonus_scale=0.5)["params"]
        {'bonus_scale': np.float32(0.5)}
        >>> scales(bonus_scale=-1)
        Traceback (most recent call last):
        ...
        ValueError: bonus_scale: -1; accepted: a finite number >= 0
    """
    params = {name: np.float32(number(name, x, low=0, above=above)) for name, x in values.items()}
    return {"params": params, "check": at_least_zero(*values, above=above)}


def epsilon_table(epsilons: Any) -> np.ndarray:
    """A schedule of accuracies as float64 [MAX_PHASES]: an array, or a function of the phase's
    number such as an optax schedule; padded with 0, which ends it.

    Example:
        >>> epsilon_table([0.5, 0.25])[:3].tolist()
        [0.5, 0.25, 0.0]
    """
    accepted = f"1..{MAX_PHASES} numbers in (0, 1], or a callable giving them"
    values = [epsilons(r) for r in range(MAX_PHASES)] if callable(epsilons) else epsilons
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"epsilons: {values!r}; accepted: {accepted}") from error
    good = array.ndim == 1 and 1 <= array.size <= MAX_PHASES
    if not good or not np.all((array > 0) & (array <= 1)):
        raise ValueError(f"epsilons: {array}; accepted: {accepted}")
    return np.pad(array, (0, MAX_PHASES - array.size))


def check_schedule(params: Mapping[str, Any]) -> None:
    """Refuses parameters that ExpRef in all its forms cannot mean (its `Learner.check`).

    Example:
        >>> check_schedule({"episodes_scale": -1.0})
        Traceback (most recent call last):
        ...
        ValueError: episodes_scale: -1.0; accepted: a finite number > 0
    """
    for name, value in params.items():
        if name == "epsilons":
            array = np.asarray(value, np.float64)
            count = int(np.argmin(array > 0)) if np.any(array <= 0) else array.size
            if not np.all(np.isnan(array)):
                epsilon_table(array[: max(count, 1)])
        elif name not in UNSET or not np.array_equal(value, UNSET[name], equal_nan=True):
            check_schedule_value(name, value)
    slacks = {name: params[name] for name in ("threshold", "deviations") if name in params}
    if len(slacks) == 2 and not np.any(np.isnan([float(value) for value in slacks.values()])):
        shown = " with ".join(f"{name}: {float(value)}" for name, value in slacks.items())
        raise ValueError(f"{shown}; accepted: one of them (nan for the other)")


def check_schedule_value(name: str, value: Any) -> None:
    """Refuses a value of one parameter of ExpRef.

    Example:
        >>> check_schedule_value("num_phases", 2.5)
        Traceback (most recent call last):
        ...
        ValueError: num_phases: 2.5; accepted: whole numbers, 1..32
    """
    if name == "num_phases":
        whole = np.ndim(value) == 0 and not isinstance(value, str | bytes | bool)
        if not (whole and value in range(1, MAX_PHASES + 1)):
            raise ValueError(f"num_phases: {value}; accepted: whole numbers, 1..{MAX_PHASES}")
        return
    high = 1 if name in ("ratio", "greedy_share") else np.inf
    number(name, value, low=0, above=name != "greedy_share", high=high)
    if name == "ratio" and float(value) == 1:
        raise ValueError(f"ratio: {value!r}; accepted: a number > 0 and < 1")


def check_bonus(params: Mapping[str, Any]) -> None:
    """Refuses parameters that UCB-VI cannot mean (its `Learner.check`).

    Example:
        >>> check_bonus({"bonus_scale": float("nan")})
        Traceback (most recent call last):
        ...
        ValueError: bonus_scale: nan; accepted: a finite number >= 0
    """
    number("bonus_scale", params["bonus_scale"], low=0)


def check_gradient(params: Mapping[str, Any]) -> None:
    """Refuses parameters that policy gradient cannot mean (its `Learner.check`).

    Example:
        >>> check_gradient({"baseline_decay": 1.0})
        Traceback (most recent call last):
        ...
        ValueError: baseline_decay: 1.0; accepted: a number >= 0 and < 1
    """
    if number("baseline_decay", params["baseline_decay"], low=0, high=1) == 1:
        given = params["baseline_decay"]
        raise ValueError(f"baseline_decay: {given!r}; accepted: a number >= 0 and < 1")
    if "learning_rate" in params:
        number("learning_rate", params["learning_rate"], low=0, above=True)


def check_policy(params: Mapping[str, Any]) -> None:
    """Refuses tables that are no policy (`Learner.check` of ``fixed``).

    Example:
        >>> check_policy({"policy": [[0, -1]]})
        Traceback (most recent call last):
        ...
        ValueError: policy: [[0, -1]]; accepted: actions >= 0, at least one stage and level
    """
    either = "integers [H, k+1] or floats [H, k+1, A]"
    try:
        table = np.asarray(params["policy"])
    except ValueError:  # rows of different lengths
        raise ValueError(f"policy: {str(params['policy'])[:80]}; accepted: {either}") from None
    kind, shown = table.dtype.kind, str(table.tolist())
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    if kind in "iu" and table.ndim == 2:
        if table.size == 0 or table.min() < 0 or table.max() > 2**31 - 1:
            accepted = "actions >= 0, at least one stage and level"
            raise ValueError(f"policy: {shown}; accepted: {accepted}")
    elif kind == "f" and table.ndim == 3:
        sums = table.sum(axis=-1, dtype=np.float64)
        if table.size == 0 or not (table >= 0).all() or not (np.abs(sums - 1) <= 1e-5).all():
            accepted = "action probabilities >= 0 that sum to 1"
            raise ValueError(f"policy: {shown}; accepted: {accepted}")
    else:
        raise ValueError(f"policy: {table.dtype} of shape {table.shape}; accepted: {either}")
