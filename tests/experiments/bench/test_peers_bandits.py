"""The Numba loops on K arms have the law of jaxbandit's learners."""

import numpy as np
import pytest

import jaxbandit as jb

pytest.importorskip("numba")
from jaxbandit.experiments.bench import peers_bandits, worker

SEEDS, EPISODES = 64, 2000


@pytest.mark.parametrize("learner", ["ucb1", "thompson"])
def test_final_regret_has_the_same_mean(learner):
    """Four standard errors of the difference: false alarms of 1 in 16,000."""
    size = worker.Size(1, 1, 9, "bandit")
    tables = worker.peer_tables(size)
    theirs = peers_bandits.bandit(learner, tables, EPISODES, [EPISODES], np.arange(SEEDS))[:, 0]
    made, mdp = jb.make_learner(learner), worker.instance(size)
    ds = jb.sweep(made, mdp, EPISODES, num_seeds=SEEDS, progress=False)
    ours = ds["regret"].values[0, 0, :, -1].ravel()
    error = np.sqrt((ours.var(ddof=1) + theirs.var(ddof=1)) / SEEDS)
    assert abs(ours.mean() - theirs.mean()) < 4 * error
