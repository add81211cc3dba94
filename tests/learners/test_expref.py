"""ExpRef and OrderedExpRef beyond hand calculation: their schedules and parameters, and the good
event of the theorems."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from recording import NUM_SEEDS, mdps, played, recording, run

import jaxbandit as jb
from jaxbandit.engines import make_runner
from jaxbandit.learner import make_constants
from jaxbandit.learners import Problem
from jaxbandit.testing import last_states, run_lanes
from jaxbandit.xla.compat import x64


def problem(num_episodes, sizes=(2, 2, 2)):
    rank = np.broadcast_to(np.arange(sizes[2], dtype=np.int32), (sizes[0], sizes[1] + 1, sizes[2]))
    return Problem(*sizes, num_episodes, rank)


def constants(name="expref", num_episodes=1000, sizes=(2, 2, 2), **parameters):
    learner = jb.make_learner(name, **parameters)
    with x64():
        return make_constants(learner, problem(num_episodes, sizes), learner.params)


def schedule(**parameters):
    found = constants(**parameters)
    count = int(np.sum(found.epsilons > 0))
    assert (found.epsilons[count:] == 0).all()
    return found.epsilons[:count].tolist(), found.episodes_per_arm[:count].tolist()


def test_while_condition_and_natural_logarithm():
    # sqrt(8 ln T / T): 1.357 at 10; 0.5826 at 111 (with log 10 it would be 0.384, and two phases);
    # 0.2351 at 1000.
    assert schedule(num_episodes=10) == ([], [])
    assert schedule(num_episodes=111) == ([1.0], [57.0])
    assert schedule(num_episodes=1000) == ([1.0, 0.5, 0.25], [83.0, 332.0, 1327.0])
    assert len(schedule(num_episodes=10**6)[0]) == 7
    assert len(schedule(num_episodes=10**12)[0]) == 17
    reference = jb.theory.schedule(15, 2, 5, 2_000_000)
    ours = schedule(num_episodes=2_000_000, sizes=(15, 2, 5))
    assert ours == (reference.epsilons.tolist(), reference.episodes_per_arm.tolist())


def test_schedule_parameters():
    assert schedule(last_epsilon=0.5)[0] == [1.0]  # strictly above
    assert schedule(last_epsilon=0.49)[0] == [1.0, 0.5]
    assert schedule(num_phases=2)[0] == [1.0, 0.5]
    np.testing.assert_allclose(schedule(first_epsilon=0.9, ratio=0.6)[0], [0.9, 0.54, 0.324])
    assert schedule(episodes_scale=0.5)[1] == [42.0, 166.0, 664.0]
    assert schedule(epsilons=[0.9, 0.6])[0] == [0.9, 0.6]
    assert schedule(epsilons=np.array([0.9, 0.6, 0.1]))[0] == [
        0.9,
        0.6,
    ]  # the while condition still ends it
    assert schedule(epsilons=lambda r: 0.8 / (r + 1))[0] == [0.8, 0.4, 0.8 / 3]


def test_epsilons_as_an_optax_schedule():
    decay = optax.exponential_decay(init_value=1.0, transition_steps=1, decay_rate=0.5)
    assert schedule(epsilons=decay) == schedule()
    linear = optax.linear_schedule(init_value=0.8, end_value=0.25, transition_steps=2)
    np.testing.assert_allclose(
        schedule(epsilons=linear, num_phases=3)[0], [0.8, 0.525, 0.25], rtol=1e-6
    )


def test_thresholds_of_the_paper_scaled_or_constant():
    # (3): (H-i+1)(Ak)^(H-i).  (8): e^((H-i)k/H) (2AH/k)^(l-1) (H-i+1)^l.
    np.testing.assert_allclose(constants().thresholds[:, 1:], [[8, 8], [1, 1]])
    e = np.e
    np.testing.assert_allclose(
        constants("ordered-expref").thresholds[:, 1:], [[2 * e, 16 * e], [1, 4]]
    )
    np.testing.assert_allclose(
        constants(threshold_scale=0.25).thresholds[:, 1:], [[2, 2], [0.25, 0.25]]
    )
    assert (constants(threshold=0.3).thresholds == 0.3).all()
    assert (constants("ordered-expref", threshold=0.3, threshold_scale=7.0).thresholds == 0.3).all()


def test_exploration_probability_of_the_ordered_variant():
    assert constants().uniform_share == 1
    assert constants("ordered-expref", sizes=(8, 2, 2)).uniform_share == 1 / 8  # k / (2H)
    assert constants("ordered-expref", sizes=(8, 2, 2), exploration_scale=2.0).uniform_share == 0.5
    assert constants("ordered-expref", sizes=(2, 2, 2), exploration_scale=2.5).uniform_share == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"preset": "fast"}, "preset: 'fast'; accepted: None, 'theory', 'practical'"),
        ({"epsilons": "abc"}, "epsilons: 'abc'; accepted: 1..32 numbers"),
        ({"epsilons": []}, r"epsilons: \[\]; accepted: 1..32 numbers in \(0, 1\]"),
        ({"epsilons": [0.5, 1.5]}, r"epsilons: \[0.5, 1.5\]; accepted"),
        ({"epsilons": np.full(40, 0.1)}, "accepted: 1..32 numbers"),
        ({"thresold": 1}, "no parameter 'thresold'; did you mean 'threshold'"),
        ({"exploration_scale": 1.0}, "no parameter 'exploration_scale'"),
    ],
)
def test_errors(parameters, message):
    with pytest.raises(ValueError, match=message):
        jb.make_learner("expref", **parameters)


def test_after_the_last_phase_and_when_there_is_none():
    learner = jb.make_learner("expref", epsilons=[0.9])
    form = learner.blocks
    with x64():
        given = jax.tree.map(jnp.asarray, constants(epsilons=[0.9]))
        state = form.init(problem(1000), None, None)
        for _ in range(2):
            blocks = form.next_block(state, given)
            assert int(blocks.episodes[0]) == 103  # ceil(12 ln 1000 / 0.81)
            # Only the last action ever pays.
            totals = blocks.episodes.astype(jnp.float64) * jnp.asarray([0.0, 0.5] * 2)
            state = form.absorb(state, blocks.episodes, totals, given)
        ((policy, episodes),) = played(form.next_block(state, given))
        assert policy.argmax(-1).tolist() == [[1, 1], [1, 1]]
        assert policy.max(-1).min() == 1
        assert episodes > 1000  # more than are left: it is never absorbed
        given = jax.tree.map(jnp.asarray, constants(num_episodes=10))
        too_short = form.init(problem(10), None, None)
        ((policy, episodes),) = played(form.next_block(too_short, given))
        assert policy.argmax(-1).tolist() == [[0, 0], [0, 0]]


def policies_and_losses(mdp):
    """Every deterministic policy on levels 1..k, int [N, H, k], and its regret."""
    policies = np.asarray(list(itertools.product(range(2), repeat=4)), np.int32).reshape(-1, 2, 2)
    full = jnp.asarray(np.pad(policies, ((0, 0), (0, 0), (1, 0))))
    with x64():
        exact = mdp._replace(
            prob=jnp.asarray(mdp.prob, jnp.float64), reward=jnp.asarray(mdp.reward, jnp.float64)
        )
        return policies, np.asarray(jax.vmap(jb.regret, (None, 0))(exact, full))


@pytest.mark.parametrize("name", ["expref", "ordered-expref"])
def test_good_event_with_the_constants_of_the_theorems(name):
    """After every phase, in 2,048 seeds on each of two MDPs: a* is active and all that is left is
    within 3 H C eps.

    Each fails with probability at most 1/T = 1e-12 per run, so the false-alarm rate is 1e-8.
    """
    T = 10**12
    learner = recording(jb.make_learner(name))
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *mdps())
    params = {key: np.stack([value] * 2) for key, value in learner.params.items()}
    keys = jax.random.split(jax.random.key(5), (2, NUM_SEEDS))
    runner = make_runner(
        "blocks",
        learner._replace(params=params),
        stacked,
        keys,
        T,
        np.asarray([T - 2, T - 1, T]),
        chunk_size=2,
    )
    constant = jb.theory.thresholds(2, 2, 2, ordered=name != "expref")[0, 2]
    judged = [policies_and_losses(mdp) for mdp in mdps()]
    best = [np.asarray(jb.optimal(mdp)[1])[:, 1:] for mdp in mdps()]
    epsilons = constants(name, num_episodes=T).epsilons
    carry = runner.start()
    phases, smallest = 0, []
    while runner.episodes_done(carry) < T:
        carry = runner.step(carry)  # two stages: one phase
        state = last_states(runner, carry).inner
        if not (state.phase == phases + 1).all():
            break
        epsilon = epsilons[phases]
        phases += 1
        for g, (policies, losses) in enumerate(judged):
            for active in np.unique(state.active[g, :, :, 1:], axis=0):
                assert np.take_along_axis(active, best[g][..., None], -1).all()
                inside = np.take_along_axis(active[None], policies[..., None], -1).all(
                    axis=(1, 2, 3)
                )
                assert losses[inside].max() <= 3 * 2 * constant * epsilon
                smallest.append(inside.sum())
    assert phases >= 14
    assert epsilon <= 2**-13
    assert 3 * 2 * constant * epsilon < 0.05  # the bound is not vacuous
    assert min(smallest) <= 4  # and eliminations do happen: of 16 policies


@pytest.mark.parametrize("name", ["expref", "ordered-expref"])
def test_average_regret_falls_to_zero_with_the_practical_preset(name):
    """Where actions differ clearly, every one of 2 x 2,048 seeds commits to an optimal policy, and
    regret stops growing.

    One coin of two may be kept, and an action adds or costs an arm at least 0.25: from T = 10^8 on
    more than 5 standard deviations of the difference of two arms in the first phase (205 episodes
    each, standard deviation 1/2 at most), for at
    most 4 differences in each of 4,096 lanes: the false-alarm rate is below 1e-2, and the keys are
    fixed. Until then 4 arms play 31 n episodes, n = 308 at most, and lose at most 1 in each: 38,192
    in all.
    """
    learner = jb.make_learner(name, preset="practical")
    chances = [[0.5, 0.5], [0.6, 0.4]]
    problems = [
        jb.make_instance(
            "prophet", values=[[0.0, 1.0]] * 2, probabilities=[[1 - p, p] for p in row], capacity=1
        )
        for row in chances
    ]
    keys = jax.random.split(jax.random.key(7), (2, NUM_SEEDS))
    worst = []
    for T in (10**4, 10**8, 10**12):
        results = run_lanes("blocks", [learner] * 2, problems, keys, T, [T])[0]
        worst.append(np.max(results["regret"][:, :, -1]) / T)
    assert np.all(results["final_gap"] == 0)
    assert worst[0] > 1e-2  # all of it is exploration
    assert worst[1] <= 38_192 / 10**8
    assert worst[2] <= 38_192 / 10**12


@pytest.mark.parametrize("name", ["expref", "ordered-expref"])
def test_practical_preset_where_actions_hardly_differ(name):
    """Most seeds commit to an optimal policy, and their average regret goes to zero.

    The preset gives the guarantee up: its thresholds are below the noise of the arms' means, so
    some seeds drop a*, ever fewer as T grows. The shares measured are 18 % at T = 1e4 and
    3.2 % at 1e10, where 6 % is 7 standard errors away; for both learners, as exploration min(1, 1.25
    k / H) is uniform at this size.
    """
    learner = jb.make_learner(name, preset="practical")
    median, mean, lost = [], [], []
    for T in (10**4, 10**7, 10**10):
        results = run("blocks", learner, T, seed=6)
        average = results["regret"][0, :, -1] / T
        median.append(np.median(average))
        mean.append(np.mean(average))
        lost.append(np.mean(results["final_gap"][0] > 0))
    assert median[0] > 0.01
    assert median[1] < 1e-4
    assert median[2] < 1e-7
    assert mean[0] > mean[1] > mean[2]
    assert lost[0] > lost[1] > lost[2]
    assert lost[2] < 0.06
