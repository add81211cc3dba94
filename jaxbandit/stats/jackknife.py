"""The jackknife: the interval of a statistic from its values with one replicate left out each."""

from __future__ import annotations

import numpy as np

from jaxbandit.types import Array


def half_width(left_out: Array, level: float) -> float:
    """Half the width of the Student-t interval, n - 1 degrees of freedom; nan for fewer than two.

    Args:
        left_out: [n], the statistic without replicate 1, 2, ..., n.
        level: confidence level.

    Example:
        >>> runs = np.asarray([1.0, 2.0, 4.0, 5.0])
        >>> means = (runs.sum() - runs) / 3                # of a mean it is the t-interval
        >>> round(half_width(means, 0.95), 3), round(3.1824 * float(runs.std(ddof=1)) / 2, 3)
        (2.905, 2.905)
    """
    from scipy import stats

    values = np.asarray(left_out, np.float64)
    count = values.size
    if count < 2:
        return float("nan")
    error = np.sqrt((count - 1) / count * np.sum((values - values.mean()) ** 2))
    return float(stats.t.ppf((1 + level) / 2, count - 1) * error)
