"""Every public name, called with good and odd values by turns: a right answer, or an error that names the argument.

Some calls here, 10,000 with ``-m slow`` (which prints how many ended how). Answers are
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
ELSEWHERE = ["plot_panels", "plot_regret", "sweep", "from_arrays", "from_gymnasium", "to_arrays", "to_gymnax",
             "ladder"]  # fmt: skip
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
        expected = {
            "evaluate": value,
            "policy_values": families.tails(mdp, policy),
            "regret": fuzzing.value_of(mdp) - value,
            "visitation": families.visits(mdp, policy),
        }[name]
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
        best = fuzzing.value_of(jb.mdp.canonical(mdp))
        np.testing.assert_allclose(float(jb.optimal(mdp)[0]), best, rtol=1e-4, atol=1e-6)
        for leaf in jax.tree.leaves(answer):
            assert np.isfinite(np.asarray(leaf)).all()

    return Case(name, getattr(jb, name), arguments, check)


def record_points(kind, num_episodes, **given):
    points = getattr(jb.record, kind)(**given).points(num_episodes)
    assert points[0] >= 1
    assert points[-1] == num_episodes
    assert (np.diff(points) > 0).all()
    return points


def usual(folder):
    """A function and usual arguments, by name."""
    mdp, learner = fuzzing.pool()[0], jb.make_learner("ucbvi")
    policy = fuzzing.policies(mdp, 0)
    sizes = {"horizon": 2, "capacity": 1, "num_values": 2}
    named = {"name": "fuzzed", "constructor": sizes.get}
    theory = {"ordered": True, "horizon": 3, "width": 2, "num_downs": 2, "num_actions": 2, "num_episodes": 1e6,
              "ratio": 0.5, "episodes_scale": 0.1, "first_epsilon": 1.0}  # fmt: skip
    path = jb.save(fuzzing.sweep_results(), folder / "run.nc")
    cases = {name: (getattr(jb, name), {"mdp": mdp, "policy": policy}) for name in PLANNERS}
    cases |= {name: (getattr(jb, name), {"mdp": mdp}) for name in OF_AN_MDP}
    for name in THEORY:
        function = getattr(jb.theory, name)
        wanted = inspect.signature(function).parameters
        cases[f"theory.{name}"] = function, {p: theory[p] for p in wanted if p in theory}
    grids = {
        "linear": {"count": 3},
        "log": {"count": 3, "first": 2},
        "explicit": {"episodes": [1, 5]},
    }
    for kind, wanted in grids.items():
        call = functools.partial(record_points, kind)
        cases[f"record.{kind}"] = call, {**wanted, "num_episodes": 50}
    return cases | {
        "grid": (jb.grid, {"learner": learner, "bonus_scale": [0.1, 2]}),
        "family": (functools.partial(jb.family, "prophet-random"), {"count": 2, "key": fuzzing.KEY, **sizes}),
        "save": (jb.save, {"dataset": fuzzing.sweep_results(), "path": path, "overwrite": True}),
        "load": (jb.load, {"path": path}),
        "register_instance": (jb.register_instance, named),
        "register_learner": (jb.register_learner, named),
        "make_instance": (jb.make_instance, {"name": "riverswim"}),
        "make_learner": (jb.make_learner, {"name": "uniform"}),
    }  # fmt: skip


def test_odd_values_are_refused_by_name(tmp_path, monkeypatch):
    """Every argument of these functions with every odd value, one at a time."""
    monkeypatch.chdir(tmp_path)
    known = [(registry, registry.constructors) for registry in (jb.INSTANCES, jb.LEARNERS)]
    for name, (function, arguments) in usual(tmp_path).items():
        tried = [{}, *({p: odd} for p, odd in itertools.product(arguments, fuzzing.ODD))]
        for changed in tried:
            for registry, constructors in known:
                monkeypatch.setattr(registry, "constructors", dict(constructors))
            end = outcome(Case(name, function, arguments | changed, lambda answer: True))
            assert changed or end == "right", name


KINDS = [instance, instance, learner, planning, planning, of_an_mdp]
COVERED = {*PLANNERS, *OF_AN_MDP, *RECORDS, *ELSEWHERE, *STUDIES, "record", "theory", "stats", "grid", "family", "save", "load",
           "make_instance", "make_learner", "register_instance", "register_learner", "plan", "lane_key"}  # fmt: skip


@settings(max_examples=90, **RULES)
@given(st.data())
def test_calls_are_answered_rightly_or_refused_by_name(data):
    outcome(data.draw(st.sampled_from(KINDS))(data.draw))


@pytest.mark.slow
def test_ten_thousand_calls(capsys):
    ends = collections.defaultdict(collections.Counter)

    @settings(max_examples=10_000, **RULES)
    @given(st.data())
    def many(data):
        kind = data.draw(st.sampled_from([*KINDS, study, study]))
        ends[kind.__name__][outcome(kind(data.draw))] += 1

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
