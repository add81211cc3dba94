"""MDPs from arrays and from gymnasium: values against a backward induction of the tests' own, in the user's numbers."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb

S, A, H = 4, 3, 5


def model(seed, staged=False, next_state=True):
    """P with some impossible moves, and R of both signs and any size."""
    draws = np.random.default_rng(seed)
    lead = (H,) if staged else ()
    P = draws.dirichlet(np.ones(S), size=(*lead, S, A)) * (draws.random((*lead, S, A, S)) < 0.7)
    P[..., 0] += 1e-3
    P /= P.sum(-1, keepdims=True)
    R = draws.normal(3, 10, size=(*lead, S, A, S) if next_state else (*lead, S, A))
    return P, R


def value_of(P, R, start, terminal=(), horizon=H, choose=np.max):
    """V(start) by backward induction over the user's arrays; ``choose`` is max for the best policy, mean for uniform."""
    P = np.broadcast_to(P, (horizon, *P.shape[-3:]))
    lead = R.ndim == 4 or R.shape[0] != P.shape[1]
    V = np.zeros(P.shape[1])
    for i in reversed(range(horizon)):
        new = np.zeros_like(V)
        for s in set(range(P.shape[1])) - set(terminal):
            q = []
            for a in range(P.shape[2]):
                r = (R[i] if lead else R)[s]
                r = np.broadcast_to(np.asarray(r[a] if r.ndim else r), P.shape[1])
                q.append(sum(P[i, s, a, t] * (r[t] + V[t]) for t in range(P.shape[1])))
            new[s] = choose(q)
        V = new
    return V @ start if np.ndim(start) else V[start]


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("terminal", [(), (1, 3)])
@pytest.mark.parametrize("start", [2, [0.25, 0.0, 0.75, 0.0]])
@pytest.mark.parametrize("seed", [0, 1])
def test_values_are_those_of_the_arrays(staged, terminal, start, seed):
    P, R = model(seed, staged, next_state=seed == 0)
    mdp = jb.validate(jb.from_arrays(P, R, H, start, terminal))
    assert mdp.num_states == mdp.width == S
    best = value_of(P, R, start, terminal)
    value, policy = jb.optimal(mdp)
    np.testing.assert_allclose(float(value), best, rtol=1e-12)
    uniform = np.full((*policy.shape, A), 1 / A)
    mean = value_of(P, R, start, terminal, choose=np.mean)
    np.testing.assert_allclose(float(jb.evaluate(mdp, uniform)), mean, rtol=1e-12)
    np.testing.assert_allclose(float(jb.regret(mdp, uniform)), best - mean, rtol=1e-12)
    np.testing.assert_allclose(float(jb.evaluate(mdp, policy)), best, rtol=1e-12)
    level = mdp.start
    np.testing.assert_allclose(float(jb.optimal_values(mdp)[0][0, level]), best, rtol=1e-12)
    # and back
    P2, R2, start2 = jb.to_arrays(mdp)
    again = jb.from_arrays(P2, R2, H, start2)
    np.testing.assert_allclose(float(jb.optimal(again)[0]), best, rtol=1e-9)
    inside = [s for s in range(S) if s not in terminal]
    rows = (Ellipsis, inside, slice(None), slice(None)) if P.ndim == R.ndim else (..., inside, slice(None))  # fmt: skip
    np.testing.assert_allclose(P2[..., inside, :, :], P[..., inside, :, :], atol=1e-15)
    possible = P > 0 if R.ndim == P.ndim else np.ones(R.shape, bool)
    np.testing.assert_allclose(np.where(possible, R2 - R, 0)[rows], 0, atol=1e-12)
    np.testing.assert_allclose(start2, start)


@pytest.mark.parametrize("axes", ["S", "HS", "HSA", "HSAS"])
def test_every_shape_of_rewards(axes):
    P, _ = model(3)
    sizes = {"H": H, "S": S, "A": A}
    R = np.random.default_rng(4).normal(size=[sizes[x] for x in axes])
    mdp = jb.from_arrays(P, R, H)
    full = R.reshape(R.shape + (1,) * (4 - R.ndim - (axes[0] != "H")))
    full = np.broadcast_to(full if axes[0] == "H" else full[None], (H, S, A, S))
    np.testing.assert_allclose(float(jb.optimal(mdp)[0]), value_of(P, full, 0), rtol=1e-12)
    np.testing.assert_allclose(jb.to_arrays(mdp)[1], np.where(P > 0, R, 0) if axes == "HSAS" else R, atol=1e-12)  # fmt: skip


def test_random_rewards_have_the_same_values_and_the_laws_asked_for():
    P, _ = model(5)
    R = np.random.default_rng(6).random((S, A))
    coins = jb.from_arrays(P, R, H, reward="bernoulli")
    law = np.stack([1 - R, R / 2, R / 2], axis=-1)
    three = jb.from_arrays(P, None, H, reward=([-2.0, 0.0, 2.0], law))
    np.testing.assert_allclose(float(jb.optimal(coins)[0]), value_of(P, R, 0), rtol=1e-12)
    means = law @ [-2.0, 0.0, 2.0]
    np.testing.assert_allclose(float(jb.optimal(three)[0]), value_of(P, means, 0), rtol=1e-12)
    for mdp, values in ((coins, {0, 1}), (three, {-2, 0, 2})):
        words = jb.labels_of(mdp)
        paid = mdp.reward[:, 1:][mdp.prob[:, 1:] > 0] * words.scale + words.offsets[0]
        assert {round(x, 9) for x in paid.tolist()} == values
        np.testing.assert_allclose(jb.to_arrays(mdp)[1], R if mdp is coins else means, atol=1e-12)


def test_sweeps_are_in_the_users_units():
    P, R = model(7)
    mdp = jb.from_arrays(P, R, H, start=[0.5, 0, 0, 0.5], terminal=[2])
    policy = np.ones((mdp.horizon, S + 1), int)
    learners = {
        "fixed": jb.make_learner("fixed", policy=policy),
        "UCB-VI": jb.make_learner("ucbvi"),
    }
    ds = jb.sweep(learners, {"mine": mdp}, num_episodes=50, num_seeds=2, progress=False)
    mine = jb.in_units(ds)
    best = value_of(P, R, np.array([0.5, 0, 0, 0.5]), (2,))
    fixed = value_of(P[:, 1:2], R[:, 1:2], np.array([0.5, 0, 0, 0.5]), (2,))
    np.testing.assert_allclose(float(mine["optimal_value"].item()), best, rtol=1e-6)
    lost = mine["regret"].sel(learner="fixed").isel(episode=-1).values
    np.testing.assert_allclose(lost, 50 * (best - fixed), rtol=1e-5)
    assert jb.in_units(mine).identical(mine)
    back = jb.instance_of(ds)
    np.testing.assert_allclose(float(jb.optimal(back)[0]), best, rtol=1e-5)
    assert "worth" in str(jb.trace(mdp, policy, jax.random.key(0)))


def test_round_trip_keeps_the_optimal_value_of_every_registered_instance():
    from jaxbandit.description import small_instance

    for name in jb.INSTANCES.names():
        mdp = small_instance(name, {}, 0)[0]
        P, R, start = jb.to_arrays(mdp)
        form = jb.labels_of(mdp).arrays
        again = jb.from_arrays(P, R, mdp.horizon - (form is not None and form.drawn), start)
        value = float(jb.optimal(mdp)[0])
        np.testing.assert_allclose(float(jb.optimal(again)[0]), value, rtol=2e-6, err_msg=name)


@pytest.mark.parametrize(
    ("name", "options", "horizon", "value"),
    [
        ("FrozenLake-v1", {"is_slippery": True}, 100, 0.744190),
        ("FrozenLake-v1", {"is_slippery": True}, 50, 0.545909),
        ("FrozenLake-v1", {"is_slippery": False, "map_name": "8x8"}, 20, 1.0),
        ("CliffWalking-v1", {}, 20, -13.0),  # 13 steps of -1
        ("CliffWalking-v1", {}, 8, -8.0),  # too short for the goal
    ],
)
def test_gymnasium(name, options, horizon, value):
    mdp = jb.validate(jb.from_gymnasium(gymnasium.make(name, **options), horizon))
    assert f"{float(jb.optimal(mdp)[0]):.6f}" == f"{value:.6f}"
    P, R, start = jb.to_arrays(mdp)
    assert P.shape[-1] == mdp.num_states
    again = jb.from_arrays(P, R, horizon, start)
    assert f"{float(jb.optimal(again)[0]):.6f}" == f"{value:.6f}"


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
    wanted = value_of(P[:, 1:2], R[:, 1:2], np.array([0.5, 0, 0.5, 0]), (1,))
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
    "P: probabilities at state 1, action 2 sum to 0.5": {"P": "half"},
    r"P: nan at state 0, action 0": {"P": "nan"},
    r"P: shape \(3, 4, 4\), which reads as \[A, S, S\].*P.transpose\(1, 0, 2\)": {"P": "toolbox"},
    r"R: shape \(4, 2\); accepted: \[S\] = \(4,\), \[S, A\] = \(4, 3\)": {"R": np.ones((4, 2))},
    "R: reward nan at index": {"R": np.full((4, 3), np.nan)},
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
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_named(message):
    P = np.full((4, 3, 4), 0.25)
    given = {"P": P, "R": np.arange(12.0).reshape(4, 3), "horizon": 5} | BAD[message]
    if isinstance(given["P"], str):
        bad = {"half": P.copy(), "nan": P.copy(), "toolbox": np.full((3, 4, 4), 0.25)}[given["P"]]
        if given["P"] == "half":
            bad[1, 2] /= 2
        if given["P"] == "nan":
            bad[0, 0, 0] = np.nan
        given["P"] = bad
    with pytest.raises(ValueError, match=message):
        jb.from_arrays(**given)


def test_newcomers_are_led_to_the_door():
    P, R = model(0)
    with pytest.raises(TypeError, match=r"next_level, rank, start missing.*jb.from_arrays\(P, R, horizon\)"):  # fmt: skip
        jb.MDP(P, R)
    with pytest.raises(ValueError, match=r"CartPoleEnv has no table of transitions P.*from_arrays"):
        jb.from_gymnasium(gymnasium.make("CartPole-v1"), 10)
    assert "state s of a model" in jb.MDP.__doc__
