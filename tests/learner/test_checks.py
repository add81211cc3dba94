"""Learners that declare what cannot be meant are refused, with the learner and the value named."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.learner import COORDINATES, RESERVED, check_contract, check_report

SOUND = jb.make_learner("uniform")


def test_every_registered_learner_is_accepted():
    for name in jb.LEARNERS.names():
        given = {
            "fixed": {"policy": np.zeros((2, 2), int)},
            "prophet-optimism": {"values": [[0, 1]]},
        }
        learner = jb.make_learner(name, **given.get(name, {}))
        assert check_contract(learner) is learner
        assert check_contract(learner.rules) == learner.rules
        if learner.check is not None:
            learner.check(learner.params)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"requires": ("ranks",)}, "requires: 'ranks'; accepted: rank, optimal_policy"),
        ({"requires": "rank"}, "requires: 'rank'; accepted: a tuple of rank, optimal_policy"),
        ({"feedback": "bandits"}, "feedback: 'bandits'; accepted: .*bandit, .*semi-bandit"),
        ({"feedback": 3}, "feedback: 3; accepted: .*bandit"),
        ({"params": {"scale": "big"}}, "params: scale: 'big'; accepted: numbers"),
        ({"params": {"scale": None}}, "params: scale: None; accepted: numbers"),
        ({"params": {"seed": 1.0}}, "params: 'seed'; accepted: names other than learner, .*seed"),
        ({"params": {"n": 2**31}}, "params: n: 2147483648; accepted: whole numbers of 32 bits"),
        ({"params": {"n": np.array([1, -(2**40)])}}, "params: n: -1099511627776; accepted: whole"),
        ({"params": {"regret": 1.0}}, "params: 'regret'; accepted: names other than learner"),
        ({"params": {"phase_end": 1.0}}, "params: 'phase_end'; accepted: names other than learner"),
        ({"params": {"a/b": 1.0}}, "params: 'a/b'; accepted: names without '/'"),
        ({"params": {"a\nb": 1.0}}, "params: name .* has the character"),
        ({"params": [1.0]}, r"params: \[1.0\]; accepted: a dictionary"),
        ({"init": None}, "init: None; accepted: a function$"),
        ({"report": {"x": 1}}, "report: .*; accepted: a function, or None"),
        ({"check": 3}, "check: 3; accepted: a function, or None"),
        ({"blocks": 3}, "blocks: 3; accepted: a BlockForm"),
        ({"blocks": jb.BlockForm(max, None, max)}, "next_block: None; accepted: a function"),
    ],
)
def test_what_cannot_be_meant_is_refused(change, message):
    with pytest.raises(ValueError, match=f"learner 'uniform': {message}"):
        check_contract(SOUND._replace(**change))


@pytest.mark.parametrize("feedback", ["segments:2", "trajectory", "semi-bandit"])
def test_a_block_form_hears_sums_alone(feedback):
    with pytest.raises(ValueError, match="accepted: one-bit or bandit in block form"):
        check_contract(jb.make_learner("expref")._replace(feedback=feedback))


def test_what_is_no_learner_is_refused():
    with pytest.raises(TypeError, match="learner: 'ucbvi'; accepted: a Learner"):
        check_contract("ucbvi")
    with pytest.raises(ValueError, match="learner: name ''; accepted: a non-empty string"):
        check_contract(SOUND._replace(name=""))


@pytest.mark.parametrize("name", RESERVED)
def test_a_report_cannot_take_the_name_of_a_result(name):
    learner = SOUND._replace(report=lambda state: {name: state})
    with pytest.raises(
        ValueError, match=f"learner 'uniform': report: '{name}'; accepted: names other than learner"
    ):
        check_report(learner, jnp.zeros(()))


def test_reports():
    state = jnp.zeros(3, jnp.int32)
    assert check_report(SOUND, state) == {}
    found = check_report(SOUND._replace(report=lambda s: {"counts": s, "most": jnp.max(s)}), state)
    assert {name: value.shape for name, value in found.items()} == {"counts": (3,), "most": ()}
    # With 64-bit types, so that whole numbers come out exact.
    wide = check_report(SOUND._replace(report=lambda s: {"x": s.astype(jnp.float64)}), state)
    assert wide["x"].dtype == np.float64
    for report, message in [
        (
            lambda s: {"phase_end": jnp.zeros((2, 2))},
            r"phase_end: shape \(2, 2\); accepted: 1 axes",
        ),
        (lambda s: {"active_actions": s}, r"active_actions: shape \(3,\); accepted: 3 axes"),
        (lambda s: {"x": {"y": s}}, "x: dict; accepted: arrays of numbers"),
        (lambda s: {"x": "words"}, "fails for this state .*; accepted: a function"),
        (lambda s: 3, "fails for this state .*; accepted: a function"),
        (lambda s: {"": s}, "''; accepted: names other than"),
    ]:
        with pytest.raises(ValueError, match=f"learner 'uniform': report: .*{message}"):
            check_report(SOUND._replace(report=report), state)
    with pytest.raises(ValueError, match="report: 'bonus_scale'; accepted: names other than"):
        check_report(jb.make_learner("ucbvi")._replace(report=lambda s: {"bonus_scale": s}), state)


def test_reserved_names_are_those_of_a_result():
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    results = jb.sweep({"u": SOUND}, {"I": mdp}, num_episodes=4, num_seeds=1, progress=False)
    reports = {"phase_end", "active_actions"}
    assert set(results.data_vars) - reports <= set(RESERVED)
    assert set(results.coords) <= set(COORDINATES)


def test_names_are_those_that_a_sweep_accepts():
    """They stand in progress lines and errors."""
    for name in ("two\nlines", "\x1b[2J", " "):
        with pytest.raises(ValueError, match=r"learner: name .*accepted: "):
            check_contract(jb.make_learner("uniform")._replace(name=name))
