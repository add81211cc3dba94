"""Writes the committed references from results: the one command behind `jaxbandit.reference`.

    jaxbandit run prophet --out results/prophet
    python -m jaxbandit.experiments.references results/prophet jaxbandit/results/data/prophet.nc
    jaxbandit run prophet --full --out results/full
    python -m jaxbandit.experiments.references results/full jaxbandit/results/data/prophet-full.nc

The instances are made again and must be those of the results.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from jaxbandit.experiment import Options, join, read_folder

from .prophet import NUM_EPISODES, sweeps

POINTS, POINTS_OF_FULL = 50, 20
"""Recorded episodes that are kept, few enough for a file below 1 MB; divisors of the experiment's."""


def write(results: Path, out: Path) -> Path:
    """The reference of the `prophet` experiment from the folder that ``jaxbandit run prophet`` left."""
    from jaxbandit.results import save
    from jaxbandit.results.references import make_reference
    from jaxbandit.sweeps.arguments import expand_instances

    datasets = read_folder(results)
    if not datasets:
        raise ValueError(f"results: {results} holds no .nc files; accepted: a folder of results")
    full = set(datasets) == {"I1", "I2"}
    both = join(*datasets.values())
    seeds = {label: part.sizes["seed"] for label, part in datasets.items()}
    options = Options(full=full, seeds=max(seeds.values()))
    plans = sweeps(options)
    instances = {
        name: mdp
        for plan in plans.values()
        for name, mdp in expand_instances(plan["instances"]).items()
    }
    both.attrs["config"] = _joined_configuration(
        [part.attrs["config"] for part in datasets.values()]
    )
    episodes = int(both["episode"].values[-1])
    size = (
        "the paper's size"
        if episodes >= NUM_EPISODES
        else f"smaller than the paper's {NUM_EPISODES:,}"
    )
    note = (
        f"T = {episodes:,} ({size}), {both.sizes['instance']} instances, "
        f"{' and '.join(f'{count} seeds ({label})' for label, count in seeds.items())}; regret in float32"
    )
    command = f"jaxbandit run prophet{' --full' if full else ''}"
    return save(
        make_reference(
            both, instances, points=POINTS_OF_FULL if full else POINTS, command=command, note=note
        ),
        out,
        overwrite=True,
    )


def _joined_configuration(configs: Sequence[str]) -> str:
    """The configuration of the first sweep with the instances of all."""
    import json

    read = [json.loads(config) for config in configs]
    instances = {name: about for config in read for name, about in config["instances"].items()}
    return json.dumps(read[0] | {"instances": instances})


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    print(write(Path(sys.argv[1]), Path(sys.argv[2])))
