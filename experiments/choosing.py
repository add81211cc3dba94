"""How experiments choose among settings: the smallest worst ratio to the best, and nothing linear.

A setting is judged on several cells (a family of instances at one T each). Its ratio on a cell is its
mean final regret over that of the best setting there, and what counts is the largest of its ratios: a
setting that is best in one place and poor elsewhere loses against one that is good everywhere. A
setting whose regret still grows linearly at the end is refused, if any other is not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LINEAR = 1.9
"""Growth of the regret from T/2 to T above which it counts as linear (exactly linear is 2)."""


class Judged(NamedTuple):
    """Settings on some cells: S settings, C cells."""

    ratios: np.ndarray
    """float [S, C]: final regret over that of the best setting of the cell."""
    growths: np.ndarray
    """float [S, C]: final regret over that at T/2; nan on cells where growth is not looked at."""

    @property
    def worst(self) -> np.ndarray:
        """float [S]: the largest ratio of each setting."""
        return np.asarray(self.ratios.max(axis=1))

    @property
    def linear(self) -> np.ndarray:
        """bool [S]: whether the regret is still linear on some cell."""
        return np.asarray((self.growths > LINEAR).any(axis=1))

    @property
    def choice(self) -> int:
        """The setting of smallest worst ratio that is not linear; the first of equals."""
        refused = self.linear & ~self.linear.all()
        return int(np.argmin(np.where(refused, np.inf, self.worst)))


def judge(final: np.ndarray, half: np.ndarray) -> Judged:
    """Mean regrets [S, C] at T and at T/2 (nan where growth is not looked at) as ratios and growths.

    Example:
        >>> judged = judge(np.array([[1.0, 9.0], [2.0, 3.0]]), np.array([[0.6, 5.0], [1.2, 2.0]]))
        >>> judged.worst.tolist(), judged.choice
        ([3.0, 2.0], 1)
    """
    least = 1e-9  # a regret of 0 is possible, and then every ratio to it is large
    ratios = np.maximum(final, least) / np.maximum(final.min(axis=0), least)
    return Judged(ratios, final / np.maximum(half, least))
