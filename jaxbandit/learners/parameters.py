"""The ranges of the learners' parameters as specs, and `Learner.check` made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxbandit.learners.phases import MAX_PHASES
from jaxbandit.specs import Real, Spec, Whole

POSITIVE = Real(low=0, above=True)
SCHEDULE: dict[str, Spec] = {
    "episodes_scale": POSITIVE,
    "threshold_scale": POSITIVE,
    "threshold": POSITIVE,
    "first_epsilon": POSITIVE,
    "ratio": Real(0, 1, above=True, below=True),
    "last_epsilon": POSITIVE,
    "num_phases": Whole(1, MAX_PHASES),
    "exploration_scale": POSITIVE,
    "greedy_share": Real(0, 1),
    "deviations": POSITIVE,
}
"""Of ExpRef in all its forms."""
UNSET = {"threshold": np.nan, "deviations": np.nan, "last_epsilon": np.nan, "num_phases": np.inf}
"""Values that stand for "as in the paper" and "no limit"."""


class SpecCheck:
    """A `Learner.check`: every entry of a parameter that has a spec is checked by it.

    Example:
        >>> SpecCheck(bonus_scale=Real(low=0))({"bonus_scale": -1.0})
        Traceback (most recent call last):
        ...
        ValueError: bonus_scale: -1.0; accepted: a finite number >= 0
    """

    def __init__(self, **specs: Spec):
        """By the name of the parameter."""
        self.specs = specs

    def __call__(self, params: Mapping[str, Any]) -> None:
        """Raises ValueError, naming the parameter."""
        for name in self.specs.keys() & params.keys():
            for value in np.ravel(np.asarray(params[name])).tolist():
                self.specs[name].check(name, value)


check_gradient = SpecCheck(baseline_decay=Real(0, 1, below=True), learning_rate=POSITIVE)
"""Of policy gradient."""


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
    spec = Real(low=0, above=above)
    params = {name: np.float32(spec.check(name, value)) for name, value in values.items()}
    return {"params": params, "check": SpecCheck(**dict.fromkeys(values, spec))}


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
            SCHEDULE[name].check(name, np.asarray(value)[()])
    slacks = {name: params[name] for name in ("threshold", "deviations") if name in params}
    if len(slacks) == 2 and not np.any(np.isnan([float(value) for value in slacks.values()])):
        shown = " with ".join(f"{name}: {float(value)}" for name, value in slacks.items())
        raise ValueError(f"{shown}; accepted: one of them (nan for the other)")


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
