"""Hooks: functions for ``jb.sweep(..., on_chunk=...)``, called on the host between chunks.

A hook gets one argument, ``progress``, with ``progress.episodes`` (episodes done, over all runs),
``progress.total`` (of how many) and ``progress.dataset()`` (the results so far: what is not there yet is
nan). What it raises stops the sweep; checkpoints stay. A hook of one's own is a function:

    def show(progress):
        print(f"{progress.episodes / progress.total:.0%}")

Neither Weights & Biases nor TensorBoard is needed to import this: the run or writer is the caller's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jaxbandit.checks import accept
from jaxbandit.plotting.curves import plot_regret
from jaxbandit.stats.replication import (
    band_of_regrets,
    curve_names,
    families,
    read_runs,
    replicates,
)

EACH = ("band", "seed")


def to_wandb(run: Any, each: str = "band") -> Callable[[Any], None]:
    """Logs new points of all regret curves to a Weights & Biases run, against "episode".

    Args:
        run: what ``wandb.init()`` returns.
        each: "band" (mean, low and high over replicates) or "seed" (every run).

    Example:
        >>> class Run:                                        # wandb.init(project="regret")
        ...     def log(self, numbers): print(sorted(numbers))
        >>> hook = to_wandb(Run())                            # jb.sweep(..., on_chunk=hook)
    """
    fresh = _fresh_points(each)

    def hook(progress: Any) -> None:
        together: dict[int, dict[str, float]] = {}
        for tag, value, episode in fresh(progress.dataset()):
            together.setdefault(episode, {})[tag] = value
        for episode, numbers in sorted(together.items()):
            run.log({"episode": episode, **numbers})

    return hook


def to_tensorboard(writer: Any, each: str = "band") -> Callable[[Any], None]:
    """Writes new points of all regret curves to a TensorBoard writer, the episode as step.

    Args:
        writer: ``tensorboard.summary.Writer(folder)``, or PyTorch's ``SummaryWriter``.
        each: as in `to_wandb`.

    Example:
        >>> class Writer:                                     # tensorboard.summary.Writer("logs")
        ...     def add_scalar(self, tag, value, step): print(tag, step)
        >>> hook = to_tensorboard(Writer())                   # jb.sweep(..., on_chunk=hook)
    """
    fresh = _fresh_points(each)

    def hook(progress: Any) -> None:
        for point in fresh(progress.dataset()):
            writer.add_scalar(*point)

    return hook


def live_plot(show: Callable[[Any], None] | None = None, **look: Any) -> Callable[[Any], None]:
    """Draws the regret so far between chunks, in place, in a notebook.

    Args:
        show: what to do with the `Drawn`; by default the notebook's picture is replaced.
        look: arguments of `jaxbandit.plot_regret`.

    Example:
        >>> hook = live_plot(scale="loglog")                  # jb.sweep(..., on_chunk=hook)
    """
    shown = _in_place() if show is None else show

    def hook(progress: Any) -> None:
        dataset = progress.dataset()
        there = np.isfinite(dataset["regret"]).any(
            [d for d in dataset["regret"].dims if d != "episode"]
        )
        if bool(there.any()):
            shown(plot_regret(dataset.isel(episode=np.flatnonzero(there.values)), **look))

    return hook


def _in_place() -> Callable[[Any], None]:
    """Shows a figure below the progress bar, and every later one in its place."""
    place: list[Any] = []

    def show(drawn: Any) -> None:
        from IPython.display import display

        if place:
            place[0].update(drawn)
        else:
            place.append(display(drawn, display_id=True))

    return show


def _fresh_points(each: str) -> Callable[[Any], Iterator[tuple[str, float, int]]]:
    """The points of a Dataset that earlier ones did not have: a tag such as "I1/UCB-VI/mean", value and episode."""
    accept("each", each, EACH)
    seen: dict[str, int] = {}

    def fresh(dataset: Any) -> Iterator[tuple[str, float, int]]:
        episodes = dataset["episode"].values
        for prefix, rows in _curves(dataset, each):
            complete = np.isfinite(next(iter(rows.values())))
            first, count = seen.get(prefix, 0), int(np.append(complete, False).argmin())
            for j, (name, values) in itertools.product(range(first, count), rows.items()):
                if np.isfinite(values[j]):
                    yield f"{prefix}/{name}", float(values[j]), int(episodes[j])
            seen[prefix] = max(first, count)

    return fresh


def _curves(dataset: Any, each: str) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Name -> curves [points]; a band is there once all runs that have begun reached a point."""
    every = itertools.product(families(dataset).items(), curve_names(dataset))
    for (family, names), (label, learner, parameter) in every:
        if each == "band":
            curves = replicates(dataset, learner, family=family, parameter=parameter)
            if len(curves):
                b = band_of_regrets(curves)
                yield f"{family}/{label}", {"mean": b.center, "low": b.low, "high": b.high}
        else:
            runs = read_runs(dataset, learner, names, parameter).values
            lanes = itertools.product(names, dataset["seed"].values)
            for (instance, seed), run in zip(lanes, np.concatenate(runs), strict=True):
                yield f"{instance}/{label}/seed {int(seed)}", {"regret": run}
