"""One episode: it follows the tables, and many of them have the mean that planning computes."""

import jax
import numpy as np
import pytest

import jaxbandit as jb

MDP = jb.make_instance("prophet-uniform", horizon=4, capacity=2, num_values=3)


def test_an_episode_follows_the_tables():
    _, policy = jb.optimal(MDP)
    for seed in range(20):
        episode = jb.trace(MDP, policy, jax.random.key(seed))
        level = int(MDP.start)
        for i in range(4):
            assert episode.levels[i] == level
            assert episode.actions[i] == policy[i, level]
            place = (i, level, int(episode.actions[i]), int(episode.outcomes[i]))
            assert MDP.prob[place] > 0
            assert episode.rewards[i] == pytest.approx(float(MDP.reward[place]))
            level = int(MDP.next_level[place])
            assert episode.next_levels[i] == level
        assert episode.total == pytest.approx(episode.rewards.sum())


@pytest.mark.parametrize("kind", ["actions", "probabilities"])
def test_the_mean_of_many_is_the_value_of_the_policy(kind):
    """400 episodes, totals in [0, 1]: by Hoeffding a miss of 0.11 has probability below 2e-4."""
    policy = np.ones((4, 3), np.int32)
    if kind == "probabilities":
        policy = np.asarray(jax.nn.softmax(jax.random.normal(jax.random.key(1), (4, 3, 3))))
    keys = jax.random.split(jax.random.key(7), 400)
    totals = [jb.trace(MDP, policy, key).total for key in keys]
    assert np.mean(totals) == pytest.approx(float(jb.evaluate(MDP, policy)), abs=0.11)


def test_the_table_names_what_is_offered_and_done():
    values = [[200.0, 500.0]] * 3
    mdp = jb.make_instance(
        "posted-pricing", values=values, probabilities=[[0.5, 0.5]] * 3, capacity=1
    )
    episode = jb.trace(jb.label(mdp, unit="$"), np.zeros((3, 2), np.int32), jax.random.key(0))
    lines = repr(episode).splitlines()
    assert lines[0].split() == [
        "stage",
        "capacity",
        "left",
        "offered",
        "action",
        "reward",
        "worth",
        "then",
    ]
    assert "price 200" in lines[1]
    assert "$200" in lines[1]
    assert lines[2].split()[3] == "-"  # nothing is left to sell
    assert lines[-1] == "total reward 0.4 (worth $200); the policy's mean is 0.4 ($200)"
    assert episode._repr_html_().count("<tr>") == 4


def test_wrong_policies_are_refused():
    with pytest.raises(ValueError, match="policy"):
        jb.trace(MDP, np.zeros((3, 3), np.int32), jax.random.key(0))
