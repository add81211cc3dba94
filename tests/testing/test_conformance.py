"""Every registered learner passes `check_learner` on every engine that can run it, and broken
learners do not."""

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import jaxbandit as jb
from jaxbandit.learners import LEARNERS, Learner
from jaxbandit.testing.conformance import check_learner

SHORT = {"episodes_scale": 0.01, "last_epsilon": 0.1, "threshold": 0.2}
"""ExpRef with phases of 12 to 40 episodes."""

# prophet-bandit wants an MDP of one level, so its conformance is in its own file.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in LEARNERS.names() if name != "prophet-bandit"},
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
    learner = jb.make_learner(name, **parameters)
    summary = check_learner(learner)
    assert summary.learner == name
    checked = {row.name for row in summary.properties}
    assert {"policies", "jit = eager", "lanes = loop (episodes)"} <= checked
    assert ("lanes = loop (blocks)" in checked) == (learner.blocks is not None)


def test_names_and_near_matches():
    with pytest.raises(ValueError, match="unknown learner 'expreff'; did you mean 'expref'"):
        jb.make_learner("expreff")
    with pytest.raises(
        ValueError,
        match="learner 'ucbvi' has no parameter 'bonus_scal'; did you mean 'bonus_scale'",
    ):
        jb.make_learner("ucbvi", bonus_scal=1.0)
    with pytest.raises(ValueError, match="learner 'fixed' needs the parameter 'policy'"):
        jb.make_learner("fixed")
    with pytest.raises(ValueError, match="learner 'expref' is registered already"):
        jb.register_learner("expref", lambda: None)


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
    "policy: actions 2..2; accepted: 0..1": {"act": lambda state, key, constants: state.policy + 2},
    "policy: float32 .3, 3.; accepted: .3, 3, 2.": {
        "act": lambda state, key, constants: state.policy.astype(jnp.float32)
    },
    "policy: probabilities from 0.25, sums 0.5..0.5": {
        "act": lambda state, key, constants: jnp.full((3, 3, 2), 0.25)
    },
    "no leak: update asks bandit feedback for more than it shows: .*levels": {
        "update": lambda state, policy, feedback, constants: state._replace(
            value=state.value + feedback.levels[0]
        )
    },
    "stable state: .value: float32.. becomes int32..": {
        "update": lambda state, policy, feedback, constants: state._replace(value=jnp.int32(1))
    },
    "stable state: the structure of the state changes in update": {
        "update": lambda state, policy, feedback, constants: (state, 1)
    },
    "jit = eager: .value of update": {"update": counting},
    "report: 'regret'; accepted: names other than": {
        "report": lambda state: {"regret": state.value}
    },
    "check: refuses the learner's own parameters: scale: 1.0; accepted: none": {"check": never},
    "constants: two calls differ, in the value": {
        "constants": lambda problem, params: np.float64(next(NUMBERS))
    },
    r"requires: \[\], but init or constants fail without rank and optimal_policy": {
        "init": lambda problem, constants, key: Memory(
            constants["scale"], jnp.zeros_like(problem.rank[:, :, 0])
        )
    },
}


@pytest.mark.parametrize("message", BROKEN)
def test_a_broken_learner_is_told_what_is_broken(message):
    with pytest.raises(AssertionError, match=f"learner 'sound': {message}"):
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


def test_a_learner_that_keeps_something_outside_its_state_is_noticed():
    """Numbers that depend on how often a function was traced: the lanes of one program agree, two programs do not."""
    with pytest.raises(AssertionError, match="jit = eager"):
        check_learner(SOUND._replace(update=counting))


def test_callbacks_conform():
    def act(state, key, constants):
        return jax.pure_callback(lambda x: x, state.policy, state.policy, vmap_method="sequential")

    check_learner(SOUND._replace(act=act), num_episodes=8)
