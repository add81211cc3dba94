"""The Numba loop of ExpRef: the learner's own schedule, and the regret of both engines."""

import numpy as np
import pytest
from peers_compared import LIMIT, PRACTICAL, engine_regret, z_score

import jaxbandit as jb
from jaxbandit.xla.compat import x64

pytest.importorskip("numba")

from jaxbandit.experiments.bench import peers


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("preset", ["theory", "practical"])
def test_schedule_is_the_learners(ordered, preset):
    from jaxbandit.learner import make_constants
    from jaxbandit.learners.expref import PRESETS

    name = "ordered-expref" if ordered else "expref"
    horizon, width, num_actions, num_episodes = 15, 3, 5, 2_000_000
    mdp = jb.make_instance(
        "prophet-uniform", horizon=horizon, capacity=width, num_values=num_actions
    )
    learner = jb.make_learner(name, preset=preset)
    problem = jb.Problem(horizon, width, num_actions, num_episodes, mdp.rank if ordered else None)
    with x64():
        theirs = make_constants(learner, problem, learner.params)
    mine = peers.schedule(peers.tables(mdp), num_episodes, ordered=ordered, **PRESETS[name][preset])
    phases = int((theirs.epsilons > 0).sum())
    np.testing.assert_array_equal(mine.episodes, theirs.episodes_per_arm[:phases])
    slack = theirs.epsilons[:phases, None, None] * theirs.thresholds[None, :, 1:]
    np.testing.assert_allclose(mine.slack, slack, rtol=1e-9)
    assert mine.uniform_share == pytest.approx(float(theirs.uniform_share))


@pytest.mark.parametrize("engine", ["episodes", "blocks"])
@pytest.mark.parametrize("ordered", [False, True])
def test_jaxbandit_expref_agrees(mdp, instance, ordered, engine):
    points = [2_000, 12_000]
    given = PRACTICAL | ({"exploration_scale": 0.8} if ordered else {})
    learner = jb.make_learner("ordered-expref" if ordered else "expref", **given)
    ours = engine_regret(engine, learner, mdp, 12_000, points, 64)
    plan = peers.schedule(instance, 12_000, ordered=ordered, **given)
    theirs = peers.expref(instance, 12_000, points, np.arange(1_000), plan)
    assert z_score(ours[:, 0], theirs[:, 0]) < LIMIT
    assert z_score(ours[:, 1], theirs[:, 1]) < LIMIT
