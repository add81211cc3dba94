"""How experiments choose among settings: the smallest worst ratio to the best, and nothing linear.

A setting is judged on several cells (a family of instances at one T each), as `jaxbandit.tune` does
with score "worst-ratio", in one round of its race (`jaxbandit.studies.Tuner`): a setting that is best in
one place and poor elsewhere loses against one that is good everywhere. What the race does not know is
growth: a setting whose regret still grows linearly at the end is refused, if any other is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jaxbandit.studies import Tuner

if TYPE_CHECKING:
    from xarray import Dataset

LINEAR = 1.9
"""Growth of the regret from T/2 to T above which it counts as linear (exactly linear is 2)."""
LEAST = 1e-9
"""A regret of 0 is possible."""


class Cell(NamedTuple):
    """Regrets of S settings on the instances of a family at one T, paired."""

    final: np.ndarray
    """float [S, instances, seeds]."""
    half: np.ndarray | None
    """The same at T/2; None if growth is not looked at."""


class Judged(NamedTuple):
    """Settings on some cells: S settings, C cells."""

    race: Tuner
    """The race, after one round on all instances of all cells."""
    growths: np.ndarray
    """float [S, C]: mean final regret over that at T/2; nan on cells where growth is not looked at."""

    @property
    def ratios(self) -> np.ndarray:
        """float [S, C]: mean final regret over that of the best setting of the cell."""
        return self.race.ratios

    @property
    def worst(self) -> np.ndarray:
        """float [S]: the largest ratio of each setting."""
        return np.asarray(self.ratios.max(axis=1))

    @property
    def linear(self) -> np.ndarray:
        """bool [S]: whether the regret is still linear on some cell."""
        return linear(self.growths)

    @property
    def choice(self) -> int:
        """The setting of smallest worst ratio that is not linear; the first of equals."""
        return self.race.candidates.index(self.race.best)

    @property
    def tied(self) -> int:
        """How many settings that are not linear cannot be told from the chosen one, itself included."""
        return len(self.race.tied)

    def is_tied(self, index: int) -> bool:
        """Whether a setting is one of those."""
        return self.race.candidates[index].dropped is None


def linear(growths: np.ndarray) -> np.ndarray:
    """Whether settings [S, C] grow too fast on some cell; nan is no growth."""
    return np.asarray((growths > LINEAR).any(axis=1))


def judge(settings: Sequence[Mapping[str, float]], cells: Sequence[Cell]) -> Judged:
    """The settings in a race on all cells.

    Example:
        >>> cells = [Cell(np.array([[[a, a]], [[b, b]]]), None) for a, b in [(1.0, 2.0), (9.0, 3.0)]]
        >>> found = judge([{"threshold": 0.1}, {"threshold": 0.2}], cells)
        >>> found.worst.tolist(), found.choice
        ([3.0, 2.0], 1)
    """
    growths = np.full((len(settings), len(cells)), np.nan)
    for column, cell in enumerate(cells):
        if cell.half is not None:
            ended, halved = cell.final.mean(axis=(1, 2)), cell.half.mean(axis=(1, 2))
            growths[:, column] = ended / np.maximum(halved, LEAST)
    refused = linear(growths) & ~linear(growths).all()
    finals = np.concatenate([cell.final for cell in cells], axis=1)
    ends = np.cumsum([cell.final.shape[1] for cell in cells])
    race = Tuner(
        finals.shape[1],
        finals.size,
        first_seeds=finals.shape[2],
        score="worst-ratio",
        tasks=[
            range(end - cell.final.shape[1], end) for end, cell in zip(ends, cells, strict=True)
        ],
    )
    race.add(settings)
    asked = race.ask()
    assert asked is not None  # the budget is what was run
    race.tell(asked, finals, np.flatnonzero(refused))
    return Judged(race, growths)


def cell_of(ds: Dataset, learner: str, names: Sequence[str], count: int, grows: bool) -> Cell:
    """The first ``count`` settings of a learner on the instances of a family."""
    runs = ds["regret"].sel(learner=learner, instance=names)
    curves = runs.transpose("parameter", "instance", "seed", "episode").values[:count]
    middle = curves[..., curves.shape[-1] // 2 - 1]
    return Cell(curves[..., -1], middle if grows else None)
