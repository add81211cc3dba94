"""The contract: what a learner declares, how its functions fit together, its constants, and how it prints."""

import decimal
import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.errors import LearnerError
from jaxbandit.learner import (
    COORDINATES,
    RESERVED,
    SIGNATURES,
    check_blocks,
    check_contract,
    check_first_state,
    check_report,
    check_same_state,
    check_steps,
    is_policy,
    make_constants,
    wrong_policy,
)
from jaxbandit.xla.compat import x64

TINY = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
SOUND = jb.make_learner("uniform")
H_K_A = (3, 1, 2)
SIZES = {"horizon": 15, "width": 2, "num_actions": 5}


def refused(message):
    return pytest.raises(ValueError, match=f"learner 'uniform': {message}")


def sweep(learner, **options):
    return jb.sweep(learner, TINY, num_episodes=40, num_seeds=2, progress=False, **options)


# What is declared.


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
    with refused(message):
        check_contract(SOUND._replace(**change))


@pytest.mark.parametrize("feedback", ["segments:2", "trajectory", "semi-bandit"])
def test_a_block_form_hears_sums_alone(feedback):
    with pytest.raises(ValueError, match="accepted: one-bit or bandit in block form"):
        check_contract(jb.make_learner("expref")._replace(feedback=feedback))


def test_what_is_no_learner_is_refused():
    with pytest.raises(TypeError, match="learner: 'ucbvi'; accepted: a Learner"):
        check_contract("ucbvi")
    for name in ("", "two\nlines", "\x1b[2J", " "):  # they stand in progress lines and errors
        with pytest.raises(ValueError, match=r"learner: name .*accepted: "):
            check_contract(SOUND._replace(name=name))


@pytest.mark.parametrize("name", RESERVED)
def test_a_report_cannot_take_the_name_of_a_result(name):
    learner = SOUND._replace(report=lambda state: {name: state})
    with refused(f"report: '{name}'; accepted: names other than learner"):
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
        with refused(f"report: .*{message}"):
            check_report(SOUND._replace(report=report), state)
    with pytest.raises(ValueError, match="report: 'bonus_scale'; accepted: names other than"):
        check_report(jb.make_learner("ucbvi")._replace(report=lambda s: {"bonus_scale": s}), state)


def test_reserved_names_are_those_of_a_result():
    results = sweep(SOUND)
    assert set(results.data_vars) - {"phase_end", "active_actions"} <= set(RESERVED)
    assert set(results.coords) <= set(COORDINATES)


def test_functions_of_another_arity_are_refused_when_the_learner_is_made():
    any_arity = (lambda *_: 0,) * 3
    learner = jb.Learner(*any_arity, name="mine")
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
        jb.BlockForm(any_arity[0], lambda state: 0, lambda *_: 0)
    with pytest.raises(LearnerError, match="act takes 2 arguments"):
        jb.Learner(any_arity[0], jax.jit(lambda state, key: 0), any_arity[2])


def test_what_is_called_decides_and_what_has_no_signature_passes():
    def old(state, key):
        return state

    @functools.wraps(old)
    def adapted(state, key, constants):
        return old(state, key)

    for act in (adapted, jax.jit(lambda state, key, constants: 0), max, functools.partial(adapted)):
        assert jb.Learner(max, act, max).act is act


def test_a_block_form_does_not_speak_for_functions_that_were_replaced():
    expref = jb.make_learner("expref")
    other = expref._replace(update=lambda state, policy, feedback, constants: state)
    with pytest.raises(ValueError, match=r"blocks: 'of other functions than its update'; accepted"):
        sweep(other)


# How functions fit together.


def init(problem, constants, key):
    return jnp.int32(0)


def act(state, key, constants):
    return jnp.zeros((3, 2), jnp.int32)


def update(state, policy, feedback, constants):
    return state + 1


def steps(**functions):
    given = {"init": init, "act": act, "update": update, **functions}
    rules = jb.Learner(**given, name="mine").rules
    check_steps(rules, H_K_A, (), jnp.int32(0))


def test_what_fits_is_let_through():
    steps()
    steps(act=lambda state, key, constants: jnp.full((3, 2, 2), 0.5))
    check_first_state({"a": 1, "b": np.zeros(3), "key": jax.random.PRNGKey(0)})


def test_a_key_is_no_array():
    with pytest.raises(
        LearnerError, match=r"init gives \['k'\]: a key; accepted: .*key_data\(key\)"
    ):
        check_first_state({"k": jax.random.key(0)})


@pytest.mark.parametrize(
    ("policy", "seen"),
    [
        (None, "NoneType"),
        ((jnp.zeros((3, 2), jnp.int32),), "tuple"),
        ([[0, 0]] * 3, "list"),
        ("left", "str"),
        (0, r"int32\[\]"),
        (jnp.zeros((3, 2)), r"float32\[3, 2\]"),
    ],
)
def test_what_is_no_policy(policy, seen):
    with pytest.raises(
        LearnerError, match=f"learner 'mine': act gives {seen}; accepted: actions, integers"
    ):
        steps(act=lambda state, key, constants: policy)


@pytest.mark.parametrize(
    ("after", "seen"),
    [(None, "None"), (0.5, r"float32 \[\]"), (np.zeros(2, np.int32), r"int32 \[2\]"), ("x", "str")],
)
def test_another_state(after, seen):
    with pytest.raises(
        LearnerError, match=rf"learner 'mine': update gives .*{seen}.*accepted: a state like that"
    ):
        steps(update=lambda *_: after)


def test_errors_of_the_users_own_say_where_they_were():
    with pytest.raises(KeyError) as error:
        steps(act=lambda state, key, constants: {}["x"])
    assert "in act of learner 'mine'" in error.value.__notes__


def blocks(**fields):
    given = {
        "policy": jnp.full((3, 2, 2), 0.5),
        "stage": jnp.int32(0),
        "rows": jnp.full((1, 2, 2), 0.5),
        "episodes": jnp.full(1, 10.0),
    }
    return jb.Blocks(**(given | fields))


@pytest.mark.parametrize("sizes", [None, H_K_A])
@pytest.mark.parametrize(
    ("given", "saying"),
    [
        (None, "next_block returns NoneType; accepted: jb.Blocks"),
        (blocks(policy=jnp.zeros((3, 2), jnp.int32)), r"policy: int32 \[3, 2\]; accepted: float"),
        (blocks(policy="x"), "policy: str; accepted: float"),
        (blocks(stage=1.5), r"stage: float32 \[\]; accepted: int"),
        (blocks(episodes=jnp.ones(1, bool)), r"episodes: bool \[1\]; accepted: numbers"),
        (blocks(rows=jnp.zeros((2, 2, 2))), r"rows: float32 \[2, 2, 2\]; accepted: float"),
        (
            blocks(rows=jnp.zeros((0, 2, 2)), episodes=jnp.zeros(0)),
            r"rows: .*; accepted: .* = \[1, 2, 2\]",
        ),
    ],
)
def test_what_are_no_blocks(given, saying, sizes):
    check_blocks(blocks(), sizes)
    with pytest.raises(LearnerError, match=saying):
        check_blocks(given, sizes)


def test_absorbing_gives_the_same_kind_of_state():
    check_same_state(jnp.int32(0), jnp.int32(1))
    with pytest.raises(
        LearnerError, match=r"absorb returns .*float32 \[\]; accepted: a state like"
    ):
        check_same_state(jnp.int32(0), jnp.float32(1))


def test_where_a_policy_is_none():
    table = np.zeros((3, 2), np.int32)
    table[0, 0], table[2, 1] = 9, 2
    assert np.argwhere(~np.asarray(is_policy(jnp.asarray(table), 2))).tolist() == [[2, 1]]
    error = wrong_policy("mine", table, 2, 7)
    assert str(error) == "learner 'mine', episode 7, stage 3, level 1: action 2; accepted: 0..1"
    sums = functools.partial(np.full, (3, 2, 3))
    assert is_policy(jnp.asarray(sums(1 / 3)), 3).all()
    for wrong in (sums(0.5), sums(np.nan), sums(0.0), sums(1 / 3).astype(np.float16)):
        assert not is_policy(jnp.asarray(wrong), 3)[:, 1].any()


# Constants.


def episodes_per_arm(num_episodes, phase):
    """ceil(12 ln T 4^r), of ln T to 70 digits."""
    with decimal.localcontext(prec=70):
        return math.ceil(12 * decimal.Decimal(num_episodes).ln() * 4**phase)


def constants_of(learner, num_episodes=10):
    problem = jb.Problem(**SIZES, num_episodes=num_episodes)
    return make_constants(learner, problem, learner.params)


@pytest.mark.parametrize(
    ("num_episodes", "wide"),
    [(2_000_000, False), (57_489_202, False), (2**31 - 2, False), (2**53, True)],
)
def test_the_schedule_is_exact(num_episodes, wide):
    """Whole numbers beyond 2^24 that float32 would round, against exact arithmetic; ``wide``: on the block engine."""
    with x64(wide):
        found = constants_of(jb.make_learner("expref"), num_episodes)
    assert found.episodes_per_arm.dtype == (np.int64 if wide else np.int32)
    assert found.epsilons.dtype == (np.float64 if wide else np.float32)
    count = min(int((found.epsilons > 0).sum()), 12)  # float64 holds eleven digits and more
    exact = [episodes_per_arm(num_episodes, r) for r in range(count)]
    assert found.episodes_per_arm[:count].tolist() == exact
    assert int(found.forever) == num_episodes + 1


def test_blocks_are_as_long_as_the_schedule_says():
    learner, T = jb.make_learner("expref"), 2_000_000
    given = jax.tree.map(jnp.asarray, constants_of(learner, T))
    state = learner.blocks.init(jb.Problem(**SIZES, num_episodes=T), None, None)
    count = int((given.epsilons > 0).sum())
    last = [int(given.episodes_per_arm[count - 1])] * 10
    for phase, episodes in ((count - 1, last), (count, [T + 1] + [0] * 9)):
        block = learner.blocks.next_block(state._replace(phase=jnp.int32(phase)), given)
        assert block.episodes.tolist() == episodes


def test_an_arm_of_57_489_202_episodes_is_that_long():
    """A number that float32 does not hold: the adapter counts the arm down from it."""
    scale = (57_489_201.5) / (12 * math.log(2_000_000_000))
    learner = jb.make_learner("expref", episodes_scale=scale, num_phases=1)
    problem = jb.Problem(**SIZES, num_episodes=2_000_000_000)
    given = jax.tree.map(jnp.asarray, make_constants(learner, problem, learner.params))
    state = learner.init(problem, given, None)
    assert int(state.left) == 57_489_202
    assert int(np.float32(57_489_202)) != 57_489_202


def test_phase_ends_are_exact_beyond_float32():
    """An arm that ends at an odd episode above 2^24 is reported so, on the block engine and by the
    adapter."""
    learner = jb.make_learner("expref", epsilons=[1.0], episodes_scale=1e6)
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
    keys = jax.random.split(jax.random.key(0), (1, 1))
    T = 2_000_000_000
    results, state = jb.testing.run_lanes("blocks", [learner], [mdp], keys, T)
    n = math.ceil(12e6 * math.log(T))
    assert results["phase_end"][0, 0, 0] == 4 * n
    assert state.phase_end[0, 0, 0] == 4 * n
    with x64():
        state = learner.blocks.init(jb.Problem(2, 1, 2, T), None, None)
        long = state._replace(phase_end=jnp.full(32, 2**30 + 1, jnp.int32))
        assert float(learner.blocks.report(long)["phase_end"][0]) == 2**30 + 1


def with_constant(value):
    return SOUND._replace(constants=lambda problem, params: {"x": value})


def test_numbers_that_have_no_place_are_refused():
    for value, message in [
        (2**31, "2147483648; accepted: numbers that int32 holds"),
        (np.asarray([1, 2**40]), "1099511627776; accepted: numbers that int32 holds"),
        (1e300, r"1e\+300; accepted: numbers that float32 holds"),
    ]:
        with refused(rf"constants\['x'\]: {message}"):
            constants_of(with_constant(value))
        with x64():
            np.testing.assert_array_equal(constants_of(with_constant(value))["x"], value)
    kept = constants_of(with_constant(np.asarray([np.inf, np.nan])))["x"]
    np.testing.assert_array_equal(kept, np.float32([np.inf, np.nan]))
    assert constants_of(with_constant(True))["x"].dtype == np.bool_
    # The one number of a schedule that does not fit the integers of an episode engine.
    with pytest.raises(ValueError, match=r"learner 'expref': constants.forever: 2147483648"):
        constants_of(jb.make_learner("expref"), 2**31 - 1)


def test_constants_are_evaluated_in_float64():
    seen = {}

    def constants(problem, params):
        seen.update(episodes=problem.num_episodes, dtype=jnp.zeros(()).dtype)
        return jnp.log(jnp.asarray(problem.num_episodes, float))

    value = constants_of(SOUND._replace(constants=constants), 10**15)
    assert seen == {"episodes": 10**15, "dtype": np.float64}
    assert value == np.float32(math.log(10**15))


@pytest.mark.parametrize(
    ("value", "seen"),
    [("x", "'x'"), (10**30, "1000000"), (np.array([None]), "array"), (jax.random.key(0), "a key")],
)
def test_what_is_no_number_is_refused(value, seen):
    with refused(rf"constants\['x'\]: {seen}.*; accepted: a tree"):
        constants_of(with_constant(value))


def test_one_episode():
    keys = jax.random.split(jax.random.key(0), (1, 1))
    for name, engine in itertools.product(("expref", "ordered-expref"), ("episodes", "blocks")):
        found, _ = jb.testing.run_lanes(engine, [jb.make_learner(name)], [TINY], keys, 1)
        assert np.isfinite(found["regret"]).all()


def test_without_constants_they_are_the_parameters():
    learner = SOUND._replace(constants=None, params={"share": 0.1, "table": np.arange(3)})
    found = constants_of(learner)
    assert (found["share"].dtype, found["table"].dtype) == (np.float32, np.int32)
    with x64():
        found = constants_of(learner)
    assert (found["share"].dtype, found["share"]) == (np.float64, 0.1)


# How it prints, and what it is.


LINES = [
    ("expref", {}, ""),
    ("expref", {"preset": "practical"}, ", preset practical"),
    ("expref", {"preset": "practical", "threshold": 0.1}, ", preset practical, threshold 0.1"),
    ("expref", {"threshold": 0.3, "last_epsilon": 0.1}, ", threshold 0.3, last_epsilon 0.1"),
    ("expref", {"epsilons": [0.5, 0.2]}, ", epsilons of 2 phases"),
    (
        "ordered-expref",
        {"preset": "practical-paper-exploration"},
        ", preset practical-paper-exploration",
    ),
    ("policy-gradient", {"learning_rate": 0.1}, ", baseline_decay 0.99, learning_rate 0.1"),
    ("fixed", {"policy": [[0, 1]]}, ", policy [1, 2]"),
    ("uniform", {}, ""),
]


@pytest.mark.parametrize(("name", "parameters", "shown"), LINES)
def test_one_line(name, parameters, shown):
    assert repr(jb.make_learner(name, **parameters)) == f"Learner('{name}', bandit{shown})"


def test_one_line_for_grids_rules_and_values_that_stand_for_none():
    grid = jb.grid(jb.make_learner("expref", preset="practical"), threshold=[0.05, 0.1])
    shown = "Learner('expref', bandit, preset practical, threshold of 2 settings)"
    assert repr(grid.learner) == shown
    assert repr(grid.learner.rules) == "Learner('expref', bandit)"
    assert len(repr(jb.make_learner("ucbvi"))) < 80
    params = {"threshold": np.nan, "num_phases": np.inf, "scale": np.float32(0.5), "table": [1, 2]}
    learner = jb.Learner(max, max, max, name="mine", params=params)
    assert repr(learner) == "Learner('mine', bandit, scale 0.5, table [2])"


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


def test_other_parameter_values_are_equal_rules():
    one, two = jb.make_learner("expref"), jb.make_learner("expref", preset="practical")
    assert one.rules == two.rules
    assert hash(one.rules) == hash(two.rules)
    assert (one.rules.params, one.rules.check) == ((), None)
    assert np.isnan(one.params["threshold"])


def test_needs_is_the_old_name_of_requires():
    with pytest.warns(DeprecationWarning, match="now Learner.requires"):
        assert jb.make_learner("ordered-expref").needs == ("rank",)


def test_sizes_of_a_problem_are_static_and_the_rest_is_data():
    problem = jb.Problem(horizon=3, width=2, num_actions=4, num_episodes=jnp.float32(10))
    seen = jax.jit(lambda p: jnp.zeros((p.horizon, p.width, p.num_actions)) + p.num_episodes)(
        problem
    )
    assert seen.shape == (3, 2, 4)
    assert len(jax.tree.leaves(problem)) == 1
