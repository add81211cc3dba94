"""When an interval may cover less than its level.

Student-t is right for runs that are not skewed. Regret often is: a few runs settle on a suboptimal policy, and decide the
mean. With many runs that shows in them; with few it mostly does not, because those that miss the mean miss the large values.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from jaxbandit.stats.bootstrap import FEW

FEW_TO_JUDGE = 30
"""With fewer replicates, skewed ones look even too often for silence: of 8 exponential runs (12, 24) 49 % (40, 25)
have a sample skewness below 1, and where they do "t" covers 87 % (88, 89)."""
MUCH_SKEW = 1.0
"""Sample skewness from which on Student-t loses more than a percent or two (exponential data: 2). At 32 runs 82 % of
exponential samples are beyond it, 96 % of lognormal ones and 2 % of normal ones."""
WARNINGS = {
    "few": "few runs: covers less if skewed",
    "skewed": "skewed runs: covers less",
    "both": "few or skewed runs: may cover less",
}
"""Code of a warning -> its text."""
MAY_COVER_LESS = "intervals of few or skewed runs may cover less than they say"
"""The same for a line under a table."""


def coverage_warning(values: np.ndarray, kind: str = "t") -> str:
    """Whether values [n] are too few, or too skewed, for an interval of this kind: "few", "skewed" or "".

    Example:
        >>> [coverage_warning(x) for x in (np.arange(3.0), np.arange(32.0), np.arange(32.0) ** 6)]
        ['few', '', 'skewed']
    """
    count = len(values)
    if count < FEW:
        return "few"
    if kind == "simultaneous":  # the larger of two bootstrap quantiles: skewed runs are covered
        return ""
    last = values - values.mean()
    spread = np.mean(last**2) ** 1.5
    skew = np.mean(last**3) / spread if spread > 0 else 0.0
    if abs(skew) * np.sqrt(count * (count - 1)) / (count - 2) > MUCH_SKEW:
        return "skewed"
    return "few" if count < FEW_TO_JUDGE else ""


def joint_warning(warnings: Iterable[str]) -> str:
    """One code for several intervals: theirs if they agree, else "both".

    Example:
        >>> joint_warning(["", "few"]), joint_warning(["skewed", "few"]), joint_warning([])
        ('few', 'both', '')
    """
    found = set(warnings) - {""}
    return "both" if len(found) > 1 else "".join(found)


def warning_line(warnings: Iterable[str]) -> str:
    """`MAY_COVER_LESS` as a sentence after a space, if there is any warning among these; else "".

    Example:
        >>> warning_line(["", "few"]), warning_line([""])
        (' Intervals of few or skewed runs may cover less than they say.', '')
    """
    return f" {MAY_COVER_LESS.capitalize()}." if any(warnings) else ""
