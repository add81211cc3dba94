"""Who runs what: tiles under way stay with their state, finished lanes are run by nobody."""

import jaxbandit as jb
from jaxbandit.sweeps.shards import (
    CheckpointState,
    assign,
    begun_episodes,
    checkpoint_state,
    exchange,
)

MDP = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)


def plan():
    return jb.plan({"U": jb.make_learner("uniform")}, {"I": MDP}, 10, 6, measure_seconds=0)


def header(seeds, **more):
    return {"name": str(seeds), "lanes": [["U", "I", 0, seed] for seed in seeds], **more}


def test_without_a_checkpoint_everything_is_new():
    held = checkpoint_state(None)
    assert (held.results, held.finished, held.carries) == ([], [[]], [[]])
    tiles, mine = assign(list(plan().groups), held, range(6))
    assert tuple(tiles) == plan().tiles
    assert mine == tiles
    assert exchange([]) == []


def test_what_is_finished_or_under_way():
    under_way = header([2, 3], episodes=4)
    held = CheckpointState([], [[header([0, 1])]], [[under_way]])
    tiles, mine = assign(list(plan().groups), held, range(6))
    assert [[seed for *_, seed in tile.lanes] for tile in tiles] == [[2, 3], [4, 5]]
    assert begun_episodes(held, mine) == 8
    fewer, _ = assign(list(plan().groups), held, range(3))
    assert [[seed for *_, seed in tile.lanes] for tile in fewer] == [[2]]
