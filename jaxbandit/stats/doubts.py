"""When an interval may cover less than it says, and the words for it.

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
DOUBTS = {
    "few": "few runs: covers less if skewed",
    "skewed": "skewed runs: covers less",
    "both": "few or skewed runs: may cover less",
}
"""What is said of an interval that may cover less than its level."""
DOUBTFUL = "intervals of few or skewed runs may cover less than they say"
"""The same in a line under a table."""


def line_of(doubts: Iterable[str]) -> str:
    """`DOUBTFUL` as a sentence with a space before it, if there is any doubt among these; else "".

    Example:
        >>> line_of(["", "few"]), line_of([""])
        (' Intervals of few or skewed runs may cover less than they say.', '')
    """
    return f" {DOUBTFUL.capitalize()}." if any(doubts) else ""


def doubt_of(values: np.ndarray, kind: str = "t") -> str:
    """Whether values [n] are too few, or too skewed, for an interval of this kind: "few", "skewed" or "".

    Example:
        >>> doubt_of(np.arange(3.0)), doubt_of(np.arange(32.0)), doubt_of(np.arange(32.0) ** 6)
        ('few', '', 'skewed')
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
