"""Results of experiments that were never run: of the right shape, with known levels."""

import zlib

import numpy as np
import xarray as xr

from jaxbandit.experiment import Options, load_experiment
from jaxbandit.sweeps.arguments import expand_instances, expand_learners

POINTS = 12
LEVELS = {"ExpRef": 3.0, "OrderedExpRef": 2.0, "UCB-VI": 1.0, "prophet bandit": 2.0}


def make_up(arguments, levels=LEVELS, seconds=lambda learner, capacity: 1.0, number=0):
    """A Dataset as `jaxbandit.sweep` would return; regret is level x (a factor of the instance) x
    sqrt(t)."""
    grids, mdps = expand_learners(arguments["learners"]), expand_instances(arguments["instances"])
    total, seeds = arguments["num_episodes"], arguments["num_seeds"]
    episodes = np.linspace(total / POINTS, total, POINTS).astype(np.int64)
    points = max(grid.size for grid in grids.values())
    rng = np.random.default_rng(number)
    regret = np.full((len(grids), len(mdps), points, seeds, POINTS), np.nan)
    for row, (learner, grid) in enumerate(grids.items()):
        for column, name in enumerate(mdps):
            factor = 0.9 + 0.2 * np.random.default_rng(zlib.crc32(name.encode())).random()
            for point in range(grid.size):
                noise = 1 + 0.01 * rng.standard_normal((seeds, 1))
                short = learner.split(",")[0].split(" (")[0].removeprefix("shared ")
                level = levels.get(learner, levels[short]) * (1 + abs(point - grid.size // 2))
                regret[row, column, point] = level * factor * noise * np.sqrt(episodes)
    coords = {
        "learner": list(grids),
        "instance": list(mdps),
        "seed": np.arange(seeds),
        "episode": episodes,
        "family": ("instance", [name.split("/")[0] for name in mdps]),
    }
    dims = ["learner", "instance", "parameter", "seed", "episode"]
    if points > 1:
        for name in dict.fromkeys(name for grid in grids.values() for name in grid.names):
            column = np.full((len(grids), points), np.nan)
            for row, grid in enumerate(grids.values()):
                if name in grid.learner.params:
                    column[row, : grid.size] = np.asarray(grid.learner.params[name], np.float64)
            coords[name] = (("learner", "parameter"), column)
    else:
        regret, dims = regret[:, :, 0], [dim for dim in dims if dim != "parameter"]
    widths = [mdp.width for mdp in mdps.values()]
    spent = [
        [seconds(learner, width) * rng.uniform(1, 1.01) for width in widths] for learner in grids
    ]
    cells = ("learner", "instance")
    variables = {
        "regret": (dims, regret),
        "run_seconds": (cells, spent),
        "compile_seconds": (cells, spent),
    }
    return xr.Dataset(variables, coords)


def make_up_all(experiment, options, **how):
    """`make_up` of every sweep of an experiment, in order."""
    datasets = {}
    for number, (label, arguments) in enumerate(experiment.sweeps(options).items()):
        decided = arguments(datasets) if callable(arguments) else arguments
        datasets[label] = make_up(decided, number=number, **how)
    return datasets


def draw_everything(name):
    """Made-up results of an experiment go through all its figures and tables."""
    experiment, options = load_experiment(name), Options(seeds=3)
    datasets = make_up_all(experiment, options)
    figures = experiment.figures(datasets, options)
    assert figures
    for drawn in figures.values():
        drawn.figure.draw_without_rendering()
    if experiment.tables is not None:
        assert all(text for text in experiment.tables(datasets, options).values())
