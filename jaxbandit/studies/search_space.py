"""Where to look for parameters: lists of values and ranges, as a grid or at random."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxbandit.checks import MOST_SEEDS, choice, number, whole
from jaxbandit.stats.bootstrap import generator


@dataclass(frozen=True)
class Range:
    """All numbers from ``low`` to ``high``, drawn evenly on the log scale unless told otherwise.

    Example:
        >>> Range(0.01, 1.0).at(0.5)
        0.1
    """

    low: float
    high: float
    log: bool = True
    """Whether ratios, not differences, are what matters."""

    def __post_init__(self) -> None:
        """Refuses what is not a range."""
        choice("log", self.log, (True, False))
        low, high = number("low", self.low), number("high", self.high)
        if not low < high:
            raise ValueError(f"Range: low {low}, high {high}; accepted: low < high")
        if self.log and not low > 0:
            raise ValueError(f"Range: low {self.low} with log=True; accepted: low > 0")

    def at(self, share: float) -> float:
        """The number at a share 0..1 of the way."""
        if self.log:
            return float(self.low * (self.high / self.low) ** share)
        return float(self.low + (self.high - self.low) * share)


Space = Mapping[str, "Sequence[float] | Range"]
"""Parameter -> the values to try, or the range to draw from."""


def grid_settings(space: Space) -> list[dict[str, float]]:
    """Every combination of the listed values, the last parameter varying fastest.

    Example:
        >>> grid_settings({"threshold": [0.1, 0.2], "ratio": [0.5]})
        [{'threshold': 0.1, 'ratio': 0.5}, {'threshold': 0.2, 'ratio': 0.5}]
    """
    check_space(space)
    for name, values in space.items():
        if isinstance(values, Range):
            raise ValueError(
                f"space[{name!r}]: {values}; accepted: a list of values with method 'grid'"
            )
    listed: list[Any] = list(space.values())
    return [dict(zip(space, point, strict=True)) for point in itertools.product(*listed)]


def random_settings(space: Space, count: int, key: Any = 0) -> list[dict[str, float]]:
    """``count`` different settings: listed values evenly at random, ranges in strata of equal size.

    Each range is cut into ``count`` equal parts and every part gets one draw (a Latin hypercube), so
    that few draws do not leave a part of it out. Asks for more than the listed values have give all
    combinations.

    Example:
        >>> settings = random_settings({"bonus_scale": Range(0.01, 1.0)}, 4)
        >>> [0.01 * 10 ** (j / 2) <= s["bonus_scale"] <= 0.01 * 10 ** ((j + 1) / 2)
        ...  for j, s in enumerate(sorted(settings, key=lambda s: s["bonus_scale"]))]
        [True, True, True, True]
    """
    check_space(space)
    count = whole("count", count, at_most=MOST_SEEDS, what="a whole number of settings")
    rng = generator(key)
    if not any(isinstance(values, Range) for values in space.values()):
        every = grid_settings(space)
        if len(every) <= count:
            return every
        return [every[j] for j in np.sort(rng.choice(len(every), count, replace=False))]
    columns: dict[str, list[float]] = {}
    for name, values in space.items():
        if isinstance(values, Range):
            shares = (rng.permutation(count) + rng.random(count)) / count
            columns[name] = [values.at(float(share)) for share in shares]
        else:
            columns[name] = [values[j] for j in rng.integers(0, len(values), count)]
    return [{name: columns[name][j] for name in space} for j in range(count)]


def check_space(space: Space) -> None:
    """An error unless the space names at least one parameter with values to try."""
    if not isinstance(space, Mapping) or not space:
        raise ValueError(f"space: {space!r}; accepted: a non-empty dictionary, parameter -> values")
    for name, values in space.items():
        listed = isinstance(values, list | tuple | np.ndarray) and len(values) > 0
        if not listed and not isinstance(values, Range):
            raise ValueError(
                f"space[{name!r}]: {values!r}; accepted: a non-empty list of values, or a Range"
            )
