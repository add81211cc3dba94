"""Sweeps and figures, called with good and odd values by turns: see `test_fuzz`."""

import math

import fuzzing
import pytest
from fuzzing import RULES, Case, drawn, outcome
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxbandit as jb

pytestmark = pytest.mark.usefixtures("promotion_as_users_have_it")

MDP = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=2)
LEARNER = jb.make_learner("uniform")
SWEEP = {
    "learners": st.just({"U": LEARNER}),
    "instances": st.sampled_from([{"I": MDP}, {"I": [MDP, MDP]}, {"A/1": MDP, "A/2": MDP}]),
    "num_episodes": st.sampled_from([10, 1e3, 2**53]),
    "num_seeds": st.sampled_from([1, 3]),
    "seed": st.sampled_from([0, 2**32 - 1]),
    "engine": st.sampled_from(["auto", "episodes"]),
    "record": st.just(jb.record.linear(3)),
    "chunk_size": st.sampled_from([None, 16]),
    "max_lanes": st.sampled_from([None, 2]),
    "max_bytes": st.sampled_from([None, 10**9]),
}
REGRET = {
    "ds": st.just(fuzzing.sweep_results()),
    "learners": st.sampled_from([None, ["UCB-VI"]]),
    "kind": st.sampled_from(jb.stats.KINDS),
    "level": st.sampled_from([None, 0.9]),
    "scale": st.sampled_from(["linear", "loglog"]),
}


@settings(max_examples=200, **RULES)
@given(st.data())
def test_sweeps_are_planned_or_refused_by_name(data):
    arguments = drawn(data.draw, SWEEP, odds=0.12)

    def check(plan):
        lanes = arguments["num_seeds"] * (1 if len(arguments["instances"]) == 1 else 2)
        assert isinstance(plan, jb.Plan)
        assert lanes >= 1

    outcome(Case("sweep", lambda **a: jb.plan(**a, measure_seconds=0), arguments, check))


@settings(max_examples=60, **RULES)
@given(st.data())
def test_figures_are_drawn_or_refused_by_name(data):
    name = data.draw(st.sampled_from(["plot_regret", "plot_panels"]))
    arguments = drawn(data.draw, REGRET, odds=0.15)

    def check(made):
        bands = [
            b
            for panel in made.data.values()
            for b in (panel if isinstance(panel, dict) else {0: panel}).values()
        ]
        assert all(math.isfinite(value) for b in bands for value in getattr(b, "center", ()))

    outcome(Case(name, getattr(jb, name), arguments, check))
