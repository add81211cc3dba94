"""Curves of cumulative regret on the host, from what the block engine says of the arms it played.

The regret of a lane after episode t is that of all arms before the one that t falls in, plus t's share of that one. Sums
are carried in float64 and made arm after arm, so they are the same additions however blocks are cut into calls.
"""

from __future__ import annotations

import numpy as np


def extend(
    curve: np.ndarray,
    total: np.ndarray,
    points: np.ndarray,
    begin: np.ndarray,
    length: np.ndarray,
    regret: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The curves [L, W] at episodes ``points`` [W] and the totals [L], after the arms [n, L, B] of some blocks.

    Example:
        >>> arms = (np.array([[[0.0, 3.0]]]), np.array([[[3.0, 5.0]]]), np.array([[[0.0, 0.5]]]))
        >>> curve, total = extend(np.zeros((1, 3)), np.zeros(1), np.array([2, 4, 8]), *arms)
        >>> curve.tolist(), total.tolist()
        ([[0.0, 0.5, 2.5]], [2.5])
    """
    curve, total = curve.copy(), total.copy()
    ends = points.astype(np.float64)
    for lane in range(len(total)):
        start, size, cost = (x[:, lane].ravel() for x in (begin, length, regret))
        arms = np.flatnonzero(size > 0)
        if not arms.size:
            continue
        start, size, cost = start[arms], size[arms], cost[arms]
        before = np.cumsum(np.concatenate([total[lane : lane + 1], cost * size]))
        last = start[-1] + size[-1]
        inside = slice(*np.searchsorted(ends, [start[0], last], side="right"))
        arm = np.searchsorted(start, ends[inside], side="left") - 1
        curve[lane, inside] = before[arm] + cost[arm] * (ends[inside] - start[arm])
        total[lane] = before[-1]
    return curve, total
