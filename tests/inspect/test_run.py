"""A single run: a sweep of one lane, and exact where the answer is known."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.errors import LearnerError

MDP = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3)
FEW = jb.record.linear(4)


def test_a_fixed_policy_pays_its_regret_every_episode():
    policy = np.full((3, 3), 1, np.int32)
    policy[0] = 2  # nothing is taken at first
    run = jb.run(jb.make_learner("fixed", policy=policy), MDP, 1000, jax.random.key(0), FEW)
    per_episode = float(jb.regret(MDP, policy))
    assert run.episode.tolist() == [250, 500, 750, 1000]
    np.testing.assert_allclose(run.regret, per_episode * run.episode, rtol=1e-5)
    np.testing.assert_allclose(run.gap, per_episode, rtol=1e-5)
    assert (run.policies == policy).all()
    assert per_episode > 0.01
    assert run.policies.shape == (4, 3, 3)


def test_randomised_policies_and_rewards():
    """The mean of 4,000 totals in [0, 1] misses by 0.04 with probability below 6e-6 (Hoeffding)."""
    policy = np.full((3, 3, 3), 1 / 3, np.float32)
    run = jb.run(jb.make_learner("fixed", policy=policy), MDP, 4000, jax.random.key(3), FEW)
    value = float(jb.evaluate(MDP, policy))
    assert run.reward[-1] / 4000 == pytest.approx(value, abs=0.04)
    assert run.regret[-1] / 4000 == pytest.approx(float(jb.optimal(MDP)[0]) - value, rel=1e-4)
    assert run.dataset("I1")["policy"].dims[-1] == "action"


def test_the_oracle_loses_nothing():
    run = jb.run(jb.make_learner("oracle"), MDP, 100, jax.random.key(0), FEW)
    assert run.regret[-1] == 0
    assert repr(run) == "Run('oracle', 100 episodes, regret 0, 4 policies recorded)"


def test_constants_are_made_of_whole_numbers_and_handed_to_init():
    """As engines do: T is a Python int there, and here the policy comes from the constants by way of the state."""
    told = []

    def constants(problem, params):
        told.append(problem.num_episodes)
        return np.full((3, 3), 2, np.int32)

    learner = jb.Learner(
        init=lambda problem, constants, key: constants,
        act=lambda state, key, constants: state,
        update=lambda state, policy, feedback, constants: state,
        constants=constants,
    )
    run = jb.run(learner, MDP, 20, jax.random.key(0), FEW)
    assert set(told) == {20}
    assert isinstance(told[0], int)
    assert (run.policies == 2).all()


@pytest.mark.parametrize("name", ["ucbvi", "ordered-expref"])
def test_a_run_is_a_lane_of_a_sweep_bit_for_bit(name):
    learner = jb.make_learner(name, preset="practical")
    record = jb.record.linear(7)
    how = {"num_seeds": 3, "seed": 5, "engine": "episodes", "record": record, "progress": False}
    ds = jb.sweep(learner, {"other": MDP, "I1": MDP}, 300, **how)
    run = jb.run(learner, MDP, 300, jb.lane_key(5, "I1", 2), record)
    lane = ds.sel(instance="I1", seed=2).isel(learner=0)
    assert run.regret.tobytes() == lane["regret"].values.squeeze().tobytes()
    np.testing.assert_array_equal(run.episode, ds["episode"])
    if run.policies.ndim == 3:
        np.testing.assert_array_equal(run.policies[-1], lane["final_policy"].values.squeeze())


def test_one_dataset_that_plots_take():
    run = jb.run(jb.make_learner("uniform"), MDP, 50, jax.random.key(0), FEW)
    dataset = run.dataset("mine")
    assert jb.plot_regret(dataset).data["uniform"].n == 1
    assert run.policy_at(13).shape == (3, 3)
    with pytest.raises(ValueError, match="episode: 51; accepted: 1 to 50"):
        run.policy_at(51)


def test_mistakes():
    uniform, key = jb.make_learner("uniform"), jax.random.key(0)
    with pytest.raises(ValueError, match="num_episodes: 0; accepted"):
        jb.run(uniform, MDP, 0, key)
    with pytest.raises(ValueError, match="mdp: 2 stacked"):
        jb.run(uniform, jax.tree.map(lambda x: np.stack([x, x]), MDP), 10, key)
    with pytest.raises(TypeError, match="learner: str; accepted: a Learner"):
        jb.run("ucbvi", MDP, 10, key)
    with pytest.raises(ValueError, match="needs an ordered MDP"):
        jb.run(jb.make_learner("ordered-expref"), MDP._replace(rank=None), 10, key)


@pytest.mark.parametrize(
    ("policy", "saying"),
    [
        (np.full((3, 3), 5, np.int32), "action 5; accepted: 0..2"),
        (np.full((3, 3, 3), 1.0, np.float32), r"probabilities \[1.0, 1.0, 1.0\]; accepted: 3"),
        (np.full((3, 3, 3), np.nan, np.float32), r"probabilities \[nan, nan, nan\]; accepted: 3"),
    ],
)
def test_no_wrong_learner_gets_a_number(policy, saying):
    """Wrong from the 32nd episode on, inside a stretch."""
    good = np.zeros_like(policy) if policy.ndim == 2 else np.full_like(policy, 1 / 3)
    learner = jb.Learner(
        init=lambda problem, constants, key: np.int32(0),
        act=lambda state, key, constants: jax.numpy.where(state >= 31, policy, good),
        update=lambda state, policy, feedback, constants: state + 1,
        name="stranger",
    )
    assert jb.run(learner, MDP, 30, jax.random.key(0), FEW).regret[-1] >= 0
    saying = f"learner 'stranger', episode 32, stage 1, level 1: {saying}"
    with pytest.raises(LearnerError, match=saying):
        jb.run(learner, MDP, 100, jax.random.key(0), FEW)


def test_one_bit_is_a_coin_of_the_total_reward():
    """The sum of 2,000 coins is within 5 standard errors of the sum of rewards: false alarms 6e-7 a case."""
    learner = jb.Learner(
        init=lambda problem, constants, key: np.zeros(2, np.float32),
        act=lambda state, key, constants: jax.numpy.full((3, 3), 1, np.int32),
        update=lambda state, policy, seen, constants: (
            state + jax.numpy.stack([seen.total, seen.total**2])
        ),
        feedback="one-bit",
    )
    once = jb.run(learner, MDP, 2000, jax.random.key(0), FEW)
    coins, squares = np.asarray(once.state).ravel()
    assert coins == squares  # 0 and 1 only
    assert 0 < abs(coins - once.reward[-1]) < 5 * (2000 / 4) ** 0.5


def test_what_a_sweep_refuses_is_refused():
    learner = jb.make_learner("ucbvi")
    for wrong, saying in (
        (learner._replace(requires=("ranks",)), "requires: 'ranks'; accepted: rank"),
        (
            learner._replace(params={**learner.params, "bonus_scale": np.nan}),
            r"learners\['ucbvi'\].*bonus_scale",
        ),
        (learner._replace(init=lambda *_: "x"), "'ucbvi': init gives str; accepted: a tree"),
        (jb.make_learner("uniform")._replace(act=lambda *_: None), "act gives NoneType; accepted"),
    ):
        with pytest.raises(ValueError, match=saying):
            jb.run(wrong, MDP, 20, jax.random.key(0), FEW)
