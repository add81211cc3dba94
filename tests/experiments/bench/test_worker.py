"""The process in which one contender runs."""

import pytest

pytest.importorskip("numba")

from jaxbandit.experiments.bench import worker as bench_worker

CASES = [("jaxbandit", "blocks"), ("numpy", ""), ("jaxbandit", "episodes")]


@pytest.mark.parametrize(("who", "engine"), CASES)
def test_worker_measures(who, engine):
    learner = "ucbvi" if engine == "episodes" else "expref"
    reply = bench_worker.answer([3, 1, 2], who, learner, 2, 200, engine)
    assert reply["seconds"] > 0
    assert reply["peak_bytes"] > 1e6
    assert ("once_seconds" in reply) == (who == "jaxbandit")


@pytest.mark.parametrize(
    ("name", "width"), [("general", 17), ("riverswim", 6), ("frozen-lake", 64)]
)
def test_instances_with_many_states(name, width):
    import jaxbandit as jb

    actions = {"riverswim": 2}.get(name, 4)
    mdp = jb.validate(bench_worker.instance(bench_worker.Size(4, width, actions, name)))
    assert (mdp.horizon, mdp.width, mdp.num_actions) == (4, width, actions)
    tables = bench_worker.peer_tables(bench_worker.Size(4, width, actions, name))
    assert tables.gap.shape == (4, width, actions)
