"""Every public name, called with good and odd values by turns: a right answer, or an error that names the argument.

Some two hundred calls here, 10,000 with ``-m slow`` (which prints how many ended how). Answers are
checked against plain Python loops where the instance is small enough, which all of these are.
"""

import collections
import functools
import inspect
import itertools
import math

import families
import fuzzing
import jax
import numpy as np
import pytest
from fuzzing import RULES, Case, drawn, outcome
from hypothesis import given, settings
from hypothesis import strategies as st
from test_fuzz_studies import NAMES as STUDIES
from test_fuzz_studies import study

import jaxbandit as jb
from jaxbandit.learner import Learner

pytestmark = pytest.mark.usefixtures("promotion_as_users_have_it")

PLANNERS = ["evaluate", "policy_values", "regret", "visitation"]
OF_AN_MDP = ["gaps", "mean_reward", "optimal", "optimal_values", "transition_kernel", "validate"]
THEORY = ["thresholds", "schedule", "upper_bound_general", "upper_bound_ordered", "lower_bound_general",
          "lower_bound_ordered", "hard_gap_general", "hard_gap_ordered"]  # fmt: skip
RECORDS = ["BlockForm", "Blocks", "CheckpointError", "INSTANCES", "LEARNERS", "Learner", "MDP", "Plan", "Problem",
           "SweepInterrupted"]  # fmt: skip
"""Containers and errors: they hold what they are given, and its checks are those of the functions."""
TEXTS = [value for value in fuzzing.ODD if isinstance(value, str)]
ELSEWHERE = [
    "plot_panels",
    "plot_regret",
    "sweep",
    "from_arrays",
    "from_gymnasium",
    "to_arrays",
    "to_gymnax",
    "ladder",
]
"""In test_fuzz_sweeps, mdp/test_arrays and experiments/test_ladder."""


def instance(draw):
    name = draw(st.sampled_from(jb.INSTANCES.names()))
    specs = getattr(jb.INSTANCES.constructors[name], "specs", {})
    arguments = drawn(draw, fuzzing.of_an_instance(name, fuzzing.evenly(draw)), specs=specs)
    return Case(name, lambda **a: jb.make_instance(name, **a), arguments, fuzzing.check_instance)


def learner(draw):
    name = draw(st.sampled_from(jb.LEARNERS.names()))
    constructor = jb.LEARNERS.constructors[name]
    specs = getattr(constructor, "specs", {})
    usual = st.sampled_from([None, None, 0.5, 1, 2])
    slips = usual | st.sampled_from([math.nan, math.inf, -1, 0, 0.5, True])
    known = {
        p: s | usual if p in specs else s
        for p, s in fuzzing.of_specs(constructor, {}, slips).items()
    }
    arguments = drawn(draw, known, odds=0.1, specs=specs)
    arguments = {p: v for p, v in arguments.items() if v is not None}

    def check(made):
        assert isinstance(made, Learner)
        leaves = [np.asarray(value) for value in made.params.values()]
        assert all(leaf.dtype.kind in "fiub" for leaf in leaves)
        if made.check is not None:
            made.check({key: np.asarray(value) for key, value in made.params.items()})

    return Case(name, lambda **a: jb.make_learner(name, **a), arguments, check)


def planning(draw):
    name = draw(st.sampled_from(PLANNERS))
    mdp = draw(st.sampled_from(fuzzing.pool()))
    policy = fuzzing.policies(mdp, draw(st.integers(0, 43)))
    arguments = drawn(draw, {"mdp": st.just(mdp), "policy": st.just(policy)}, odds=0.1)

    def check(answer):
        mdp, policy = arguments["mdp"], arguments["policy"]
        assert fuzzing.is_policy(mdp, policy)
        value = fuzzing.value_of(mdp, policy)
        if name == "evaluate":
            expected = value
        elif name == "regret":
            expected = fuzzing.best_value(families.as_lists(mdp), int(mdp.start)) - value
        elif name == "visitation":
            expected = families.visits(mdp, policy)
        else:
            answer, expected = answer[0, int(mdp.start)], value
        np.testing.assert_allclose(np.asarray(answer), expected, rtol=1e-4, atol=1e-5)

    return Case(name, getattr(jb, name), arguments, check)


def of_an_mdp(draw):
    name = draw(st.sampled_from(OF_AN_MDP))
    mdp = draw(st.sampled_from(fuzzing.pool()))
    field = draw(st.sampled_from(mdp._fields))
    mdp = mdp._replace(**{field: draw(fuzzing.odd())}) if draw(st.integers(0, 3)) == 0 else mdp
    arguments = drawn(draw, {"mdp": st.just(mdp)}, odds=0.1)

    def check(answer):
        mdp = jb.validate(arguments["mdp"]) if name != "validate" else answer
        best = fuzzing.best_value(families.as_lists(jb.mdp.canonical(mdp)), int(mdp.start))
        np.testing.assert_allclose(float(jb.optimal(mdp)[0]), best, rtol=1e-4, atol=1e-6)
        for leaf in jax.tree.leaves(answer):
            assert np.isfinite(np.asarray(leaf)).all()

    return Case(name, getattr(jb, name), arguments, check)


def record(draw):
    name = draw(st.sampled_from(["linear", "log", "explicit"]))
    lists = st.lists(st.integers(1, 60), max_size=4, unique=True).map(sorted)
    known = {"linear": {"count": fuzzing.sizes()}, "log": {"count": fuzzing.sizes(), "first": fuzzing.sizes()},
             "explicit": {"episodes": lists}}[name]  # fmt: skip
    arguments = drawn(draw, {**known, "num_episodes": st.sampled_from([1, 50, 1e3, 2**53])})

    def call(num_episodes, **rest):
        return getattr(jb.record, name)(**rest).points(num_episodes)

    def check(points):
        assert points.dtype == np.int64
        assert points[0] >= 1
        assert points[-1] == arguments["num_episodes"]
        assert (np.diff(points) > 0).all()

    return Case(f"record.{name}", call, arguments, check)


def theory(draw):
    name = draw(st.sampled_from(THEORY))
    function = getattr(jb.theory, name)
    good = {"ordered": st.booleans(), "num_episodes": st.sampled_from([2, 1e6, 2e6]), "ratio": st.just(0.5),
            "episodes_scale": st.just(0.1), "first_epsilon": st.just(1.0), "max_phases": st.sampled_from([None, 3]),
            "horizon": st.sampled_from([3, 15])}  # fmt: skip
    known = {p: good.get(p, fuzzing.sizes()) for p in inspect.signature(function).parameters}

    def check(answer):
        for part in answer if isinstance(answer, tuple) else [answer]:
            assert part is None or not np.isnan(np.asarray(part, np.float64)).any()
            assert part is None or (np.asarray(part) >= 0).all()

    return Case(f"theory.{name}", function, drawn(draw, known), check)


def grid(draw):
    learner = jb.make_learner("ucbvi")
    arguments = drawn(
        draw, {"learner": st.just(learner), "bonus_scale": st.just([0.1, 2])}, odds=0.6
    )

    def check(points):
        column = points.learner.params["bonus_scale"]
        np.testing.assert_array_equal(column, np.float32(list(arguments["bonus_scale"])))
        assert np.isfinite(column).all()

    return Case("grid", jb.grid, arguments, check)


def family(draw):
    known = {"count": fuzzing.sizes(), "key": fuzzing.KEYS}
    sizes = {"horizon": 2, "capacity": 1, "num_values": 2}

    def check(made):
        fuzzing.check_instance(jax.tree.map(lambda x: x[0], made))

    call = functools.partial(jb.family, "prophet-random")
    return Case("family", call, {**sizes, **drawn(draw, known)}, check)


def files(draw, folder):
    name = draw(st.sampled_from(["save", "load"]))
    path = folder / "run.nc"
    if name == "load":
        jb.save(fuzzing.sweep_results(), path, overwrite=True)
        arguments = drawn(draw, {"path": st.just(path)}, odds=0.5)
        check = lambda ds: ds.identical(fuzzing.sweep_results())  # noqa: E731
    else:
        known = {
            "dataset": st.just(fuzzing.sweep_results()),
            "path": st.just(path),
            "overwrite": st.just(True),
        }
        arguments = drawn(draw, known, odds=0.3)
        check = lambda made: jb.load(made).identical(arguments["dataset"])  # noqa: E731
    return Case(name, getattr(jb, name), arguments, check)


def registration(draw):
    name = draw(
        st.sampled_from(["register_instance", "register_learner", "make_instance", "make_learner"])
    )
    known = {"name": st.just("fuzzed")}
    if name.startswith("register"):
        known["constructor"] = st.just(lambda horizon: horizon)
    arguments = drawn(draw, known, odds=0.7)

    def call(**given):
        try:
            return getattr(jb, name)(**given)
        finally:
            for registry, odd in itertools.product((jb.INSTANCES, jb.LEARNERS), ["fuzzed", *TEXTS]):
                registry.constructors.pop(odd, None)

    return Case(name, call, arguments, lambda made: made is not None)


KINDS = [instance, instance, learner, planning, planning, of_an_mdp, record, theory, grid,
         family, registration]  # fmt: skip
COVERED = {*PLANNERS, *OF_AN_MDP, *RECORDS, *ELSEWHERE, *STUDIES, "record", "theory", "stats", "grid", "family", "save", "load",
           "make_instance", "make_learner", "register_instance", "register_learner", "plan", "lane_key"}  # fmt: skip


@settings(max_examples=200, **RULES)
@given(st.data())
def test_calls_are_answered_rightly_or_refused_by_name(data):
    outcome(data.draw(st.sampled_from(KINDS))(data.draw))


@settings(max_examples=25, **RULES)
@given(data=st.data())
def test_files_are_read_and_written_rightly_or_refused_by_name(data, tmp_path):
    outcome(files(data.draw, tmp_path))


@pytest.mark.slow
def test_ten_thousand_calls(tmp_path, capsys):
    ends = collections.defaultdict(collections.Counter)

    @settings(max_examples=10_000, **RULES)
    @given(st.data())
    def many(data):
        kind = data.draw(st.sampled_from([*KINDS, files, study, study]))
        case = kind(data.draw, tmp_path) if kind is files else kind(data.draw)
        ends[kind.__name__][outcome(case)] += 1

    many()
    with capsys.disabled():
        print()
        for kind, counts in ends.items():
            print(f"{kind:14} {dict(counts)}")
        print("calls:", sum(sum(counts.values()) for counts in ends.values()))


def test_no_public_name_is_forgotten():
    """Functions and classes; what is left of `__all__` are rooms, whose functions have tests of their own."""
    public = {name: getattr(jb, name) for name in jb.__all__}
    callables = {name for name, value in public.items() if not inspect.ismodule(value)}
    assert callables <= COVERED, sorted(callables - COVERED)
