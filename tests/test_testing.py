"""Every registered learner passes `check_learner` on every engine that can run it, and broken
learners do not."""

import itertools
import unittest
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxbandit as jb
from jaxbandit.learners import LEARNERS, Learner
from jaxbandit.testing import Property, Summary, check_learner, run_lanes

SHORT = {"episodes_scale": 0.01, "last_epsilon": 0.1, "threshold": 0.2}
"""ExpRef with phases of 12 to 40 episodes."""

ARMS = (
    "ucb1", "kl-ucb", "thompson", "imed", "moss", "epsilon-greedy", "exp3", "explore-then-commit",
    "elimination", "kl-ucb-epochs",
)  # fmt: skip
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in LEARNERS.names()},
    "prophet-bandit": ("prophet-bandit", {"episodes_scale": 0.05, "threshold_scale": 0.1}),
    "expref-shared, ordered": (
        "expref-shared",
        {"ordered": True, "episodes_scale": 0.004, "last_epsilon": 0.1, "deviations": 1.5},
    ),
    "psrl, stationary": ("psrl", {"stationary": True, "prior": 1.0}),
    "q-learning, stationary": ("q-learning", {"stationary": True}),
    "expref": ("expref", SHORT),
    "ordered-expref": ("ordered-expref", SHORT),
    "expref-shared": ("expref-shared", SHORT),
    "fixed": ("fixed", {"policy": np.ones((3, 3), int)}),
    "prophet-optimism": ("prophet-optimism", {"values": np.tile([0.2, 1.0], (3, 1))}),
    "fixed, randomised": ("fixed", {"policy": np.full((3, 3, 2), 0.5)}),
    "policy-gradient, adam": ("policy-gradient", {"optimizer": optax.adam(0.01)}),
    "trajectory-ts, segments": ("trajectory-ts", {"segments": 2}),
    "ucbvi, monotone bernstein": ("ucbvi", {"monotone": True, "bonus": "bernstein"}),
}


@pytest.mark.parametrize("case", CASES)
def test_conformance(case):
    name, parameters = CASES[case]
    learner, mdp = jb.make_learner(name, **parameters), None
    if name in ARMS:
        mdp = jb.make_instance("bandit", means=[0.2, 0.5, 0.8, 0.75])
    elif name == "prophet-bandit":
        mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=2)
    summary = check_learner(learner, mdp)
    assert summary.learner == name
    checked = {row.name for row in summary.properties}
    assert {"policies", "jit = eager", "lanes = loop (episodes)"} <= checked
    assert ("lanes = loop (blocks)" in checked) == (learner.blocks is not None)


def test_the_oracle_has_no_regret_and_everyone_has_some():
    # Two thresholds are equally good here, and float32 and float64 disagree about which is better.
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
    keys = jax.random.split(jax.random.key(0), (1, 2))
    for name, regret in (("oracle", 0), ("uniform", 1)):
        results, _ = jb.testing.run_lanes("episodes", [jb.make_learner(name)], [mdp], keys, 32)
        assert ((results["regret"] > 0) == regret).all()
        assert regret or (results["final_gap"] == 0).all()


# ---------------------------------------------------------------------------------------------------------------------
# Learners that break the contract, one property at a time
# ---------------------------------------------------------------------------------------------------------------------


class Memory(NamedTuple):
    value: Any
    policy: Any


def _init(problem, constants, key):
    shape = (problem.horizon, problem.width + 1)
    return Memory(constants["scale"].astype(jnp.float32), jnp.zeros(shape, jnp.int32))


def _act(state, key, constants):
    return state.policy


def _update(state, policy, feedback, constants):
    return state._replace(value=state.value + feedback.total)


SOUND = Learner(_init, _act, _update, params={"scale": np.float32(1)}, name="sound")
CALLS: list[int] = []


def counting(state, policy, feedback, constants):
    CALLS.append(0)
    return state._replace(value=state.value + len(CALLS))


def never(params):
    raise ValueError(f"scale: {params['scale']}; accepted: none")


NUMBERS = itertools.count()
BROKEN = {
    "feedback: 'all'": {"feedback": "all"},
    "requires: 'prob'; accepted: rank, optimal_policy": {"requires": ("prob",)},
    "params: scale: 'big'; accepted: numbers": {"params": {"scale": "big"}},
    "episode 1, stage 1, level 1: action 2; accepted: 0..1": {
        "act": lambda state, *_: state.policy + 2
    },
    "act gives float32.3, 3.; accepted: actions, integers": {
        "act": lambda state, *_: state.policy.astype(jnp.float32)
    },
    r"episode 1, stage 1, level 1: probabilities \[0.25, 0.25\]; accepted": {
        "act": lambda state, *_: jnp.full((3, 3, 2), 0.25)
    },
    "bandit feedback has total; 'levels' is not among them": {
        "update": lambda state, _, seen, __: state._replace(value=state.value + seen.levels[0])
    },
    r"update gives .*Memory.* of int32 \[\], .*; accepted: a state like that of init, .* of float32": {
        "update": lambda state, *_: state._replace(value=jnp.int32(1))
    },
    "update gives .*; accepted: a state like that of init": {
        "update": lambda state, *_: (state, 1)
    },
    "jit = eager: .value of update": {"update": counting},
    "report: 'regret'; accepted: names other than": {
        "report": lambda state: {"regret": state.value}
    },
    "check: refuses the learner's own parameters: scale: 1.0; accepted: none": {"check": never},
    "constants: two calls differ, in the value": {
        "constants": lambda *_: np.float64(next(NUMBERS))
    },
    r"requires: \[\], but init or constants fail without rank and optimal_policy": {
        "init": lambda problem, *_: Memory(0.0, jnp.zeros_like(problem.rank[:, :, 0]))
    },
}


@pytest.mark.parametrize("message", BROKEN)
def test_a_broken_learner_is_told_what_is_broken(message):
    with pytest.raises(AssertionError, match=f"learner 'sound'[:,] {message}"):
        check_learner(SOUND._replace(**BROKEN[message]))


def made(scale, number):
    """A learner whose ``update`` has a number that is no parameter."""

    def update(state, policy, feedback, constants):
        return state._replace(value=state.value + number * feedback.total)

    return SOUND._replace(update=update, params={"scale": np.float32(scale)})


def test_functions_that_change_with_a_parameter_are_noticed():
    check_learner(made(1, 2.0), other=made(2, 2.0))  # made anew, and the same program
    with pytest.raises(AssertionError, match="one trace: update of the learner with other param"):
        check_learner(made(1, 2.0), other=made(2, 3.0))


def test_a_policy_that_goes_wrong_late_is_noticed():
    late = SOUND._replace(
        act=lambda state, key, constants: state.policy + (state.value > 1000).astype(jnp.int32) * 2,
        update=lambda state, policy, feedback, constants: state._replace(value=state.value + 1),
    )
    with pytest.raises(AssertionError, match=r"'sound', episode 1001, stage 1, level 1: action 2"):
        check_learner(late)


def test_callbacks_conform():
    def act(state, key, constants):
        return jax.pure_callback(lambda x: x, state.policy, state.policy, vmap_method="sequential")

    check_learner(SOUND._replace(act=act), num_episodes=8)


def test_a_lane_of_several_is_the_lane_alone():
    learners = [jb.make_learner("ucbvi", bonus_scale=scale) for scale in (0.1, 1.0)]
    mdps = [
        jb.make_instance(
            "prophet-random", key=jax.random.key(j), horizon=2, capacity=1, num_values=3
        )
        for j in (0, 1)
    ]
    keys = jax.random.split(jax.random.key(5), (2, 2))
    both, states = run_lanes("episodes", learners, mdps, keys, 12, points=[3, 12])
    assert both["regret"].shape == (2, 2, 2)
    one, state = run_lanes("episodes", learners[1:], mdps[1:], keys[1:, :1], 12, points=[3, 12])
    np.testing.assert_array_equal(one["regret"][0, 0], both["regret"][1, 0])
    np.testing.assert_array_equal(state.policy[0, 0], states.policy[1, 0])


def test_it_says_what_it_checks(capsys):
    summary = jb.testing.check_learner(jb.make_learner("uniform"), num_episodes=8, verbose=True)
    first, *said = capsys.readouterr().err.splitlines()
    assert first == "checking learner 'uniform'"
    assert len(said) == len(summary.properties) >= 12
    for line, row in zip(said, summary.properties, strict=True):
        assert line == f"{row.name}: {row.compared}: {row.result}"
    names = [row.name for row in summary.properties]
    assert len(set(names)) == len(names)
    jb.testing.check_learner(jb.make_learner("uniform"), num_episodes=8)
    assert capsys.readouterr() == ("", "")


def test_names_are_escaped_in_notebooks():
    shown = Summary("<mine>", (Property("a", "b", "c"),))._repr_html_()
    assert "<mine>" not in shown
    assert "<td style='text-align:left'>b</td>" in shown


class TestUCBVI(jb.testing.LearnerTests):
    """As users write it; pytest finds the four tests."""

    learner = jb.make_learner("ucbvi", preset="practical")


class TestExpRef(jb.testing.LearnerTests):
    learner = jb.make_learner("expref", episodes_scale=0.01)
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)


def failures(learner):
    """Names of the tests that fail, and the reasons."""
    case = type("Case", (jb.testing.LearnerTests,), {"learner": learner})
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert result.testsRun == 4
    return {test.id().split(".")[-1]: why for test, why in result.failures + result.errors}


def other_when_compiled(state, key, constants):
    return jnp.full((3, 3), int(isinstance(state.value, jax.core.Tracer)), jnp.int32)


STILL = {"init": lambda *_: jnp.zeros(1), "act": lambda *_: jnp.zeros((3, 3), jnp.int32)}


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({"act": other_when_compiled}, "test_act_and_update_agree__with_jit"),
        ({"update": counting}, "test_act_and_update_agree__with_jit"),
        (
            {**STILL, "update": lambda state, *_: jnp.zeros(state.size + 1)},
            "test_one_trace_serves_the_run",
        ),
    ],
    ids=["another when compiled", "something outside its state", "traced anew"],
)
def test_a_broken_learner_fails_a_test(change, failing):
    found = failures(SOUND._replace(**change))
    assert failing in found
    assert "one_trace" in failing or "learner 'sound'" in found[failing]


def test_without_a_learner_nothing_is_tested():
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(jb.testing.LearnerTests).run(result)
    assert (result.testsRun, len(result.skipped)) == (4, 4)
