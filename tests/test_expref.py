"""ExpRef and OrderedExpRef against hand calculation, their schedules, and the good event of the theorems."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from recording import NUM_SEEDS, mdps, recording, run

import jaxbandit as jb
from jaxbandit.engines import make_runner
from jaxbandit.engines.compat import x64
from jaxbandit.feedback import BanditFeedback
from jaxbandit.learners import Problem
from jaxbandit.learners.expref import PRESETS

# ---------------------------------------------------------------------------------------------------------------------
# By hand. Two stages, two levels, start at level 2, all rewards and moves deterministic:
#   stage 1: action 0 pays 3/8 and moves a level down, action 1 pays nothing and stays (at level 1: 0 pays 1/2);
#   stage 2: at level 2 the actions pay 1/4 and 1, at level 1 they pay 1/4 and 1/8.
# T = 1000, episodes_scale 1/50: n = ceil(0.24 ln 1000 / eps^2) = ceil(1.658), ceil(6.632), ceil(26.53) = 2, 7, 27
# (log 10 would give 1, 3, 12, and rounding down 1, 6, 26).
# ---------------------------------------------------------------------------------------------------------------------
NUM_EPISODES, SCALE = 1000, 0.02
E, A0, A1, M = (0.5, 0.5), (1.0, 0.0), (0.0, 1.0), (0.25, 0.75)


def deterministic():
    reward = np.zeros((2, 3, 2, 1), np.float32)
    reward[0, 2, :, 0], reward[0, 1, :, 0] = [0.375, 0], [0.5, 0]
    reward[1, 2, :, 0], reward[1, 1, :, 0] = [0.25, 1], [0.25, 0.125]
    next_level = np.zeros((2, 3, 2, 1), np.int32)
    next_level[:, 2, :, 0], next_level[:, 1, :, 0] = [1, 2], [0, 1]
    rank = np.broadcast_to(np.arange(2, dtype=np.int32), (2, 3, 2))
    return jb.MDP(np.ones_like(reward), reward, next_level, rank, np.int32(2))


# Every arm in order: rows of stage 1 (levels 2, 1), rows of stage 2 (levels 2, 1), episodes, Phi.
# After each stage: alpha-hat at levels (2, 1) and the sets N at levels (2, 1).
#
# ExpRef, threshold_scale 1/16: C eps = 1/16 at stage 2 and 1/2 at stage 1 in phase 1, half of that in phase 2.
# At stage 2 the levels 2 and 1 are reached with probability 1/2 each; exploring there is worth 5/8 and 3/16.
EXPREF = [
    ([((E, E), (A0, E), 2, 0.40625),       # 1/2 * 1/4 + 1/2 * (3/8 + 3/16)
      ((E, E), (A1, E), 2, 0.78125),       # 1/2 * 1   + 1/2 * (3/8 + 3/16)
      ((E, E), (E, A0), 2, 0.625),         # 1/2 * 5/8 + 1/2 * (3/8 + 1/4)
      ((E, E), (E, A1), 2, 0.5625)],       # 1/2 * 5/8 + 1/2 * (3/8 + 1/8): exactly C eps below the best, so kept
     (1, 0), ([1], [0, 1])),
    ([((A0, E), (A1, A0), 2, 0.625),       # 3/8 + 1/4
      ((A1, E), (A1, A0), 2, 1.0),         # 0 + 1; 3/8 apart, so both are kept
      ((E, A0), (A1, A0), 2, 0.8125),      # level 1 is not reached: the mean of the two above
      ((E, A1), (A1, A0), 2, 0.8125)],     # a tie, which goes to the first
     (1, 0), ([0, 1], [0, 1])),
    ([((E, E), (A1, E), 7, 0.78125),
      ((E, E), (A1, A0), 7, 0.8125),
      ((E, E), (A1, A1), 7, 0.75)],        # 1/16 apart, more than 1/32
     (1, 0), ([1], [0])),
    ([((A0, E), (A1, A0), 7, 0.625),       # 3/8 apart, more than 1/4
      ((A1, E), (A1, A0), 7, 1.0),
      ((E, A0), (A1, A0), 7, 0.8125),
      ((E, A1), (A1, A0), 7, 0.8125)],
     (1, 0), ([1], [0, 1])),
]  # fmt: skip
EXPREF_THIRD_PHASE = [((A1, E), (A1, A0), 27), ((A1, E), (A1, A0), 27)]

# OrderedExpRef, threshold_scale 1/32: k/(2H) = 1/2, so exploration M plays the maximal action 1 with probability 3/4.
# C = 1 and 4 at stage 2 (levels 1, 2), 2e and 16e at stage 1: C eps = 1/32, 1/8, 0.1699, 1.359 in phase 1.
# At stage 2 the levels 2 and 1 are reached with probability 3/4 and 1/4; exploring there is worth 13/16 and 5/32.
ORDERED = [
    ([((M, M), (A0, M), 2, 0.3203125),     # 3/4 * 1/4 + 1/4 * (3/8 + 5/32)
      ((M, M), (A1, M), 2, 0.8828125),     # 3/4 * 1   + 1/4 * (3/8 + 5/32)
      ((M, M), (M, A0), 2, 0.765625),      # 3/4 * 13/16 + 1/4 * (3/8 + 1/4)
      ((M, M), (M, A1), 2, 0.734375)],     # 3/4 * 13/16 + 1/4 * (3/8 + 1/8): exactly C eps below the best, so kept
     (1, 0), ([1], [0, 1])),
    ([((A0, M), (A1, A0), 2, 0.625),
      ((A1, M), (A1, A0), 2, 1.0),
      ((M, A0), (A1, A0), 2, 0.90625),     # 1/4 * 5/8 + 3/4 * 1
      ((M, A1), (A1, A0), 2, 0.90625)],
     (1, 0), ([0, 1], [0, 1])),
    ([((M, M), (A1, M), 7, 0.8828125),
      ((M, M), (A1, A0), 7, 0.90625),
      ((M, M), (A1, A1), 7, 0.875)],       # 1/32 apart, more than 1/64
     (1, 0), ([1], [0])),
    ([((A0, M), (A1, A0), 7, 0.625),       # 3/8 apart, less than 16e / 64
      ((A1, M), (A1, A0), 7, 1.0),
      ((M, A0), (A1, A0), 7, 0.90625),
      ((M, A1), (A1, A0), 7, 0.90625)],
     (1, 0), ([0, 1], [0, 1])),
]  # fmt: skip
ORDERED_THIRD_PHASE = [((M, M), (A1, A0), 27), ((M, M), (A1, A0), 27)]

BY_HAND = {
    "expref": (1 / 16, EXPREF, EXPREF_THIRD_PHASE),
    "ordered-expref": (1 / 32, ORDERED, ORDERED_THIRD_PHASE),
}


def by_hand(name):
    scale, script, third = BY_HAND[name]
    learner = jb.make_learner(name, episodes_scale=SCALE, threshold_scale=scale)
    rank = deterministic().rank if learner.needs else None
    return learner, Problem(2, 2, 2, NUM_EPISODES, rank), script, third


def table(*stages):
    """Rows of levels 2 and 1, as [H, k, A] in the order of the levels."""
    return np.asarray([rows[::-1] for rows in stages])


def played(blocks):
    """The arms of a block that are played: policies [H, k, A] and episodes, in order."""
    for row, episodes in zip(np.asarray(blocks.rows), np.asarray(blocks.episodes), strict=True):
        if episodes > 0:
            policy = np.asarray(blocks.policy).copy()
            policy[int(blocks.stage)] = row
            yield policy[:, 1:], episodes


@pytest.mark.parametrize("name", BY_HAND)
def test_every_block_phi_set_and_best_action_of_two_phases(name):
    learner, problem, script, third = by_hand(name)
    form = learner.blocks
    with x64():
        next_block, absorb = jax.jit(form.next_block), jax.jit(form.absorb)
        state = jax.jit(form.init)(problem, learner.params)
        assert np.asarray(state.arm_episodes)[:3].tolist() == [2, 7, 27]
        for number, (arms, best, kept) in enumerate(script):
            blocks = next_block(state)
            stage = 1 - number % 2
            assert int(blocks.stage) == stage
            seen = list(played(blocks))
            assert len(seen) == len(arms)
            totals = np.zeros(4)
            positions = np.flatnonzero(np.asarray(blocks.episodes))
            for (policy, episodes), (first, second, wanted, phi), b in zip(
                seen, arms, positions, strict=True
            ):
                np.testing.assert_array_equal(policy, table(first, second))
                assert episodes == wanted
                totals[b] = episodes * phi
            state = absorb(state, blocks.episodes, totals)
            assert np.asarray(state.best)[stage, :0:-1].tolist() == list(best)
            refined = np.asarray(state.refined)[stage, :0:-1]
            assert [np.flatnonzero(row).tolist() for row in refined] == list(kept)
        assert int(state.phase) == 2
        assert np.asarray(state.committed)[:, 1:].tolist() == [[0, 1], [0, 1]]
        assert np.asarray(state.phase_end)[:3].tolist()[:2] == [16, 65]
        assert np.isnan(np.asarray(state.phase_end)[2])
        sizes = [[len(row) for row in kept[::-1]] for _, _, kept in script]
        assert np.asarray(state.active_actions)[:2, :, 1:].tolist() == [sizes[1::-1], sizes[3:1:-1]]
        following = [(policy.tolist(), episodes) for policy, episodes in played(next_block(state))]
        assert following == [(table(first, second).tolist(), n) for first, second, n in third]


@pytest.mark.parametrize("name", BY_HAND)
def test_the_values_by_hand_are_those_of_the_instance(name):
    mdp = jb.validate(jax.tree.map(jnp.asarray, deterministic()))
    policies, phis = [], []
    for arms, _, _ in BY_HAND[name][1]:
        for first, second, _, phi in arms:
            policies.append(np.pad(table(first, second), ((0, 0), (1, 0), (0, 0)), constant_values=0.5))
            phis.append(phi)
    values = jax.vmap(jb.evaluate, (None, 0))(mdp, jnp.asarray(np.asarray(policies), jnp.float32))
    np.testing.assert_allclose(values, phis, atol=1e-6)


@pytest.mark.parametrize("name", BY_HAND)
def test_the_episodic_adapter_plays_the_same_blocks(name):
    """65 episodes, each paying its arm's mean, through act and update instead of next_block and absorb."""
    learner, problem, script, third = by_hand(name)
    act, update = jax.jit(learner.act), jax.jit(learner.update)
    state = jax.jit(learner.init)(problem, {key: jnp.float32(value) for key, value in learner.params.items()})
    arms = [arm for arms, _, _ in script for arm in arms] + [(*arm, 0.0) for arm in third]
    for first, second, episodes, phi in arms:
        for episode in range(episodes):
            policy = act(state, None)
            np.testing.assert_array_equal(policy[:, 1:], table(first, second))
            assert bool(learner.renewed(state)) == (episode == 0)
            state = update(state, policy, BanditFeedback(jnp.float32(phi)))
    assert int(state.inner.phase) == 2


# ---------------------------------------------------------------------------------------------------------------------
# The schedule and the parameters
# ---------------------------------------------------------------------------------------------------------------------


def first_state(name="expref", num_episodes=1000, sizes=(2, 2, 2), **parameters):
    learner = jb.make_learner(name, **parameters)
    rank = np.broadcast_to(np.arange(sizes[2], dtype=np.int32), (sizes[0], sizes[1] + 1, sizes[2]))
    with x64():
        return jax.tree.map(
            np.asarray, learner.blocks.init(Problem(*sizes, num_episodes, rank), learner.params)
        )


def schedule(**parameters):
    state = first_state(**parameters)
    count = int(np.sum(state.epsilons > 0))
    assert (state.epsilons[count:] == 0).all()
    return state.epsilons[:count].tolist(), state.arm_episodes[:count].tolist()


def test_while_condition_and_natural_logarithm():
    # sqrt(8 ln T / T): 1.357 at 10; 0.5826 at 111 (with log 10 it would be 0.384, and two phases); 0.2351 at 1000.
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
    assert schedule(epsilons=np.array([0.9, 0.6, 0.1]))[0] == [0.9, 0.6]  # the while condition still ends it
    assert schedule(epsilons=lambda r: 0.8 / (r + 1))[0] == [0.8, 0.4, 0.8 / 3]


def test_epsilons_as_an_optax_schedule():
    decay = optax.exponential_decay(init_value=1.0, transition_steps=1, decay_rate=0.5)
    assert schedule(epsilons=decay) == schedule()
    linear = optax.linear_schedule(init_value=0.8, end_value=0.25, transition_steps=2)
    np.testing.assert_allclose(schedule(epsilons=linear, num_phases=3)[0], [0.8, 0.525, 0.25], rtol=1e-6)


def test_thresholds_of_the_paper_scaled_or_constant():
    # (3): (H-i+1)(Ak)^(H-i).  (8): e^((H-i)k/H) (2AH/k)^(l-1) (H-i+1)^l.
    np.testing.assert_allclose(first_state().cutoff[:, 1:], [[8, 8], [1, 1]])
    e = np.e
    np.testing.assert_allclose(first_state("ordered-expref").cutoff[:, 1:], [[2 * e, 16 * e], [1, 4]])
    np.testing.assert_allclose(first_state(threshold_scale=0.25).cutoff[:, 1:], [[2, 2], [0.25, 0.25]])
    assert (first_state(threshold=0.3).cutoff == 0.3).all()
    assert (first_state("ordered-expref", threshold=0.3, threshold_scale=7.0).cutoff == 0.3).all()


def test_exploration_probability_of_the_ordered_variant():
    assert first_state().uniform == 1
    assert first_state("ordered-expref", sizes=(8, 2, 2)).uniform == 1 / 8  # k / (2H)
    assert first_state("ordered-expref", sizes=(8, 2, 2), exploration_scale=2.0).uniform == 0.5
    assert first_state("ordered-expref", sizes=(2, 2, 2), exploration_scale=2.5).uniform == 1


def test_presets():
    ours = jb.make_learner("expref", preset="theory").params
    for key, value in jb.make_learner("expref").params.items():
        np.testing.assert_array_equal(ours[key], value)
    for name, presets in PRESETS.items():
        for preset, values in presets.items():
            params = jb.make_learner(name, preset=preset).params
            assert {key: float(params[key]) for key in values} == values
    practical = schedule(preset="practical", num_episodes=2_000_000)
    np.testing.assert_allclose(practical[0], [0.213, 0.1506, 0.1065, 0.0753], atol=1e-4)
    assert practical[1] == [320.0, 640.0, 1280.0, 2559.0]
    overruled = jb.make_learner("expref", preset="practical", threshold=0.1).params
    assert float(overruled["threshold"]) == 0.1
    assert float(overruled["first_epsilon"]) == 0.213


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"preset": "fast"}, "preset: 'fast'; accepted: theory, practical"),
        ({"ratio": 1.0}, "ratio: 1.0; accepted: numbers between 0 and 1"),
        ({"episodes_scale": 0}, "episodes_scale: 0; accepted: numbers above 0"),
        ({"threshold": float("nan")}, "threshold: nan; accepted: numbers above 0"),
        ({"num_phases": 33}, "num_phases: 33; accepted: 1..32"),
        ({"epsilons": []}, r"epsilons: \[\]; accepted: 1..32 numbers in \(0, 1\]"),
        ({"epsilons": [0.5, 1.5]}, r"epsilons: \[0.5 1.5\]; accepted"),
        ({"epsilons": np.full(40, 0.1)}, "accepted: 1..32 numbers"),
        ({"thresold": 1}, "no parameter 'thresold'; did you mean 'threshold'"),
        ({"exploration_scale": 1.0}, "no parameter 'exploration_scale'"),
    ],
)
def test_errors(parameters, message):
    with pytest.raises(ValueError, match=message):
        jb.make_learner("expref", **parameters)


def test_ordered_needs_an_order():
    mdp = jb.make_instance("random-general", key=jax.random.key(0), horizon=2, width=2, num_actions=2)
    keys = jax.random.split(jax.random.key(0), (1, 1))
    with pytest.raises(ValueError, match="'ordered-expref' needs an ordered MDP"):
        jb.testing.run_lanes("blocks", [jb.make_learner("ordered-expref")], [mdp], keys, 10)


def test_after_the_last_phase_and_when_there_is_none():
    learner = jb.make_learner("expref", epsilons=[0.9])
    with x64():
        state = learner.blocks.init(Problem(2, 2, 2, 1000.0), learner.params)
        for _ in range(2):
            blocks = learner.blocks.next_block(state)
            assert float(blocks.episodes[0]) == 103  # ceil(12 ln 1000 / 0.81)
            # Only the last action ever pays.
            state = learner.blocks.absorb(
                state, blocks.episodes, blocks.episodes * jnp.asarray([0.0, 0.5] * 2)
            )
        ((policy, episodes),) = played(learner.blocks.next_block(state))
        assert policy.argmax(-1).tolist() == [[1, 1], [1, 1]]
        assert policy.max(-1).min() == 1
        assert episodes > 1000  # more than are left: it is never absorbed
        too_short = learner.blocks.init(Problem(2, 2, 2, 10.0), jb.make_learner("expref").params)
        ((policy, episodes),) = played(learner.blocks.next_block(too_short))
        assert policy.argmax(-1).tolist() == [[0, 0], [0, 0]]


# ---------------------------------------------------------------------------------------------------------------------
# The good event and the practical preset
# ---------------------------------------------------------------------------------------------------------------------


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
    """After every phase, in 2,048 seeds on each of two MDPs: a* is active and all that is left is within 3 H C eps.

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
    carry = runner.start()
    phases, smallest = 0, []
    while runner.episodes_done(carry) < T:
        carry = runner.step(carry)  # two stages: one phase
        state = jax.tree.map(np.asarray, carry["state"].inner)
        if not (state.phase == phases + 1).all():
            break
        epsilon = state.epsilons[0, 0, phases]
        phases += 1
        for g, (policies, losses) in enumerate(judged):
            for active in np.unique(state.active[g, :, :, 1:], axis=0):
                assert np.take_along_axis(active, best[g][..., None], -1).all()
                inside = np.take_along_axis(active[None], policies[..., None], -1).all(axis=(1, 2, 3))
                assert losses[inside].max() <= 3 * 2 * constant * epsilon
                smallest.append(inside.sum())
    assert phases >= 14
    assert epsilon <= 2**-13
    assert 3 * 2 * constant * epsilon < 0.05  # the bound is not vacuous
    assert min(smallest) <= 4  # and eliminations do happen: of 16 policies


@pytest.mark.parametrize("name", ["expref", "ordered-expref"])
def test_average_regret_falls_with_the_practical_preset(name):
    """Most seeds commit to an optimal policy, and their average regret goes to zero.

    The preset gives the guarantee up: its thresholds are below the noise of the arms' means, so some seeds drop a*,
    ever fewer as T grows. The shares measured are 14 % at T = 1e4 and 1.5 % at 1e10, where 3 % is 10 standard errors away.
    """
    learner = jb.make_learner(name, preset="practical")
    median, mean, lost = [], [], []
    for T in (10**4, 10**7, 10**10):
        results = run("blocks", learner, T, seed=6)
        average = results["regret"][0, :, -1] / T
        median.append(np.median(average))
        mean.append(np.mean(average))
        lost.append(np.mean(results["final_gap"][0] > 0))
    assert median[0] > 0.02
    assert median[1] < 1e-4
    assert median[2] < 1e-7
    assert mean[0] > 10 * mean[1] > 20 * mean[2]
    assert lost[0] > lost[1] > lost[2]
    assert lost[2] < 0.03
