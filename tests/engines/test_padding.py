"""Padded MDPs: stages and levels that were added change no number, in any company, and show nowhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lanes_by_hand import stack
from padded_lanes import LEARNERS, OWN, ROOM, instance, run, small_gpu

import jaxbandit as jb
from jaxbandit.engines import make_runner
from jaxbandit.engines.padding import alike, cut_policies, filled, grown, joined, room_for, shrunk
from jaxbandit.errors import LearnerError
from jaxbandit.xla.platforms import CPU, GPU


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    return small_gpu(monkeypatch)


def test_a_grown_mdp_is_an_mdp_of_the_same_value_and_shrinks_to_itself():
    for own in OWN:
        mdp = jax.tree.map(np.asarray, instance(own))
        large = grown(mdp, ROOM)
        assert (large.horizon, large.width) == ROOM
        jb.validate(large)
        assert float(jb.optimal(large)[0]) == pytest.approx(float(jb.optimal(mdp)[0]), abs=1e-6)
        for back in (shrunk(large, own), jax.tree.map(lambda x: x[0], shrunk(stack(large), own))):
            jax.tree.map(np.testing.assert_array_equal, back, mdp)


def test_the_sizes_of_a_program_depend_on_the_instance_and_the_device_alone():
    learner, paper = (
        jb.make_learner("ucbvi"),
        [(15, 2), (15, 3), (15, 4), (20, 2), (20, 3), (20, 4)],
    )
    mdps = [
        jb.make_instance("prophet-uniform", horizon=H, capacity=k, num_values=5) for H, k in paper
    ]
    assert {room_for(learner, mdp, GPU) for mdp in mdps} == {(20, 4)}
    assert {room_for(learner, mdp, CPU) for mdp in mdps} == {None}
    assert room_for(learner._replace(pad=None), mdps[0], GPU) is None
    assert room_for(learner._replace(feedback="segments:2"), mdps[0], GPU) is None
    assert (GPU.room(1, 1), GPU.room(64, 15), GPU.room(65, 1), GPU.room(5, 16)) == (
        (5, 1), (64, 15), None, None,
    )  # fmt: skip


def test_every_learner_that_says_so_is_tested_here():
    made = {
        name: jb.make_learner(name, **LEARNERS[name])
        for name in jb.LEARNERS.constructors
        if name in LEARNERS
    }
    assert set(made) == set(LEARNERS)
    assert all(learner.pad is not None for learner in made.values())
    others = {"expref-shared": {}, "prophet-bandit": {}, "trajectory-ts": {}, "ucb-policies": {}}
    others |= {
        name: {}
        for name in (
            "ucb1", "kl-ucb", "thompson", "imed", "moss", "epsilon-greedy", "exp3", "explore-then-commit", "elimination",
            "kl-ucb-epochs",
        )
    }  # fmt: skip
    others |= {
        "fixed": {"policy": np.zeros((2, 2), np.int32)},
        "prophet-optimism": {"values": [[0, 1]]},
    }
    assert set(made) | set(others) == set(jb.LEARNERS.constructors)
    assert all(jb.make_learner(name, **given).pad is None for name, given in others.items())


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_padded_lanes_have_the_numbers_of_their_own_sizes(name):
    """Policies, phases, active actions and visits are equal; regrets to 1e-6 (rounding of other kernels)."""
    learner = jb.make_learner(name, **LEARNERS[name])
    metrics = {"visits": jb.metrics.visits} if name in ("ucbvi", "psrl") else None
    _, together = run(learner, OWN, True, metrics=metrics)
    for index, own in ((0, OWN[0]), (2, OWN[2])):
        _, alone = run(learner, (own,), False, metrics=metrics)
        assert set(alone) == set(together)
        for result, values in alone.items():
            found = together[result][index : index + 1]
            corner = tuple(slice(size) for size in values.shape)
            if result in ("regret", "final_gap"):
                np.testing.assert_allclose(found, values, rtol=1e-6, atol=1e-6)
            else:
                np.testing.assert_array_equal(found[corner], values)
            beyond = np.ones(found.shape, bool)
            beyond[corner] = False
            assert np.isnan(found[beyond]).all()


@pytest.mark.parametrize("name", ["ucbvi", "expref", "policy-gradient"])
def test_a_padded_lane_has_the_same_bits_alone_and_in_company(name):
    learner = jb.make_learner(name, **LEARNERS[name])
    _, together = run(learner, OWN, True)
    _, alone = run(learner, OWN[:1], True)
    for result in alone:
        corner = tuple(slice(size) for size in alone[result].shape)
        assert together[result][corner].tobytes() == alone[result].tobytes()


def test_all_sizes_are_one_program():
    runner, _ = run(jb.make_learner("ucbvi"), OWN, True)
    assert runner.sizes == (*ROOM, 3)
    assert len(runner.tiles) == 2  # nine lanes in tiles of eight
    assert len(alike(runner.tiles[0].own)) == 3


@pytest.mark.parametrize("randomised", [False, True])
def test_a_wrong_learner_is_blamed_with_its_own_stage_and_level(randomised):
    """What is wrong at states that were added is not seen; what is wrong at the MDP's own is."""
    ucbvi = jb.make_learner("ucbvi")

    def wrong_at(stage, level):
        def act(state, key, constants):
            policy = ucbvi.act(state, key, constants)
            if randomised:
                policy = jax.nn.one_hot(policy, 3, dtype=np.float32, axis=2)
            there = state.counts[0].sum((0, 1, 2)) > 0  # from the second episode on
            return policy.at[stage, level].set(jnp.where(there, 7, policy[stage, level]))

        return act

    def made(stage, level):
        return ucbvi._replace(act=wrong_at(stage, level), name="careless", straight=None, of=None)

    run(made(3, 1), ((3, 2),), True)
    run(made(1, 3), ((3, 2),), True)
    with pytest.raises(LearnerError, match="episode 2, stage 3, level 2"):
        run(made(2, 2), ((3, 2),), True)


def test_reports_metrics_and_policies_have_the_sizes_of_the_largest_mdp_of_a_tile():
    metrics = {"visits": jb.metrics.visits}
    _, found = run(jb.make_learner("expref", **SHORT), ((3, 2), (4, 1)), True, metrics=metrics)
    assert found["final_policy"].shape == (2, 3, 4, 3)
    assert found["active_actions"].shape[3:] == (4, 3)
    assert found["visits"].shape[2:] == (3, 4, 3)


def test_what_cannot_be_padded_is_refused():
    keys = jax.random.split(jax.random.key(0), (1, 2))
    ready = (stack(grown(instance((3, 2)), ROOM)), keys, 10, np.asarray([10]))
    uniform = jb.make_learner("uniform")
    with pytest.raises(ValueError, match="own: learner 'uniform' cannot be padded; accepted: None"):
        make_runner("episodes", uniform._replace(pad=None), *ready, own=[(3, 2)])
    expref = jb.make_learner("expref")
    expref = expref._replace(params={n: np.asarray(v)[None] for n, v in expref.params.items()})
    with pytest.raises(ValueError, match="accepted on the block engine: None"):
        make_runner("blocks", expref, *ready, own=[(3, 2)])


def test_arrays_are_filled_with_zeros_and_joined_with_nan():
    like = jax.ShapeDtypeStruct((3, 2), np.float32)
    large = filled(np.ones((4, 2, 1), np.float32), like)
    assert large.shape == (4, 3, 2)
    assert large.sum() == 8
    parts = {
        (1, 1): (np.array([0, 2]), {"x": np.ones((3, 1))}),
        (2, 1): (np.array([1]), {"x": np.zeros((3, 2))}),
    }
    np.testing.assert_array_equal(joined(parts, 3)["x"], [[1, np.nan], [0, 0], [1, np.nan]])
    policies = cut_policies(np.zeros((2, 3, 3), np.int32), [(3, 2), (1, 1)])
    assert np.isnan(policies[1]).sum() == 7


SHORT = LEARNERS["expref"]
