"""Learners in one line, and in notebooks."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.errors import LearnerError
from jaxbandit.learner.forms import SIGNATURES
from jaxbandit.xla.platforms import use

TINY = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
LINES = {
    "Learner('expref', bandit)": ("expref", {}),
    "Learner('expref', bandit, preset practical)": ("expref", {"preset": "practical"}),
    "Learner('expref', bandit, preset practical, threshold 0.1)": (
        "expref",
        {"preset": "practical", "threshold": 0.1},
    ),
    "Learner('expref', bandit, threshold 0.3, last_epsilon 0.1)": (
        "expref",
        {"threshold": 0.3, "last_epsilon": 0.1},
    ),
    "Learner('expref', bandit, epsilons of 2 phases)": ("expref", {"epsilons": [0.5, 0.2]}),
    "Learner('ordered-expref', bandit, preset practical-paper-exploration)": (
        "ordered-expref",
        {"preset": "practical-paper-exploration"},
    ),
    "Learner('policy-gradient', bandit, baseline_decay 0.99, learning_rate 0.1)": (
        "policy-gradient",
        {"learning_rate": 0.1},
    ),
    "Learner('fixed', bandit, policy [1, 2])": ("fixed", {"policy": [[0, 1]]}),
    "Learner('uniform', bandit)": ("uniform", {}),
}


@pytest.mark.parametrize("line", LINES)
def test_one_line(line):
    name, parameters = LINES[line]
    assert repr(jb.make_learner(name, **parameters)) == line


def test_one_line_for_grids_and_rules():
    learner = jb.make_learner("expref", preset="practical")
    grid = jb.grid(learner, threshold=[0.05, 0.1])
    assert (
        repr(grid.learner) == "Learner('expref', bandit, preset practical, threshold of 2 settings)"
    )
    assert repr(learner.rules) == "Learner('expref', bandit)"
    assert len(repr(jb.make_learner("ucbvi"))) < 80


def test_values_that_stand_for_none_are_not_listed():
    params = {"threshold": np.nan, "num_phases": np.inf, "scale": np.float32(0.5), "table": [1, 2]}
    learner = jb.Learner(max, max, max, name="mine", params=params)
    assert repr(learner) == "Learner('mine', bandit, scale 0.5, table [2])"


def test_rules_are_the_program_alone():
    learner = jb.make_learner("expref")
    assert learner.rules == learner._replace(check=None).rules
    assert learner.rules.check is None


def test_html_is_escaped():
    learner = jb.Learner(max, max, max, name="<b>bold</b>", params={"<i>": 1.0})
    shown = learner._repr_html_()
    assert "<b>" not in shown
    assert "<i>" not in shown
    assert "&lt;b&gt;bold&lt;/b&gt;" in shown
    assert "preset practical" in jb.make_learner("expref", preset="practical")._repr_html_()


def test_three_functions_of_twenty_lines_are_still_a_learner():
    """No constants, no check, nothing but the three functions."""

    def init(problem, constants, key):
        return jnp.zeros((problem.horizon, problem.width + 1), jnp.int32)

    learner = jb.Learner(
        init, lambda state, key, constants: state, lambda state, policy, feedback, constants: state
    )
    assert repr(learner) == "Learner('learner', bandit)"
    shown = jb.testing.check_learner(learner, num_episodes=8)
    assert "constants" not in [row.name for row in shown.properties]


def test_help_explains_the_contract(capsys):
    help(jb.Learner)
    shown = capsys.readouterr().out
    for word in (
        "init(problem, constants, key)",
        "constants(problem, params)",
        "best_so_far",
    ):
        assert word in shown
    help(jb.Problem)
    assert "num_episodes" in capsys.readouterr().out


def test_other_parameter_values_are_equal_rules():
    one, two = jb.make_learner("expref"), jb.make_learner("expref", preset="practical")
    assert one.rules == two.rules
    assert hash(one.rules) == hash(two.rules)
    assert one.rules.params == ()
    assert np.isnan(one.params["threshold"])


def test_a_block_form_does_not_speak_for_functions_that_were_replaced():
    expref = jb.make_learner("expref")
    other = expref._replace(update=lambda state, policy, feedback, constants: state)
    with pytest.raises(ValueError, match=r"blocks: 'of other functions than its update'; accepted"):
        jb.sweep({"mine": other}, {"I": TINY}, num_episodes=5, num_seeds=1, progress=False)


def test_a_replaced_function_is_what_a_gpu_runs():
    ucbvi = jb.make_learner("ucbvi")

    def act(state, key, constants):
        return jnp.full_like(ucbvi.act(state, key, constants), 2)

    worst = ucbvi._replace(act=act, name="stubborn")
    alone = jb.make_learner("fixed", policy=np.full((3, 2), 2))
    with use("gpu"):
        found = jb.sweep(
            {"mine": worst, "fixed": alone},
            {"I": TINY},
            num_episodes=40,
            num_seeds=2,
            progress=False,
        )
    regret = found["regret"].isel(episode=-1)
    np.testing.assert_allclose(regret.sel(learner="mine"), regret.sel(learner="fixed"), rtol=1e-6)


def test_functions_of_another_arity_are_refused_when_the_learner_is_made():
    three = (lambda problem, constants, key: 0, lambda state, key, constants: 0, lambda *_: 0)
    learner = jb.Learner(*three, name="mine")  # *args: any arity
    for field, function, seen in (
        ("init", lambda problem, params: 0, "2 arguments"),
        ("act", lambda state, key: 0, "2 arguments"),
        ("update", lambda state: 0, "1 argument"),
        ("report", lambda: {}, "0 arguments"),
        ("constants", lambda problem, params, *, more: 0, r"\(problem, params, \*, more\)"),
        ("check", functools.partial(lambda a, b: 0, 1, 2), "0 arguments"),
    ):
        match = rf"^learner 'mine': {field} takes {seen}; accepted: {field}\({SIGNATURES[field]}\)$"
        with pytest.raises(LearnerError, match=match):
            learner._replace(**{field: function})
        fields = {**learner._asdict(), field: function}
        with pytest.raises(LearnerError, match=match):
            jb.Learner(**fields)
    match = r"^block form: next_block takes 1 argument; accepted: next_block\(state, constants\)$"
    with pytest.raises(LearnerError, match=match):
        jb.BlockForm(three[0], lambda state: 0, lambda *_: 0)
    with pytest.raises(LearnerError, match="act takes 2 arguments"):
        jb.Learner(three[0], jax.jit(lambda state, key: 0), three[2])


def test_what_is_called_decides_and_what_has_no_signature_passes():
    def old(state, key):
        return state

    @functools.wraps(old)
    def adapted(state, key, constants):
        return old(state, key)

    for act in (adapted, jax.jit(lambda state, key, constants: 0), max, functools.partial(adapted)):
        assert jb.Learner(max, act, max).act is act


def test_needs_is_the_old_name_of_requires():
    with pytest.warns(DeprecationWarning, match="now Learner.requires"):
        assert jb.make_learner("ordered-expref").needs == ("rank",)
