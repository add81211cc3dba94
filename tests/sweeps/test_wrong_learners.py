"""No number for a wrong learner: a sweep ends with an error that names the learner, the episode and the place."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.errors import LearnerError
from jaxbandit.learner import BlockForm, Blocks
from jaxbandit.learners import from_blocks

H, K, A = 3, 1, 3
EPISODES = 10
"""Of a block."""

ROWS = {
    "nothing": [0.0, 0.0, 0.0],
    "negative": [-0.5, 0.5, 1.0],
    "sum 5": [1.0, 1.0, 3.0],
    "nan": [jnp.nan, 0.5, 0.5],
}
SEEN = {
    "nothing": r"\[0(\.0)?, 0(\.0)?, 0(\.0)?\]",
    "negative": r"\[-0\.5, 0\.5, 1(\.0)?\]",
    "sum 5": r"\[1(\.0)?, 1(\.0)?, 3(\.0)?\]",
    "nan": r"\[nan, 0\.5, 0\.5\]",
}


MDP = jb.make_instance("prophet-uniform", horizon=H, capacity=K, num_values=A)


def run(learner, engine="episodes", num_episodes=50):
    return jb.sweep(
        {"mine": learner}, {"I": MDP}, num_episodes, 3, engine=engine,
        record=jb.record.linear(2), progress=False,
    )  # fmt: skip


def init(problem, constants, key):
    return jnp.int32(0)


def update(state, policy, feedback, constants):
    return state + 1


def actions_after(first, action):
    """All zeros, but at stage 2, level 1 from an episode on."""

    def act(state, key, constants):
        policy = jnp.zeros((H, K + 1), jnp.int32)
        return jnp.where(state >= first, policy.at[1, 1].set(action), policy)

    return jb.Learner(init, act, update, name="stranger")


@pytest.mark.parametrize(
    ("first", "action"), [(1, A), (1, -1), (1, 2**31 - 1), (0, 7), (49, 7), (50, 7)]
)
def test_an_action_out_of_range_from_some_episode_on(first, action):
    """The policy after the last episode is never played, but it is the final policy of the result."""
    place = f"learner 'stranger', episode {first + 1}, stage 2, level 1: action {action}"
    with pytest.raises(LearnerError, match=rf"{place}; accepted: 0\.\.2"):
        run(actions_after(first, action))


def right():
    return jnp.full((H, K + 1, A), 1 / 3, jnp.result_type(float))


@pytest.mark.parametrize("name", ROWS)
def test_probabilities_that_are_none(name):
    def act(state, key, constants):
        return jnp.where(state >= 1, right().at[1, 1].set(jnp.asarray(ROWS[name])), right())

    where = "learner 'stranger', episode 2, stage 2, level 1: probabilities "
    with pytest.raises(LearnerError, match=where + SEEN[name] + "; accepted: 3 probabilities >= 0"):
        run(jb.Learner(init, act, update, name="stranger"))


def test_half_floats_whose_sum_would_be_rounded_to_1():
    row = jnp.asarray([1, 2**-9, 2**-9], jnp.bfloat16)
    learner = jb.Learner(init, lambda state, key, constants: right().astype(row.dtype).at[1:, 1].set(row).at[0, 1].set(row), update,
                         name="stranger")  # fmt: skip
    saying = (
        r"episode 1, stage 1, level 1: probabilities \[1.0, 0.00195.*; accepted: 3 probabilities"
    )
    with pytest.raises(LearnerError, match=saying):
        run(learner)


@pytest.mark.parametrize("number", [2**32 + 1, 2**63 - 1, -(2**32)])
def test_an_action_whose_last_32_bits_are_one(number):
    """Where x64 is off, jax would make an action of it."""
    policy = np.ones((H, K + 1), np.int64)
    policy[1, 1] = number
    learner = jb.Learner(init, lambda state, key, constants: policy, update, name="stranger")
    saying = r"episode 1, stage 2, level 1: action (2147483647|-1); accepted: 0\.\.2"
    with pytest.raises(LearnerError, match=saying):
        run(learner)
    with pytest.raises(LearnerError, match=saying):
        jb.run(learner, MDP, 10, jax.random.key(0))


@pytest.mark.parametrize("kind", ["uint8", "uint32"])
def test_actions_of_any_integer_type_are_actions(kind):
    """And ``update`` gets them as ``act`` gave them."""

    def learner(kind):
        def kept(state, policy, feedback, constants):
            assert policy.dtype == kind
            return state + 1

        policy = jnp.asarray([[0, 1], [0, 2], [0, 0]], kind)
        return jb.Learner(init, lambda state, key, constants: policy, kept, name="mine")

    expected = run(learner("int32"))["regret"]
    np.testing.assert_array_equal(run(learner(kind))["regret"], expected)
    once = jb.run(learner(kind), MDP, 50, jax.random.key(0))
    np.testing.assert_allclose(once.regret[-1], expected.values[0, 0, 0, -1], rtol=1e-6)


def block_form(**late):
    """Blocks of EPISODES episodes; from the second one on, the fields ``late`` are others."""

    def next_block(state, constants):
        policy = right()
        plain = Blocks(policy, jnp.int32(0), policy[:1], jnp.full((1,), float(EPISODES)))
        wrong = {}
        for name, value in late.items():
            field = getattr(plain, name)
            dtype = value.dtype if isinstance(value, np.integer) else field.dtype
            wrong[name] = jnp.where(state >= 1, jnp.asarray(value, dtype), field.astype(dtype))
        return plain._replace(**wrong)

    return BlockForm(init, next_block, lambda state, episodes, totals, constants: state + 1)


def from_form(form):
    return from_blocks(form, name="stranger", params={})


@pytest.mark.parametrize("where", ["policy", "rows"])
@pytest.mark.parametrize("name", ROWS)
def test_blocks_that_cannot_be_played(name, where):
    stage = 1 if where == "policy" else 0
    place = "policy at stage 2" if where == "policy" else r"rows of arm 0 \(stage 1\)"
    wrong = right().at[stage, 1].set(jnp.asarray(ROWS[name]))
    learner = from_form(block_form(**{where: wrong if where == "policy" else wrong[:1]}))
    saying = f"learner 'stranger', after {EPISODES} episodes: block 2 of next_block has {place}, level 1: "
    with pytest.raises(LearnerError, match=saying + SEEN[name]):
        run(learner, "blocks")


def test_the_same_block_learner_episode_by_episode():
    wrong = right().at[1, 1].set(jnp.asarray(ROWS["sum 5"]))
    where = f"learner 'stranger', episode {EPISODES + 1}, stage 2, level 1: probabilities "
    with pytest.raises(LearnerError, match=where + SEEN["sum 5"]):
        run(from_form(block_form(policy=wrong)), "episodes")


STRANGE_BLOCKS = {
    "stage -1": {"stage": -1},
    "stage H": {"stage": H},
    "no episodes": {"episodes": 0.0},
    "2.5 episodes": {"episodes": 2.5},
    "-1 episodes": {"episodes": -1.0},
    "nan episodes": {"episodes": jnp.nan},
}


@pytest.mark.parametrize("name", STRANGE_BLOCKS)
def test_blocks_that_cannot_begin_are_none_episode_by_episode_either(name):
    learner = from_form(block_form(**STRANGE_BLOCKS[name]))
    with pytest.raises(LearnerError, match="learner 'stranger', after 10 episodes: block 2"):
        run(learner, "blocks")
    with pytest.raises(LearnerError, match=r"learner 'stranger', episode 11, stage ., level 1"):
        run(learner, "episodes")


def test_a_policy_that_was_wrong_once():
    """A function that is not pure: asked again, it plays well. Its regret was nan, and no result may have that."""
    asked = []

    def host(state):
        asked.append(int(state))
        wrong = asked[-1] == 20 and asked.count(20) == 1
        return np.full((H, K + 1), 9 if wrong else 0, np.int32)

    def act(state, key, constants):
        shape = jax.ShapeDtypeStruct((H, K + 1), jnp.int32)
        return jax.pure_callback(host, shape, state, vmap_method="sequential")

    with pytest.raises(LearnerError, match="'stranger': what it played in episode 21 was no pol"):
        run(jb.Learner(init, act, update, name="stranger"))


def test_a_policy_that_changes_once_is_evaluated_from_then_on():
    sure = jnp.zeros((H, K + 1, A)).at[..., 2].set(1)

    def act(state, key, constants):
        return jnp.where(state >= 10, sure, right())

    found = run(jb.Learner(init, act, update, name="mine"))["regret"]
    expected = 10 * float(jb.regret(MDP, right())) + 40 * float(jb.regret(MDP, sure))
    np.testing.assert_allclose(found[..., -1], expected, rtol=1e-5)


def test_a_stage_whose_last_32_bits_are_one():
    with pytest.raises(LearnerError, match=r"block 2 of next_block has stage: 2147483647; acc"):
        run(from_form(block_form(stage=np.int64(2**32))), "blocks")


@pytest.mark.parametrize("engine", ["episodes", "blocks"])
def test_reports_have_64_bits(engine):
    """5 blocks of 10 episodes; in 32 bits 5 x 10^9 would be 705,032,704, and a third another number."""

    def report(state):
        return {"large": state.astype(jnp.int64) * 10**9, "third": jnp.float64(1) / 3}

    found = run(from_form(block_form()._replace(report=report)), engine)
    assert set(found["large"].values.ravel()) == {5 * 10**9}
    assert set(found["third"].values.ravel()) == {1 / 3}


@pytest.mark.parametrize(
    ("functions", "saying"),
    [
        ({"act": lambda state, key, constants: None}, "act gives NoneType; accepted: actions"),
        ({"act": lambda state, key, constants: [[0, 0]] * H}, "act gives list; accepted: actions"),
        ({"update": lambda *_: None}, "update gives .*None.*; accepted: a state like that of init"),
        (
            {"update": lambda state, *_: jnp.float32(0.5)},
            r"update gives .*float32 \[\]; accepted: a state",
        ),
        ({"init": lambda *_: "x"}, "init gives str; accepted: a tree of arrays"),
    ],
)
def test_functions_that_do_not_fit_together(functions, saying):
    """Not jax's words for it, which name no learner."""
    learner = actions_after(99, 0)._replace(**functions)
    with pytest.raises(LearnerError, match=f"learner 'stranger': {saying}"):
        run(learner)


def test_constants_whose_shapes_depend_on_a_parameter():
    learner = jb.Learner(
        init, lambda state, key, constants: jnp.zeros((H, K + 1), jnp.int32), lambda state, *_: state,
        name="stranger", params={"n": np.int32(1)}, constants=lambda problem, params: np.zeros(params["n"]),
    )  # fmt: skip
    with pytest.raises(LearnerError, match=r"'stranger': constants gives .*\[1\] and .*\[2\]; acc"):
        run(jb.grid(learner, n=[1, 2]))


@pytest.mark.parametrize(
    "function",
    ["init", "act", "update", "report", "constants", "next_block", "absorb", "metrics"],
)
def test_errors_of_the_users_own_say_where_they_were(function):
    """Shown as they came, and with whose they are."""

    def wrong(*given):
        return {}["x"]

    learner, metrics, note = actions_after(99, 0), {}, f"in {function} of learner 'stranger'"
    if function == "metrics":
        metrics, note = {"mine": wrong}, "in metrics['mine']"
    elif function in BlockForm._fields[1:3]:
        learner = from_form(block_form()._replace(**{function: wrong}))
    else:
        learner = learner._replace(**{function: wrong})
    with pytest.raises(KeyError) as error:
        jb.sweep({"mine": learner}, {"I": MDP}, 10, 1, metrics=metrics, progress=False)
    assert note in error.value.__notes__


def test_absorb_that_gives_another_state_episode_by_episode():
    form = block_form()._replace(absorb=lambda state, *given: jnp.float32(0.5))
    with pytest.raises(LearnerError, match=r"learner 'stranger': absorb returns .*float32 \[\]"):
        run(from_form(form), "episodes")


@pytest.mark.parametrize("engine", ["episodes", "blocks"])
def test_a_report_cannot_take_the_name_of_a_result(engine):
    form = block_form()._replace(report=lambda state: {"regret": jnp.float32(0)})
    with pytest.raises(
        ValueError, match="'stranger': report: 'regret'; accepted: names other than"
    ):
        run(from_form(form), engine)


@pytest.mark.parametrize(
    ("name", "value", "saying"),
    [
        ("two\nlines", 1.0, r"report: name .* has the character '\\n'"),
        ("a/b", 1.0, "report: 'a/b'; accepted: names without"),
        ("depth", 1j, "report: depth: complex.*; accepted: arrays of numbers"),
        ("guess", 1.0, "report: 'guess'; accepted: names other than those of the metrics, guess"),
    ],
)
def test_a_report_that_no_result_can_hold(name, value, saying):
    learner = jb.make_learner("uniform")._replace(report=lambda state: {name: jnp.asarray(value)})
    metrics = {"guess": jb.metrics.best_guess_gap}
    with pytest.raises(ValueError, match=f"learner 'uniform': {saying}"):
        jb.sweep({"mine": learner}, {"I": MDP}, 10, 1, metrics=metrics, progress=False)


@pytest.mark.parametrize("engine", ["episodes", "blocks"])
def test_needs_with_a_typo(engine):
    learner = jb.make_learner("expref")._replace(requires=("ranks",))
    with pytest.raises(
        ValueError, match="'expref': requires: 'ranks'; accepted: rank, optimal_polic"
    ):
        run(learner, engine)


def test_nothing_of_a_wrong_learner_is_kept(tmp_path):
    """What ran before the error is no result, and running again says the same."""
    for _ in range(2):
        with pytest.raises(LearnerError, match="episode 42, stage 2, level 1: action 7"):
            jb.sweep(
                {"mine": actions_after(41, 7)}, {"I": MDP}, 50, 2, chunk_size=10,
                checkpoint=tmp_path, checkpoint_seconds=0, progress=False,
            )  # fmt: skip
        assert not list(tmp_path.glob("done-*"))
