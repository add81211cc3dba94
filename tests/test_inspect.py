"""One run is a lane of a sweep, one episode follows the tables, and hardness is that of brute force over all policies."""

import jax
import numpy as np
import pytest
from families import PARAMETERS, all_policies, tiny

import jaxbandit as jb
from jaxbandit.errors import LearnerError
from jaxbandit.inspect import largest_visitation

MDP = jb.make_instance("prophet-uniform", horizon=3, capacity=2, num_values=3)
KEY, FEW = jax.random.key(0), jb.record.linear(4)
SMALL = sorted({*PARAMETERS} - {"knapsack-random", "hard-ordered"})
"""At most six states with a choice."""


@pytest.mark.parametrize("kind", ["action", "level"])
def test_a_fixed_policy_pays_its_regret_every_episode(kind):
    """A randomised one, over actions, and a deterministic one, an action a level."""
    policy = np.full((3, 3, 3), 1 / 3, np.float32)
    if kind == "level":
        policy = np.array([[2] * 3, [1] * 3, [1] * 3], np.int32)  # nothing is taken at first
    run = jb.run(jb.make_learner("fixed", policy=policy), MDP, 1000, KEY, FEW)
    per_episode = float(jb.regret(MDP, policy))
    assert per_episode > 0.01
    assert run.episode.tolist() == [250, 500, 750, 1000]
    np.testing.assert_allclose(run.regret, per_episode * run.episode, rtol=1e-4)
    np.testing.assert_allclose(run.reward, float(jb.evaluate(MDP, policy)) * run.episode, rtol=1e-4)
    np.testing.assert_allclose(run.gap, per_episode, rtol=1e-5)
    assert (run.policies == policy).all()
    assert run.dataset("I1")["policy"].dims[-1] == kind


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
    run = jb.run(jb.make_learner("uniform"), MDP, 50, KEY, FEW)
    assert jb.plot_regret(run.dataset("mine")).data["uniform"].n == 1
    assert (run.policy_at(13) == run.policies[np.flatnonzero(run.episode >= 13)[0]]).all()
    for episode in (0, 51):
        with pytest.raises(ValueError, match=f"episode: {episode}; accepted: 1 to 50"):
            run.policy_at(episode)


WRONG = {"bonus_scale": np.nan}
UNIFORM, UCBVI = jb.make_learner("uniform"), jb.make_learner("ucbvi")
PAIR = jax.tree.map(lambda x: np.stack([x, x]), MDP)


@pytest.mark.parametrize(
    ("learner", "mdp", "num_episodes", "saying"),
    [
        (UNIFORM, MDP, 0, "num_episodes: 0; accepted"),
        (UNIFORM, PAIR, 10, "mdp: 2 stacked"),
        ("ucbvi", MDP, 10, "learner: str; accepted: a Learner"),
        (jb.make_learner("ordered-expref"), MDP._replace(rank=None), 10, "needs an ordered MDP"),
        (UCBVI._replace(requires=("ranks",)), MDP, 20, "requires: 'ranks'; accepted: rank"),
        (UCBVI._replace(params=UCBVI.params | WRONG), MDP, 20, r"learners\['ucbvi'\].*bonus_scale"),
        (UCBVI._replace(init=lambda *_: "x"), MDP, 20, "'ucbvi': init gives str; accepted: a tree"),
        (UNIFORM._replace(act=lambda *_: None), MDP, 20, "act gives NoneType; accepted"),
    ],
)
def test_what_a_sweep_refuses_is_refused(learner, mdp, num_episodes, saying):
    with pytest.raises((ValueError, TypeError), match=saying):
        jb.run(learner, mdp, num_episodes, KEY, FEW)


def test_no_wrong_learner_gets_a_number():
    """Wrong from the 32nd episode on, inside a stretch."""
    learner = jb.Learner(
        init=lambda problem, constants, key: np.int32(0),
        act=lambda state, key, constants: jax.numpy.where(
            state >= 31, np.full((3, 3), 5, np.int32), 0
        ),
        update=lambda state, policy, feedback, constants: state + 1,
        name="stranger",
    )
    run = jb.run(learner, MDP, 30, KEY, FEW)
    assert run.regret[-1] >= 0
    assert run.state == 30
    saying = "learner 'stranger', episode 32, stage 1, level 1: action 5; accepted: 0..2"
    with pytest.raises(LearnerError, match=saying):
        jb.run(learner, MDP, 100, KEY, FEW)


def test_an_episode_follows_the_tables():
    _, policy = jb.optimal(MDP)
    for seed in range(20):
        episode = jb.trace(MDP, policy, jax.random.key(seed))
        level = int(MDP.start)
        for i in range(3):
            assert episode.levels[i] == level
            assert episode.actions[i] == policy[i, level]
            place = (i, level, int(episode.actions[i]), int(episode.outcomes[i]))
            assert MDP.prob[place] > 0
            assert episode.rewards[i] == pytest.approx(float(MDP.reward[place]))
            level = int(MDP.next_level[place])
            assert episode.next_levels[i] == level
        assert episode.total == pytest.approx(episode.rewards.sum())


def test_the_mean_of_many_episodes_is_the_value_of_the_policy():
    """400 episodes, totals in [0, 1]: by Hoeffding a miss of 0.11 has probability below 2e-4."""
    policy = np.asarray(jax.nn.softmax(jax.random.normal(jax.random.key(1), (3, 3, 3))))
    keys = jax.random.split(jax.random.key(7), 400)
    totals = [jb.trace(MDP, policy, key).total for key in keys]
    assert np.mean(totals) == pytest.approx(float(jb.evaluate(MDP, policy)), abs=0.11)


def test_the_table_names_what_is_offered_and_done():
    given = {"values": [[200.0, 500.0]] * 3, "probabilities": [[0.5, 0.5]] * 3, "capacity": 1}
    mdp = jb.label(jb.make_instance("posted-pricing", **given), unit="$")
    episode = jb.trace(mdp, np.zeros((3, 2), np.int32), KEY)
    lines = repr(episode).splitlines()
    assert " ".join(lines[0].split()) == "stage capacity left offered action reward worth then"
    assert "price 200" in lines[1]
    assert "$200" in lines[1]
    assert lines[2].split()[3] == "-"  # nothing is left to sell
    assert lines[-1] == "total reward 0.4 (worth $200); the policy's mean is 0.4 ($200)"
    assert episode._repr_html_().count("<tr>") == 4
    with pytest.raises(ValueError, match="policy"):
        jb.trace(mdp, np.zeros((2, 3), np.int32), KEY)


@pytest.mark.parametrize("name", SMALL)
def test_visits_counts_and_gaps_by_brute_force(name):
    mdp = tiny(name)
    found = jb.hardness(mdp)
    visits = jax.vmap(lambda policy: jb.visitation(mdp, policy))(all_policies(mdp))
    brute = np.max(visits, axis=0)[:, 1:]
    np.testing.assert_allclose(np.asarray(largest_visitation(mdp))[:, 1:], brute, atol=1e-6)
    reachable = brute > 0
    assert found.num_states == reachable.sum()
    assert found.num_policies == mdp.num_actions ** int(reachable.sum())
    lost = np.asarray(jb.gaps(mdp), np.float64)[:, 1:][reachable]
    assert found.smallest_gap == pytest.approx(lost[lost > 1e-6].min(), rel=1e-3)
    assert found.inverse_gaps == pytest.approx((1 / lost[lost > 1e-6]).sum(), rel=1e-3)
    assert found.optimal_value == pytest.approx(float(jb.optimal(mdp)[0]), abs=1e-6)


@pytest.mark.parametrize("name", PARAMETERS)
def test_ratios_obey_the_lemmas(name):
    mdp = tiny(name)
    found = jb.hardness(mdp)
    assert 1 - 1e-9 <= found.visitation_ratio <= found.visitation_bound * (1 + 1e-9)
    assert np.isnan(found.ordered_visitation_ratio) == (mdp.rank is None)
    assert not found.ordered_visitation_ratio < 1 - 1e-9
    assert 1 <= found.num_optimal_policies <= found.num_policies


def test_policies_are_counted_exactly():
    # M^theta: the H actions at level 1 must follow theta; those of level 2, reached by a mistake, are free.
    hard = jb.make_instance("hard-general", theta=[1, 0, 1, 1], num_actions=2, gap=0.1)
    found = jb.hardness(hard)
    assert found.num_policies == 2**found.num_states
    assert found.num_optimal_policies == 2 ** (found.num_states - 4)
    assert "num_policies" in str(found)
    found = jb.hardness(jb.make_instance("prophet-uniform", horizon=7, capacity=4, num_values=9))
    assert found.num_states == 7 * 4 - 6  # level k - j needs j stages before it
    assert found.num_policies == 9**22 > 2**64
    with pytest.raises(ValueError, match="mdp: 2 stacked; accepted: a single MDP"):
        jb.hardness(PAIR)
