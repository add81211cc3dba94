"""Metrics: by hand on known states, and one trace under vmap for every registered learner."""

from typing import NamedTuple

import episodes_by_hand
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import metrics
from jaxbandit.learner import Problem
from jaxbandit.metrics import METRICS, check_metrics, dims_of, make_world

SIZES = {"horizon": 3, "capacity": 2, "num_values": 3}
REQUIRED = {"fixed": {"policy": np.zeros((3, 3), np.int32)}}


@pytest.fixture(scope="module")
def mdp():
    return jb.make_instance("prophet-uniform", **SIZES)


def begin(name, mdp, **how):
    """The learner's first state, constants and policy."""
    learner = jb.make_learner(name, **(how or REQUIRED.get(name, {})))
    problem = Problem(
        mdp.horizon,
        mdp.width,
        mdp.num_actions,
        1000,
        mdp.rank if "rank" in learner.requires else None,
        jb.optimal(mdp)[1] if "optimal_policy" in learner.requires else None,
    )
    state, constants = episodes_by_hand.begin(learner, problem, jax.random.key(0))
    return state, constants, learner.act(state, jax.random.key(0), constants)


def finite(name, mdp):
    state, constants, policy = begin(name, mdp)
    world = make_world(mdp, policy, constants)
    return {metric for metric, f in METRICS.items() if bool(jnp.isfinite(f(state, world)).any())}


EVERY = {"policy_gap", "best_guess_gap", "entropy"}


EXTRA = {
    **dict.fromkeys(("expref", "expref-shared", "ordered-expref"), ("mean_active",)),
    **dict.fromkeys(("ucbvi", "ucbvi-doubling", "q-learning"), ("optimism", "visits")),
    **dict.fromkeys(("psrl", "trajectory-ts", "aggregate-po"), ("visits",)),
    **dict.fromkeys(("ucb-policies", "policy-gradient", "uniform", "oracle", "fixed"), ()),
}


@pytest.mark.parametrize("name", EXTRA)
def test_which_metrics_a_learner_has(name, mdp):
    assert finite(name, mdp) == EVERY.union(EXTRA[name])


@pytest.mark.parametrize(
    "name",
    [
        n
        for n in jb.LEARNERS.constructors
        if n not in {*REQUIRED, "prophet-bandit", "prophet-optimism"}
    ],
)
def test_every_registered_learner_under_jit_and_vmap(name, mdp):
    if jb.LEARNERS.constructors[name].__module__.endswith("bandits"):
        mdp = jb.make_instance("bandit", means=[0.2, 0.5, 0.8])
    state, constants, policy = begin(name, mdp)
    world = make_world(mdp, policy, constants)
    two = jax.tree.map(lambda x: jnp.stack([jnp.asarray(x)] * 2), (state, world))
    both = jax.jit(jax.vmap(lambda *of: {name: f(*of) for name, f in METRICS.items()}))(*two)
    for metric, f in METRICS.items():
        one = f(state, world)
        assert one.ndim == len(dims_of(f)), metric
        for row in both[metric]:
            np.testing.assert_allclose(row, one, rtol=1e-6)


def test_a_sweep_records_everything(mdp):
    """All shipped metrics under their names, on both engines; visits of a stage are the episodes before."""
    names = ("expref", "q-learning", "psrl", "trajectory-ts")
    ds = jb.sweep(
        {name: jb.make_learner(name) for name in names},
        {"I1": mdp},
        num_episodes=40,
        num_seeds=2,
        record=jb.record.linear(4),
        metrics=METRICS,
        progress=False,
    )
    assert set(METRICS) <= set(ds.data_vars)
    for name in names[1:]:
        first = ds["visits"].sel(learner=name, stage=1).sum("level")
        assert (first == ds["episode"]).all(), name
    assert np.isfinite(ds["mean_active"].sel(learner="expref")).all()


def test_gaps_are_the_exact_regret(mdp):
    rng = np.random.default_rng(1)
    for _ in range(5):
        policy = jnp.asarray(rng.dirichlet(np.ones(3), (3, 3)), jnp.float32)
        world = make_world(mdp, policy)
        assert metrics.policy_gap((), world) == pytest.approx(
            float(jb.regret(mdp, policy)), abs=1e-6
        )
        likely = np.asarray(policy).argmax(-1).astype(np.int32)
        assert metrics.best_guess_gap((), world) == pytest.approx(
            float(jb.regret(mdp, likely)), abs=1e-6
        )
    best = jb.optimal(mdp)[1]
    assert float(metrics.policy_gap((), make_world(mdp, best))) == 0.0


def test_what_exprefs_know(mdp):
    state, constants, policy = begin("ordered-expref", mdp)
    world = make_world(mdp, policy, constants)
    assert float(metrics.active_actions(state, world)) == 3.0
    inner = state.inner
    active = np.array(inner.active)
    active[:, 1:, 1:] = False
    fewer = inner._replace(active=jnp.asarray(active), committed=jb.optimal(mdp)[1])
    assert float(metrics.active_actions(fewer, world)) == 1.0
    assert float(metrics.best_guess_gap(fewer, world)) == 0.0
    assert float(metrics.best_guess_gap(state, world)) == pytest.approx(
        float(jb.regret(mdp, np.zeros((3, 3), np.int32))), abs=1e-6
    )


def test_what_ucbvi_hopes_and_counts(mdp):
    state, constants, policy = begin("ucbvi", mdp)
    world = make_world(mdp, policy, constants)
    value = float(jb.optimal(mdp)[0])
    assert float(metrics.optimism(state, world)) == pytest.approx(1 - value)
    counted = np.asarray(metrics.visits(state, world))
    assert np.isnan(counted[:, 0]).all()
    assert (counted[:, 1:] == 0).all()


class Mine(NamedTuple):
    visits: object
    optimistic_values: object


def test_a_state_of_ones_own_takes_part_by_names(mdp):
    state = Mine(jnp.ones((3, 2, 3), jnp.int32), jnp.full((3, 2), 2.0))
    world = make_world(mdp, jnp.zeros((3, 3), jnp.int32))
    np.testing.assert_array_equal(np.asarray(metrics.visits(state, world))[:, 1:], 3.0)
    assert float(metrics.optimism(state, world)) == pytest.approx(2 - float(jb.optimal(mdp)[0]))


def test_a_state_that_is_an_array_has_nothing_by_name(mdp):
    """Arrays of jax have attributes of their own, ``committed`` among them, which tracers refuse to give."""
    table = jnp.zeros((mdp.horizon, mdp.width + 1), jnp.int32)
    world = make_world(mdp, table)
    found = jax.jit(lambda state: {name: f(state, world) for name, f in METRICS.items()})(
        jnp.ones(3)
    )
    np.testing.assert_allclose(found["best_guess_gap"], jb.regret(mdp, table), atol=1e-6)
    assert np.isnan(found["optimism"])


def test_entropy_of_known_distributions(mdp):
    one = make_world(mdp, jnp.zeros((3, 3), jnp.int32))
    even = make_world(mdp, jnp.full((3, 3, 3), 1 / 3))
    assert float(metrics.entropy((), one)) == 0.0
    assert float(metrics.entropy((), even)) == pytest.approx(np.log(3))
    state, _, policy = begin("policy-gradient", mdp)
    drawn = make_world(mdp, policy)
    assert float(metrics.entropy(state, drawn)) == pytest.approx(np.log(3))
    sure = state._replace(logits=state.logits.at[..., 1].set(50.0))
    assert float(metrics.entropy(sure, drawn)) == pytest.approx(0.0, abs=1e-6)
    ones = np.ones((3, 3), np.int32)
    ones[:, 0] = 0
    assert float(metrics.best_guess_gap(sure, drawn)) == pytest.approx(
        float(jb.regret(mdp, ones)), abs=1e-6
    )


def test_metrics_are_checked():
    assert check_metrics(None) == {}
    assert check_metrics({"mine": metrics.entropy}) == {"mine": metrics.entropy}
    for wrong, message in [
        ([metrics.entropy], "metrics: .*accepted: a dictionary"),
        ({"two words": metrics.entropy}, "metrics: name 'two words'; accepted: an identifier"),
        ({"mine": 3}, r"metrics\['mine'\]: 3; accepted: a function"),
        (
            {"mine": metrics.dims("seed")(lambda state, world: 0.0)},
            r"metrics\['mine'\]: dims: 'seed'; accepted: names other",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            check_metrics(wrong)


def measured(metric, mdp, learner="uniform", name="mine"):
    return jb.sweep(
        {learner: jb.make_learner(learner)}, {"I": mdp}, 20, 2,
        record=jb.record.linear(4), metrics={name: metric}, progress=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["learner", "stage", "mdp_prob", "final_gap", "bonus_scale"])
def test_no_metric_takes_the_name_of_another_variable(name, mdp):
    with pytest.raises(ValueError, match=f"metrics: name '{name}'; accepted: an identifier"):
        measured(metrics.entropy, mdp, "ucbvi", name)


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (None, "NoneType"),
        ("x", "str"),
        ((1.0, 2.0), "tuple"),
        ({"a": 1.0}, "dict"),
        (np.complex64(1), r"complex64\[\]"),
    ],
)
@pytest.mark.parametrize("learner", ["uniform", "expref"])
def test_what_is_no_number_is_refused(value, seen, learner, mdp):
    saying = rf"metrics\['mine'\]: gives {seen}; accepted: a real number or an array of them"
    with pytest.raises(ValueError, match=saying):
        measured(lambda state, world: value, mdp, learner)


def test_axes_that_are_not_those_of_its_dims(mdp):
    for wrong in (lambda state, world: 0.0, lambda state, world: jnp.zeros(2)):
        saying = r"metrics\['mine'\]: gives .*; accepted: the axes of its dims, stage \(3\)"
        with pytest.raises(ValueError, match=saying):
            measured(metrics.dims("stage")(wrong), mdp)


def test_a_metric_without_names_for_its_axes_has_one_of_episodes(mdp):
    ds = measured(lambda state, world: 2**40, mdp)
    assert ds["mine"].dims == ("learner", "instance", "seed", "episode")
    assert (ds["mine"] == 2**40).all()
    jb.plot_metric(ds, "mine")
    two = measured(lambda state, world: jnp.zeros(2), mdp)
    assert two["mine"].dims[3:] == ("episode", "mine_axis0")


def test_nan_is_told(mdp):
    def late(state, world):
        return jnp.where(jb.metrics.visits(state, world)[0, 2] > 10, jnp.nan, 1.0)

    with pytest.warns(UserWarning, match=r"metrics\['mine'\]: nan in all runs of all learners"):
        measured(lambda state, world: jnp.nan, mdp)
    saying = r"nan in 4 of 8 values, first at learner ucbvi, instance I, seed 0, episode 15"
    with pytest.warns(UserWarning, match=saying):
        measured(late, mdp, "ucbvi")
    measured(metrics.optimism, mdp)  # what a learner does not have is no surprise
