"""Checks of hyper-parameters, made when a learner is constructed."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np


def number(
    name: str, value: Any, *, low: float = -math.inf, high: float = math.inf, above: bool = False
) -> float:
    """``value`` as a float in [low, high], or in (low, high] if ``above``; anything else is an error.

    Example:
        >>> number("bonus_scale", 0.5, low=0)
        0.5
        >>> number("bonus_scale", -1, low=0)
        Traceback (most recent call last):
        ...
        ValueError: bonus_scale: -1; accepted: a finite number >= 0
    """
    bounds = [f"{'>' if above else '>='} {low:g}"] if math.isfinite(low) else []
    bounds += [f"<= {high:g}"] if math.isfinite(high) else []
    accepted = " ".join(["a finite number", " and ".join(bounds)]).strip()
    scalar = np.ndim(value) == 0 and not isinstance(value, (str, bytes, bool, np.bool_))
    if scalar and not isinstance(value, numbers.Number) and hasattr(value, "item"):
        value = value.item()  # a 0-dimensional array
    if not (scalar and isinstance(value, numbers.Real) and math.isfinite(value)):
        raise ValueError(f"{name}: {value!r}; accepted: {accepted}")
    seen = float(value)
    if seen < low or seen > high or (above and seen == low):
        raise ValueError(f"{name}: {value!r}; accepted: {accepted}")
    return seen


def choice(name: str, value: Any, accepted: tuple[Any, ...]) -> Any:
    """``value`` if it is one of ``accepted``, else an error that lists them.

    Example:
        >>> choice("bonus", "hoeffding", ("hoeffding", "bernstein"))
        'hoeffding'
    """
    if not any(value is option or (type(value) is type(option) and value == option) for option in accepted):
        raise ValueError(f"{name}: {value!r}; accepted: {', '.join(map(repr, accepted))}")
    return value
