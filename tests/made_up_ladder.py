"""Results of the feedback ladder that were never run: a regret of known level and power for every setting."""

import numpy as np
import xarray as xr

from jaxbandit.sweeps.arguments import expand_instances, expand_learners

LEVELS = {"uniform": 100.0, "oracle": 0.0}


def make_up_ladder(arguments, power=0.5):
    """Regret level * (1 + distance of the setting from the third) * t^power with 1 % noise."""
    grids, mdps = expand_learners(arguments["learners"]), expand_instances(arguments["instances"])
    episodes = np.linspace(0, arguments["num_episodes"], 21)[1:].astype(np.int64)
    shape = (len(grids), len(mdps), 5, arguments["num_seeds"], 20)
    regret = np.full(shape, np.nan)
    random = np.random.default_rng(0)
    for row, (label, grid) in enumerate(grids.items()):
        for point in range(grid.size):
            level = LEVELS.get(label, 1.0 + row) * (1 + abs(point - min(2, grid.size - 1)))
            noise = 1 + 0.01 * random.standard_normal((len(mdps), shape[3], 1))
            regret[row, :, point] = level * noise * episodes**power
    dims = ["learner", "instance", "parameter", "seed", "episode"]
    if all(grid.size == 1 for grid in grids.values()):
        regret = regret[:, :, 0]
        dims.remove("parameter")
    return xr.Dataset(
        {
            "regret": (dims, regret),
            "run_seconds": (("learner", "instance"), np.ones(shape[:2])),
        },
        {
            "learner": list(grids),
            "instance": list(mdps),
            "seed": np.arange(shape[3]),
            "episode": episodes,
            "family": ("instance", [name.split("/")[0] for name in mdps]),
        },
    )


def make_up_ladder_all(plans):
    """Results of all sweeps; those that depend on others are asked for their arguments."""
    found = {}
    for name, arguments in plans.items():
        found[name] = make_up_ladder(arguments(found) if callable(arguments) else arguments)
    return found
