"""What a race minimises: the mean regret, or the worst ratio to the best over several tasks.

A task is a set of columns (an instance at one T each) whose mean regret counts once: a family of
instances at one T, say. With M_cj for the mean regret of candidate c on task j, the **worst ratio** is

    S_c = max_j  M_cj / min_i M_ij,

so that a candidate that is best in one place and poor elsewhere loses against one that is good
everywhere, and tasks of large regret count no more than others. The replicates of a task are the seeds
of its one instance, or its instances if it has several; candidates are paired in them.

A candidate c is *clearly* worse than the one of smallest worst ratio, b, if a lower bound on some
M_cj / M_ij is above the largest of the upper bounds on b's ratios. Bounds on a ratio of paired means
are Fieller's: the numbers R at which Student's t-test does not tell M_cj from R M_ij.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MEAN, WORST_RATIO = "mean", "worst-ratio"
SCORES = (MEAN, WORST_RATIO)
LEAST = 1e-9
"""A regret of 0 is possible, and then every ratio to it is large."""

Tasks = Sequence[Sequence[int]]
"""Each task's columns."""


def replicates_of(runs: np.ndarray, tasks: Tasks) -> list[np.ndarray]:
    """[candidates, n] of each task, from runs [candidates, columns, seeds].

    Example:
        >>> runs = np.arange(6.0).reshape(1, 3, 2)
        >>> [task.tolist() for task in replicates_of(runs, [[0], [1, 2]])]
        [[[0.0, 1.0]], [[2.5, 4.5]]]
    """
    return [
        runs[:, columns[0]] if len(columns) == 1 else runs[:, list(columns)].mean(-1)
        for columns in tasks
    ]


def ratios_to_best(means: np.ndarray) -> np.ndarray:
    """Mean regrets [candidates, tasks] over that of the best candidate of each task.

    Example:
        >>> ratios_to_best(np.array([[1.0, 9.0], [2.0, 3.0]])).tolist()
        [[1.0, 3.0], [2.0, 1.0]]
    """
    return np.maximum(means, LEAST) / np.maximum(means.min(axis=0), LEAST)


def ratio_bounds(ours: np.ndarray, theirs: np.ndarray, tail: float, upper: bool) -> np.ndarray:
    """One-sided bounds [C, D] on the ratios of means of paired replicates [C, n] and [D, n].

    Each is wrong with probability ``tail``. Where the mean below the line cannot be told from 0 they
    are 0 and infinity.

    Example:
        >>> one, two = np.array([[2.0, 4.2, 6.1]]), np.array([[1.0, 2.0, 3.0]])
        >>> low, high = (float(ratio_bounds(one, two, 0.05, upper)[0, 0]) for upper in (False, True))
        >>> 1.9 < low < one.mean() / two.mean() < high < 2.2
        True
    """
    from scipy import stats

    n = ours.shape[1]
    factor = float(stats.t.isf(tail, n - 1)) ** 2 / (n * (n - 1))
    mean, below = ours.mean(axis=1), theirs.mean(axis=1)
    one, two = ours - mean[:, None], theirs - below[:, None]
    # The bounds are the roots of a R^2 - 2 b R + c.
    a = (below**2 - factor * (two**2).sum(axis=1))[None, :]
    b = mean[:, None] * below[None, :] - factor * one @ two.T
    c = (mean**2 - factor * (one**2).sum(axis=1))[:, None]
    known = a > 0
    root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
    sign = 1 if upper else -1
    return np.where(known, (b + sign * root) / np.where(known, a, 1.0), np.inf if upper else 0.0)


def clearly_above(
    runs: Sequence[np.ndarray], leader: int, tasks: Tasks, alpha: float, rivals: int
) -> np.ndarray:
    """Which candidates have a worst ratio above the leader's; runs are [columns, seeds] of each.

    A candidate that left early is compared on the seeds that it has seen. The truly best is among the
    answer with probability at most ``alpha``: half of it is shared by the lower bounds on its ratios,
    one for each rival and task, and half by the candidates that could lead, as the upper bounds of one
    fail together only where its own largest ratio is missed.
    """
    lengths = np.array([each.shape[1] for each in runs])
    count = len(runs)
    low, high = np.zeros(count), np.zeros(count)
    tails = alpha / 2 / (max(1, rivals) * len(tasks)), alpha / 2 / (rivals + 1)
    for length in np.unique(lengths):
        long = np.flatnonzero(lengths >= length)
        against = np.flatnonzero(lengths[long] == length)
        values = np.stack([runs[j][:, :length] for j in long.tolist()])
        for task in replicates_of(values, tasks):
            for bound, tail, upper in zip((low, high), tails, (False, True), strict=True):
                found = ratio_bounds(task, task[against], tail, upper).max(axis=1)
                bound[long] = np.maximum(bound[long], found)
    return (low > high[leader]) & (np.arange(count) != leader)
