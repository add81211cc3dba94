"""MDPs from arrays and from gymnasium: values against a backward induction of the tests' own, in the user's numbers."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.description import small_instance
from jaxbandit.engines.tables import optimal_value

S, A, H = 4, 3, 5


def model(seed, staged=False, axes="SAS"):
    """P with some impossible moves, and R of both signs and any size."""
    draws = np.random.default_rng(seed)
    lead = (H,) if staged else ()
    P = draws.dirichlet(np.ones(S), size=(*lead, S, A)) * (draws.random((*lead, S, A, S)) < 0.7)
    P[..., 0] += 1e-3
    P /= P.sum(-1, keepdims=True)
    return P, draws.normal(3, 10, size=[{"H": H, "S": S, "A": A}[x] for x in axes])


def values_of(P, R, terminal=(), policy=None):
    """V [S] by backward induction over the user's arrays: of the best policy, or of action probabilities [H, S, A]."""
    R = R if R.ndim == 4 or len(R) == H else R[None]
    R = R.reshape(R.shape + (1,) * (4 - R.ndim))
    P, R = (np.broadcast_to(x, (H, S, P.shape[-2], S)) for x in (P, R))
    V, playing = np.zeros(S), [s not in terminal for s in range(S)]
    for i in reversed(range(H)):
        Q = (P[i] * (R[i] + V)).sum(-1)
        V = np.where(playing, Q.max(-1) if policy is None else (policy[i] * Q).sum(-1), 0)
    return V


CASES = [  # axes of R, whether P has stages, terminal states, start
    ("SAS", False, (), 2),
    ("SAS", True, (1, 3), [0.25, 0, 0.75, 0]),
    ("SA", True, (), [0.1, 0.2, 0.3, 0.4]),
    ("SA", False, (1,), 0),
    ("S", True, (), 3),
    ("HSAS", False, (3,), 1),
    ("HSA", True, (0, 2), [0, 0.5, 0, 0.5]),
    ("HS", False, (), [0.25, 0.25, 0.5, 0]),
]


@pytest.mark.parametrize(("axes", "staged", "terminal", "start"), CASES)
def test_values_are_those_of_the_arrays_and_come_back(axes, staged, terminal, start):
    P, R = model(len(axes) + staged, staged, axes)
    mdp = jb.validate(jb.from_arrays(P, R, H, start, terminal))
    assert mdp.num_states == mdp.width == S
    law = np.eye(S)[start] if np.ndim(start) == 0 else np.array(start)
    every = values_of(P, R, terminal)
    best, playing = every @ law, [s for s in range(S) if s not in terminal]
    value, policy = jb.optimal(mdp)
    np.testing.assert_allclose(float(value), best, rtol=1e-12)
    drawn = mdp.horizon - H
    tails = jb.optimal_values(mdp)[0][drawn, 1:]
    np.testing.assert_allclose(tails[playing], every[playing], rtol=1e-12)
    np.testing.assert_allclose(float(jb.evaluate(mdp, np.eye(A)[policy])), best, rtol=1e-12)
    mixed = np.random.default_rng(9).dirichlet(np.ones(A), size=policy.shape)
    mean = values_of(P, R, terminal, mixed[drawn:, 1:]) @ law
    np.testing.assert_allclose(float(jb.evaluate(mdp, mixed)), mean, rtol=1e-11)
    np.testing.assert_allclose(float(jb.regret(mdp, mixed)), best - mean, rtol=1e-11)
    P2, R2, start2 = jb.to_arrays(mdp)
    np.testing.assert_allclose(P2[..., playing, :, :], P[..., playing, :, :], atol=1e-15)
    np.testing.assert_allclose(start2, start)
    if axes in ("SAS", "HSAS"):  # what no move pays does not come back
        R = np.where(P.max(0) > 0 if staged else P > 0, R, 0)
    inside = (slice(None),) * (axes[0] == "H") + (playing,)
    np.testing.assert_allclose(R2[inside], R[inside], atol=1e-12)
    again = jb.from_arrays(P2, R2, H, start2, terminal)
    np.testing.assert_allclose(float(jb.optimal(again)[0]), best, rtol=1e-12)


def test_random_rewards_have_the_same_values_and_the_laws_asked_for():
    P, _ = model(5)
    R = np.random.default_rng(6).random((S, A))
    coins = jb.from_arrays(P, R, H, reward="bernoulli")
    law = np.stack([1 - R, R / 2, R / 2], axis=-1)
    three = jb.from_arrays(P, None, H, reward=([-2.0, 0.0, 2.0], law))
    np.testing.assert_allclose(float(jb.optimal(coins)[0]), values_of(P, R)[0], rtol=1e-12)
    means = law @ [-2.0, 0.0, 2.0]
    np.testing.assert_allclose(float(jb.optimal(three)[0]), values_of(P, means)[0], rtol=1e-12)
    for mdp, values in ((coins, {0, 1}), (three, {-2, 0, 2})):
        words = jb.labels_of(mdp)
        paid = mdp.reward[:, 1:][mdp.prob[:, 1:] > 0] * words.scale + words.offsets[0]
        assert {round(x, 9) for x in paid.tolist()} == values
        np.testing.assert_allclose(jb.to_arrays(mdp)[1], R if mdp is coins else means, atol=1e-12)


def test_sweeps_are_in_the_users_units():
    P, R = model(7)
    start = np.array([0.5, 0, 0, 0.5])
    mdp = jb.from_arrays(P, R, H, start, terminal=[2])
    policy = np.ones((mdp.horizon, S + 1), int)
    learners = {
        "fixed": jb.make_learner("fixed", policy=policy),
        "UCB-VI": jb.make_learner("ucbvi"),
    }
    ds = jb.sweep(learners, {"mine": mdp}, num_episodes=50, num_seeds=2, progress=False)
    mine = jb.in_units(ds)
    best = values_of(P, R, (2,)) @ start
    fixed = values_of(P[:, 1:2], R[:, 1:2], (2,)) @ start
    np.testing.assert_allclose(float(mine["optimal_value"].item()), best, rtol=1e-6)
    lost = mine["regret"].sel(learner="fixed").isel(episode=-1).values
    np.testing.assert_allclose(lost, 50 * (best - fixed), rtol=1e-5)
    assert jb.in_units(mine).identical(mine)
    back = jb.instance_of(ds)
    np.testing.assert_allclose(float(jb.optimal(back)[0]), best, rtol=1e-5)
    assert "worth" in str(jb.trace(mdp, policy, jax.random.key(0)))


def value_of(mdp):
    """`jb.optimal` without compiling: the engines' own backward induction."""
    words = jb.labels_of(mdp)
    return words.total(optimal_value(mdp)) if words.offsets else optimal_value(mdp)


def test_round_trip_keeps_the_optimal_value_of_every_registered_instance():
    for name in jb.INSTANCES.names():
        mdp = small_instance(name, {}, 0)[0]
        P, R, start = jb.to_arrays(mdp)
        form = jb.labels_of(mdp).arrays
        again = jb.from_arrays(P, R, mdp.horizon - (0 if form is None else form.drawn), start)
        np.testing.assert_allclose(value_of(again), value_of(mdp), rtol=2e-6, err_msg=name)


@pytest.mark.parametrize(
    ("name", "options", "horizon", "value"),
    [
        ("FrozenLake-v1", {"is_slippery": True}, 100, 0.744190),
        ("FrozenLake-v1", {"is_slippery": True}, 50, 0.545909),
        ("FrozenLake-v1", {"is_slippery": False, "map_name": "8x8"}, 20, 1.0),
        ("CliffWalking-v1", {}, 20, -13.0),  # 13 steps of -1
        ("CliffWalking-v1", {}, 8, -8.0),  # too short for the goal
        ("Taxi-v4", {}, 3, -3.0),  # 500 states, of which 300 are a start
    ],
)
def test_gymnasium(name, options, horizon, value):
    env = gymnasium.make(name, **options)
    mdp = jb.validate(jb.from_gymnasium(env, horizon))
    table, plain = env.unwrapped.P, np.zeros(mdp.num_states)
    for _ in range(horizon):
        plain = np.array(
            [
                max(
                    sum(p * (r + (not end) * plain[t]) for p, t, r, end in row)
                    for row in rows.values()
                )
                for rows in table.values()
            ]
        )
    np.testing.assert_allclose(plain @ env.unwrapped.initial_state_distrib, value, atol=5e-7)
    assert f"{float(jb.optimal(mdp)[0]):.6f}" == f"{value:.6f}"
    P, R, start = jb.to_arrays(mdp)
    if mdp.num_states < 100:  # dense arrays of Taxi are large
        assert f"{value_of(jb.from_arrays(P, R, horizon, start)):.6f}" == f"{value:.6f}"


def test_a_start_over_too_many_states_is_drawn_in_two_stages(monkeypatch):
    monkeypatch.setattr("jaxbandit.mdp.arrays.MOST_ENTRIES", 300)  # 6 stages of 4 outcomes are 360
    P, R = model(10, axes="SA")
    P[..., 2:] = 0  # 7 stages of 2 outcomes are 210
    P /= P.sum(-1, keepdims=True)
    start = np.array([0.1, 0.2, 0.3, 0.4])
    mdp = jb.validate(jb.from_arrays(P, R, H, start, actions=["a", "b", "c"]))
    assert mdp.horizon == H + 2
    np.testing.assert_allclose(float(jb.optimal(mdp)[0]), values_of(P, R) @ start, rtol=1e-12)
    np.testing.assert_allclose(jb.visitation(mdp, np.zeros((H + 2, S + 1), int))[2, 1:], start, rtol=1e-6)  # fmt: skip
    np.testing.assert_allclose(jb.to_arrays(mdp)[2], start)
    seen, _ = jax.vmap(jb.to_gymnax(mdp).reset)(jax.random.split(jax.random.key(0), 4000))
    share = np.bincount(seen, minlength=S) / 4000  # false alarms: 4 x 2e-9, six standard errors
    assert (abs(share - start) < 6 * np.sqrt(start * (1 - start) / 4000)).all()


def test_gymnax_environments_have_the_law_of_the_mdp():
    """False alarms: 2e-9 (six standard errors) for each of two means, with a fixed key."""
    P, R = model(8)
    mdp = jb.from_arrays(P, R, H, start=[0.5, 0, 0.5, 0], terminal=[1])
    env, new = jb.to_gymnax(mdp), jb.to_gymnax(mdp, terminated=True)
    params = env.default_params

    def episode(key):
        key, first = jax.random.split(key)
        _, state = env.reset(first, params)

        def step(carry, key):
            state, over, total = carry
            _, state, reward, done, _ = env.step(key, state, 1, params)
            return (state, over | done, total + jnp.where(over, 0, reward)), None

        keys = jax.random.split(key, H)
        (_, over, total), _ = jax.lax.scan(step, (state, False, 0.0), keys)
        return total, over

    totals, over = jax.vmap(episode)(jax.random.split(jax.random.key(9), 20_000))
    wanted = values_of(P[:, 1:2], R[:, 1:2], (1,)) @ [0.5, 0, 0.5, 0]
    error = float(totals.std()) / np.sqrt(len(totals))
    assert abs(float(totals.mean()) - wanted) < 6 * error
    assert over.all()
    obs, state = new.reset(jax.random.key(0))
    assert int(obs) in (0, 2)
    out = new.step(jax.random.key(1), state, 0)
    assert len(out) == 6
    assert env.action_space(params).n == A
    assert not jax.tree.leaves(state)[0].weak_type


BAD = {
    "P: probabilities at state 0, action 0 sum to 0.8": {"P": np.full((4, 3, 4), 0.2)},
    r"P: nan at state 0, action 0, next state 0": {"P": np.full((4, 3, 4), np.nan)},
    r"P: shape \(3, 4, 4\), which reads as \[A, S, S\].*P.transpose\(1, 0, 2\)": {
        "P": np.ones((3, 4, 4))
    },
    r"R: shape \(4, 2\); accepted: \[S\] = \(4,\), \[S, A\] = \(4, 3\)": {"R": np.ones((4, 2))},
    "R: nan at state 0, action 0; accepted: finite": {"R": np.full((4, 3), np.nan)},
    "horizon: 0; accepted: a whole number, at least 1": {"horizon": 0},
    r"start: 4; accepted: a state 0..3, or probabilities": {"start": 4},
    "start: probabilities sum to 2": {"start": [1, 1, 0, 0]},
    "start: state 3 is terminal": {"start": 3, "terminal": [3]},
    "terminal: 4; accepted: states": {"terminal": [4]},
    "terminal: -1; accepted: states": {"terminal": -1},
    "terminal: all states": {"terminal": range(4)},
    "R: pays in terminal state 3.*R\\[s, a, s'\\]": {"R": np.eye(4)[3], "terminal": 3},
    "R: 2 with reward='bernoulli'": {"R": 2 * np.ones((4, 3)), "reward": "bernoulli"},
    "reward: 'normal'; accepted: 'mean', 'bernoulli'": {"reward": "normal"},
    "R: not the means of reward": {"reward": ([0, 1], np.full((4, 3, 2), 0.5))},
    "actions: 1 rows|actions: 5 rows": {"actions": ["left", "right"]},
    r"R: 1.1e\+301 over 5 stages; accepted: totals of at most": {
        "R": np.arange(12.0).reshape(4, 3) * 1e300
    },
    "horizon: 10000000 stages, 4 states, 3 actions and 4 outcomes make a table too large": {
        "horizon": 10**7
    },
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_named(message):
    given = {"P": np.full((4, 3, 4), 0.25), "R": np.arange(12.0).reshape(4, 3), "horizon": 5} | BAD[
        message
    ]
    with pytest.raises(ValueError, match=message):
        jb.from_arrays(**given)


def test_newcomers_are_led_to_the_door():
    P, R = model(0)
    with pytest.raises(TypeError, match=r"next_level, rank, start missing.*jb.from_arrays\(P, R, horizon\)"):  # fmt: skip
        jb.MDP(P, R)
    with pytest.raises(ValueError, match=r"CartPoleEnv has no table of transitions P.*from_arrays"):
        jb.from_gymnasium(gymnasium.make("CartPole-v1"), 10)
    assert "state s of a model" in jb.MDP.__doc__
