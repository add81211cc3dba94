"""A learner is what it lowers to: its identity keys groups, compiled programs and checkpoints."""

import functools
import typing
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.sweeps.identity import (
    Identity,
    backend_fingerprint,
    changed_parts,
    digest,
    first_difference,
)
from jaxbandit.xla.platforms import use
from jaxbandit.xla.programs import PROGRAMS

MDP = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)


def init(problem, constants, key):
    return jnp.zeros((problem.horizon, problem.width + 1), jnp.int32)


def update(state, policy, feedback, constants):
    return state


def mine(act, **fields):
    """A learner whose regret tells what ``act`` plays: action 0, 1 or 2 everywhere."""
    return jb.Learner(fields.pop("init", init), act, update, name="mine", **fields)


def playing(action):
    return mine(lambda state, key, constants: state + action)


def run(learner, folder=None, **options):
    learners = learner if isinstance(learner, dict) else {"M": learner}
    how = {"num_episodes": 60, "num_seeds": 2, "record": jb.record.linear(2), "progress": False}
    return jb.sweep(learners, {"I": MDP}, checkpoint=folder, **how | options)


def regrets(learner, folder=None, **options):
    return run(learner, folder, **options)["regret"].values.squeeze()


def groups(learner, **options):
    learners = learner if isinstance(learner, dict) else {"M": learner}
    return jb.plan(learners, {"I": MDP}, 60, 2, measure_seconds=0, **options).groups


def parts(learner):
    (group,) = groups(learner)
    return group.parts


@functools.cache
def played(action):
    return regrets(playing(action))


def test_the_digest_of_an_instance_sees_every_array_and_no_label():
    assert digest(MDP) == digest(jb.label(MDP, unit="$"))
    others = [
        MDP._replace(prob=np.asarray(MDP.prob, np.float16)),
        MDP._replace(reward=np.asarray(MDP.reward) / 2),
        MDP._replace(rank=None),
        MDP._replace(start=np.int32(0)),
    ]
    assert len({digest(mdp) for mdp in [MDP, *others]}) == 5


def test_bits_name_what_last_digits_depend_on(monkeypatch):
    here = backend_fingerprint(jax.devices()[0])
    assert here["jax"] == jax.__version__
    with jax.default_matmul_precision("highest"), jax.numpy_rank_promotion("warn"):
        assert backend_fingerprint(jax.devices()[0]) == {
            **here,
            "default_matmul_precision": "highest",
        }
    monkeypatch.setenv("XLA_FLAGS", "--b --a")
    assert backend_fingerprint(jax.devices()[0]) == {**here, "flags": "--a --b"}
    with use("gpu"):
        assert backend_fingerprint(jax.devices()[0])["tiles"] != here["tiles"]


class Pair(typing.NamedTuple):
    """1 == True here, and the sum of a bool and an int32 is another number than that of their halves."""

    first: typing.Any

    def __call__(self, state, key, constants):
        return state + (1 if self.first is True else 2)


class Equal:
    """Says that it equals everything; what is in it cannot be hashed or compared."""

    def __init__(self, action):
        self.actions = [np.full((2, 2), action, np.int32)]

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0

    def __call__(self, state, key, constants):
        return state + self.actions[0]


@pytest.mark.parametrize("made", [lambda n: Pair(n == 1 or n), Equal], ids=["1 == True", "__eq__"])
def test_functions_that_compare_equal_are_not_one_program(made):
    together = regrets({"one": mine(made(1)), "other": mine(made(2))})
    np.testing.assert_array_equal(together, [played(1), played(2)])


def test_what_a_block_learner_is_shown_is_a_part_of_it(tmp_path):
    """The total and a coin of it, for the very same functions: alone, in one sweep in any order, and after a checkpoint."""
    mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
    total = jb.make_learner("expref", episodes_scale=0.01, last_epsilon=0.1, threshold=0.2)
    learners = {"total": total, "coin": jb.one_bit(total)}

    def run(names, **how):
        given = {name: learners[name] for name in names}
        ds = jb.sweep(given, {"I": mdp}, 3000, num_seeds=3, progress=False, **how)
        return {name: ds["regret"].sel(learner=name).values.tolist() for name in names}

    alone = run(["total"]) | run(["coin"])
    assert alone["total"] != alone["coin"]
    assert run(["total", "coin"]) == run(["coin", "total"]) == alone
    learners["mine"] = learners["coin"]
    assert run(["mine"], checkpoint=tmp_path)["mine"] == alone["coin"]
    learners["mine"] = learners["total"]
    with pytest.warns(UserWarning, match="changed: feedback"):
        assert run(["mine"], checkpoint=tmp_path)["mine"] == alone["total"]


def test_learners_that_lower_equal_are_one_group_and_compile_once():
    made = {f"{i}": playing(1) for i in range(3)}
    assert [list(group.grids) for group in groups(made)] == [["0", "1", "2"]]
    regrets(playing(1))
    before = PROGRAMS.count
    np.testing.assert_array_equal(regrets(made), [played(1)] * 3)
    assert PROGRAMS.count == before


def test_lanes_of_one_group_have_the_constants_of_their_own_learner():
    """What ``constants`` gives is no part of the program, so these are one group."""

    def made(action):
        return mine(
            lambda state, key, constants: state + constants,
            constants=lambda problem, params: np.int32(action),
        )

    both = {"one": made(1), "other": made(2)}
    assert len(groups(both)) == 1
    np.testing.assert_array_equal(regrets(both), [played(1), played(2)])


def test_a_checkpoint_never_answers_for_another_program(tmp_path):
    """Two lambdas on one line: their source is the same."""

    def made(fast):
        return mine((lambda s, k, c: s + 1) if fast else (lambda s, k, c: s + 2))  # fmt: skip

    first = regrets(made(fast=True), tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(regrets(made(fast=True), tmp_path), first)
    saying = (
        r"'M' is not what it was .*changed: act: \".*dense<1>.*\" before, \".*dense<2>.*\" now\)"
    )
    with pytest.warns(UserWarning, match=saying):
        np.testing.assert_array_equal(regrets(made(fast=False), tmp_path), played(2))
    assert [path.name[:10] for path in tmp_path.glob("stale-*")] == ["stale-done"]


def given(value):
    return mine(
        lambda state, key, constants: state + 1, constants=lambda problem, params: np.float64(value)
    )


def measured(value):
    return {"metrics": {"mine": lambda state, world: jnp.float32(value)}}


PLAIN = playing(1)
CHANGES = {
    "init": ((PLAIN, {}), (PLAIN._replace(init=lambda p, c, k: init(p, c, k) + 1), {})),
    "update": ((PLAIN, {}), (PLAIN._replace(update=lambda s, p, f, c: jnp.minimum(s, 0)), {})),
    "report": tuple((PLAIN._replace(report=lambda state, v=v: {"mine": jnp.float32(v)}), {}) for v in (1, 2)),
    "constants": tuple((given(value), {}) for value in (1, 2)),
    r"metric mine: .*1\.0+e\+00.*2\.0+e\+00.*": tuple((PLAIN, measured(value)) for value in (1, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_what_changed_is_named(tmp_path, name):
    (one, before), (other, now) = CHANGES[name]
    run(one, tmp_path, **before)
    with pytest.warns(UserWarning, match=rf"\(changed: {name}(: .* now)?\)"):
        found = run(other, tmp_path, **now)
    if "mine" in found:
        assert found["mine"].values.max() == 2


def test_a_changed_block_form_is_named():
    def made(scale):
        form = expref.blocks._replace(
            absorb=lambda s, n, x, c: expref.blocks.absorb(s, n, x * scale, c)
        )
        return jb.from_blocks(form, name="mine", params=expref.params)

    expref = jb.make_learner("expref", threshold=0.2)
    assert changed_parts(parts(made(1.0)), parts(made(0.5))) == ["absorb"]


def test_callbacks_are_not_continued_and_named(tmp_path):
    def act(state, key, constants):
        return jax.pure_callback(lambda x: x, state, state, vmap_method="sequential") + 1

    np.testing.assert_array_equal(regrets(mine(act), tmp_path), played(1))
    with pytest.warns(UserWarning, match=r"changed: act, which calls back \(pure_callback\)"):
        regrets(mine(act), tmp_path)
    assert len(groups({"a": mine(act), "b": mine(lambda s, k, c: act(s, k, c) + 0)})) == 2


def test_a_changed_engine_is_noticed_before_anything_goes_on(tmp_path, monkeypatch):
    from jaxbandit.engines.episodes import loop

    right, plain = played(1), loop.run_chunk
    regrets(playing(1), tmp_path)

    def doubled(*args):
        state, regret, *rest = plain(*args)
        return state, 2 * regret, *rest

    monkeypatch.setattr(PROGRAMS, "compiled", type(PROGRAMS.compiled)())
    monkeypatch.setattr(loop, "run_chunk", doubled)
    # all is there: nothing is lowered, and the numbers are those of the engine that wrote them
    np.testing.assert_array_equal(regrets(playing(1), tmp_path), right)
    assert not PROGRAMS.compiled
    with pytest.warns(UserWarning, match=r"'M' is not what it was .*changed: engine\)"):
        found = regrets(playing(1), tmp_path, num_seeds=3)
    np.testing.assert_array_equal(found[:2], 2 * right)


OFFSET = 1


def body(total, _):
    return total + OFFSET, None


def scanned(state, key, constants):
    return jax.lax.scan(body, state, None, length=1)[0]


def test_a_process_runs_what_the_learner_is_now(monkeypatch):
    """As in a notebook: jax knows ``body`` by its identity, and would take the trace with the old number."""
    learner = mine(scanned)
    np.testing.assert_array_equal(regrets(learner), played(1))
    monkeypatch.setitem(globals(), "OFFSET", 2)
    np.testing.assert_array_equal(regrets(learner), played(2))


def test_other_values_of_parameters_are_no_other_program():
    one, two = (parts(jb.make_learner("ucbvi", bonus_scale=scale)) for scale in (0.5, 1.0))
    assert one == two
    bonus = parts(jb.make_learner("ucbvi", bonus="bernstein"))
    assert "update" in changed_parts(one, bonus) + changed_parts(bonus, one)


def test_another_process_finds_the_same_digests(printed):
    """Nothing in them is an address or the order of a set."""
    program = """
import jaxbandit as jb
mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
for name in ("ucbvi", "expref"):
    (group,) = jb.plan(jb.make_learner(name), mdp, 60, 2, measure_seconds=0).groups
    print(*sorted(group.parts.values()))
"""
    found = [printed(program, PYTHONHASHSEED=seed).splitlines() for seed in ("1", "2")]
    here = [" ".join(sorted(parts(jb.make_learner(name)).values())) for name in ("ucbvi", "expref")]
    assert found == [here, here]


def test_lanes_of_no_group_have_no_parts():
    identity = Identity(None, groups(playing(1)))
    assert identity.parts([("M", "elsewhere", 0, 0)]) is None
    assert identity.parts([("M", "I", 7, 0)]) is None


def test_long_lines_are_cut_around_the_difference():
    one, two = ("x" * 300 + c + "y" * 300 for c in "ab")
    assert len(first_difference(one, two)) < 300
    assert "xa" in first_difference(one, two)


@pytest.mark.slow
def test_nothing_keeps_closures_alive(printed):
    """Programs with 8 MB of constants: as many as 64 MB of texts are kept, whatever the number of sweeps."""
    program = """
import gc, jax.numpy as jnp, numpy as np, jaxbandit as jb
mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
def resident():
    gc.collect()
    return int(next(x for x in open("/proc/self/status") if x.startswith("VmRSS")).split()[1]) / 1024
for number in range(40):
    big = np.random.default_rng(number).random(2**20)
    def act(state, key, constants, big=big):
        return state + (jnp.sum(jnp.asarray(big, jnp.float32)) > 0).astype(jnp.int32)
    learner = jb.make_learner("uniform")._replace(
        init=lambda problem, constants, key: jnp.zeros((2, 2), jnp.int32), act=act,
        update=lambda state, policy, feedback, constants: state, constants=None, params={})
    jb.sweep(learner, mdp, 10, 1, progress=False)
    if number in (15, 39):
        print(resident())
"""
    before, after = map(float, printed(program, JAXBANDIT_COMPILATION_CACHE="none").split())
    # MB: 24 closures have 192, and their copies in float32 would have 96; jax keeps one or two for a program of any size
    assert after - before < 24 * 4
