"""The test case for learners of users: right ones pass in every variant, others fail where they go wrong."""

import unittest

import jax
import jax.numpy as jnp

import jaxbandit as jb


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


def test_a_learner_that_is_another_when_compiled():
    def act(state, key, counts):
        compiled = isinstance(state, jax.core.Tracer)
        return jnp.full((3, 3), int(compiled), jnp.int32)

    rules = jb.make_learner("uniform")._replace(
        init=lambda problem, constants, key: jnp.zeros(()), act=act, update=lambda state, *_: state
    )
    found = failures(rules)
    assert list(found) == ["test_act_and_update_agree__with_jit"]
    assert "learner 'uniform'" in next(iter(found.values()))


def test_a_learner_that_keeps_something_outside_its_state():
    calls = []

    def update(state, *_):
        calls.append(None)
        return state + len(calls)

    rules = jb.make_learner("uniform")._replace(
        init=lambda problem, constants, key: jnp.zeros((), jnp.int32),
        act=lambda state, *_: jnp.zeros((3, 3), jnp.int32),
        update=update,
    )
    assert "test_act_and_update_agree__with_jit" in failures(rules)


def test_a_learner_that_is_traced_anew():
    rules = jb.make_learner("uniform")._replace(
        init=lambda problem, constants, key: jnp.zeros(1),
        act=lambda state, *_: jnp.zeros((3, 3), jnp.int32),
        update=lambda state, *_: jnp.zeros(state.size + 1),
    )
    assert list(failures(rules)) == ["test_one_trace_serves_the_run"]


def test_without_a_learner_nothing_is_tested():
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(jb.testing.LearnerTests).run(result)
    assert (result.testsRun, len(result.skipped)) == (4, 4)
