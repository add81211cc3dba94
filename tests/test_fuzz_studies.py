"""What is done with results, instances and learners, called with good and odd values by turns: see `test_fuzz`."""

import functools
import itertools
import json

import families
import fuzzing
import jax
import numpy as np
import pytest
import synthetic_sweep
from fuzzing import RULES, Case, drawn, outcome
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxbandit as jb

pytestmark = pytest.mark.usefixtures("promotion_as_users_have_it")

TABLES = {"values": [[1.0, 4.0]] * 2, "probabilities": [[0.5, 0.5]] * 2, "capacity": 1}
MDP = jb.label(jb.make_instance("posted-pricing", **TABLES), unit="$")
ORACLE, UNIFORM, UCBVI, EXPREF = map(jb.make_learner, ("oracle", "uniform", "ucbvi", "expref"))
HOW = {"record": jb.record.linear(2), "progress": False}


@functools.cache
def real():
    """A sweep, small enough to know all about it."""
    return jb.sweep({"best": ORACLE, "any": UNIFORM}, {"shop": MDP}, 10, 4, **HOW)


@functools.cache
def varied():
    return synthetic_sweep.with_parameter_grid(fuzzing.sweep_results())


@functools.cache
def shards():
    return [jb.sweep({"any": UNIFORM}, {"shop": MDP}, 10, 3, shard=(i, 2), **HOW) for i in (1, 2)]


def check_description(arguments, found):
    kinds = [entry.kind for entry in found.entries]
    assert kinds
    assert arguments["kind"] in (None, *kinds)
    assert all(entry.name == arguments["name"] for entry in found.entries)


def check_hardness(arguments, found):
    """All policies of a small instance, one by one."""
    mdp = arguments["mdp"]
    every = families.all_policies(mdp)
    values = [fuzzing.value_of(mdp, policy) for policy in every]
    assert found.optimal_value == pytest.approx(max(values), rel=1e-5, abs=1e-6)
    most = np.max([families.visits(mdp, policy) for policy in every], axis=0)[:, 1:]
    assert found.num_states == (most > 0).sum()
    assert found.num_policies == mdp.num_actions ** int(found.num_states)
    assert 1 <= found.num_optimal_policies <= found.num_policies
    assert found.visitation_ratio <= found.visitation_bound * (1 + 1e-6)


def check_labels(arguments, found):
    words = jb.labels_of(found)
    if arguments.get("unit") is not None:
        assert words.unit == arguments["unit"]
    if arguments.get("scale") is not None:
        assert words.scale == float(arguments["scale"])
    for text in (words.unit, words.level, *itertools.chain(*words.actions, *words.offers)):
        assert text.isprintable()


def check_trace(arguments, episode):
    mdp, level = arguments["mdp"], int(arguments["mdp"].start)
    for i in range(mdp.horizon):
        place = (i, level, episode.actions[i], episode.outcomes[i])
        assert episode.levels[i] == level
        assert float(np.asarray(mdp.prob)[place]) > 0
        assert float(np.asarray(mdp.reward)[place]) == episode.rewards[i]
        level = int(np.asarray(mdp.next_level)[place])


def check_run(arguments, run):
    points = arguments["record"].points(int(arguments["num_episodes"]))
    np.testing.assert_array_equal(run.episode, points)
    assert (np.diff(run.regret) >= -1e-9).all()
    if arguments["learner"] is ORACLE:
        assert abs(run.regret[-1]) < 1e-5 * points[-1]


def check_points(arguments, found):
    column = [s["bonus_scale"] for s in arguments["settings"]]
    np.testing.assert_array_equal(found.learner.params["bonus_scale"], np.float32(column))


@functools.cache
def alone():
    return jb.sweep({"any": UNIFORM}, {"shop": MDP}, 10, 3, **HOW)


def check_merged(arguments, whole):
    assert whole["regret"].values.tobytes() == alone()["regret"].values.tobytes()


def check_tuned(arguments, tuned):
    assert tuned.settings["bonus_scale"] in list(arguments["space"]["bonus_scale"])
    assert tuned.runs <= arguments["budget"]


def check_decided(arguments, found):
    assert found.looks[-1].num_seeds <= arguments["max_seeds"]
    assert found.comparison.learners[0] == "best"


def check_selected(arguments, part):
    assert set(part["learner"].values.tolist()) == {*synthetic_sweep.LEARNERS}
    left = part["bonus_scale"].sel(learner="UCB-VI").values
    np.testing.assert_allclose(left[np.isfinite(left)], [arguments["bonus_scale"]])


def same_instance(arguments, mdp):
    for name in ("prob", "reward", "next_level", "start"):
        np.testing.assert_array_equal(getattr(mdp, name), getattr(MDP, name))
    assert jb.labels_of(mdp).unit == "$"


def best_policy(arguments, policy):
    loss = float(jb.regret(MDP, policy))  # which checks the policy
    assert arguments["learner"] == "any" or abs(loss) < 1e-6


def in_dollars(arguments, found):
    np.testing.assert_allclose(found["regret"], real()["regret"] * 4)


def drawn_figure(arguments, made):
    """Nothing that is not finite is drawn."""
    for axes in made.figure.axes:
        for line in axes.get_lines():
            x, y = (np.asarray(part, float) for part in line.get_data())
            assert not np.isinf(x).any()
            assert not np.isinf(y).any()


def in_range(arguments, found):
    assert arguments["low"] <= found.at(0.5) <= arguments["high"]


def anything(arguments, found):
    assert found is not None


TEXT = st.sampled_from([None, "$", "<b>", "a title", "100 %", "$x$", "\x1b[31m", "a\nb"])
TITLE = {"title": TEXT}
WHICH = {"kind": st.sampled_from(jb.stats.KINDS), "level": st.sampled_from([None, 0.9])}
INSTANCE = st.sampled_from([None, "shop", "x"])
EPISODES = st.sampled_from([10, 1e1])
SETTINGS = [[{"bonus_scale": 0.5}], [{"bonus_scale": 0.25}, {"bonus_scale": 2}], [{"scale": 1}], [{"bonus_scale": -1}]]  # fmt: skip


NAMES = [
    "Range", "Tuner", "describe", "final_policy", "from_blocks", "hardness", "in_units", "instance_of", "label", "labels_of", "merge", "one_bit",
    *sorted(set(jb.plotting.FIGURES) - {"plot_panels", "plot_regret"}),
    "points", "reference", "reference_sweep", "run", "select", "trace", "tune", "until_decided",
]  # fmt: skip


@functools.cache
def parts():
    """For each of these functions: strategies of its arguments, and what must hold of its answer."""
    ready = st.just(real())
    small = st.sampled_from(fuzzing.pool())
    synthetic = st.just(fuzzing.sweep_results())
    learner = st.sampled_from([None, ["UCB-VI"], "ExpRef", ["x"]])
    new = {name: ({"ds": synthetic, **TITLE}, drawn_figure) for name, figure in jb.plotting.FIGURES.items() if name in NAMES and figure.of == "ds"}  # fmt: skip
    return new | {
        "describe": ({"name": st.sampled_from(["expref", "prophet", "practical", "bandit"]),
                      "kind": st.sampled_from([None, "learner", "instance"])}, check_description),
        "from_blocks": ({"form": st.just(EXPREF.blocks), "name": st.just("mine"), "params": st.just(EXPREF.params),
                         "needs": st.sampled_from([(), ("rank",), ("ranks",)])}, anything),
        "Range": ({"low": st.sampled_from([0.1, 1]), "high": st.sampled_from([2, 1e3]), "log": st.booleans()}, in_range),
        "Tuner": ({"num_instances": st.just(2), "budget": st.just(9), "first_seeds": st.just(2), "level": st.just(0.9),
                   "seed": st.just(0)}, anything),
        "hardness": ({"mdp": small}, check_hardness),
        "label": ({"mdp": st.just(MDP), "unit": TEXT, "scale": st.sampled_from([None, 2, 0.5]), "level": TEXT,
                   "actions": st.sampled_from([None, ["a", "b"], [["a", "b"]] * 2, ["a"]]),
                   "offers": st.sampled_from([None, ["a", "b"], ["a\0", "b"]])}, check_labels),
        "labels_of": ({"mdp": small}, anything),
        "trace": ({"mdp": st.just(MDP), "policy": st.sampled_from([[[0, 1], [1, 0]], np.full((2, 2, 2), 0.5)]),
                   "key": fuzzing.KEYS}, check_trace),
        "run": ({"learner": st.sampled_from([ORACLE, UNIFORM]), "mdp": st.just(MDP), "num_episodes": EPISODES,
                 "key": fuzzing.KEYS, "record": st.just(jb.record.linear(2))}, check_run),
        "one_bit": ({"learner": st.sampled_from([UCBVI, jb.make_learner("expref")])}, anything),
        "points": ({"learner": st.just(UCBVI), "settings": st.sampled_from(SETTINGS)}, check_points),
        "final_policy": ({"ds": ready, "learner": st.sampled_from(["best", "any"]), "instance": INSTANCE,
                          "seed": st.sampled_from([0, 3, 4]), "parameter": st.just(0)}, best_policy),
        "instance_of": ({"ds": ready, "instance": INSTANCE}, same_instance),
        "in_units": ({"ds": ready}, in_dollars),
        "select": ({"ds": st.just(varied()), "bonus_scale": st.sampled_from([0.1, 0.5, 2, 3])}, check_selected),
        "merge": ({"shards": st.sampled_from([shards(), shards()[::-1], shards()[:1], shards() * 2])}, check_merged),
        "reference": ({"name": st.just("prophet"), "mine": st.sampled_from([None, real()])}, anything),
        "reference_sweep": ({"name": st.just("prophet")}, anything),
        "tune": ({"learner": st.just(UCBVI), "space": st.just({"bonus_scale": [0.5, 2]}),
                  "instances": st.just({"shop": MDP}), "budget": st.sampled_from([8, 16]),
                  "num_episodes": EPISODES, "check_seeds": st.just(4), "first_seeds": st.just(2),
                  "level": st.just(0.9), "seed": st.just(1), "method": st.sampled_from([None, "grid"]), "score": st.sampled_from(["mean", "worst-ratio"]),
                  "num_candidates": st.none(), "check": st.none()}, check_tuned),
        "until_decided": ({"learners": st.just({"any": UNIFORM, "best": ORACLE}), "instances": st.just({"shop": MDP}),
                           "num_episodes": EPISODES, "max_seeds": st.sampled_from([4, 8]), "first_seeds": st.just(4),
                           "level": st.just(0.9), "indifference": st.sampled_from([0, 1.0]), "seed": st.just(0),
                           "checkpoint": st.none()}, check_decided),
        "plot_comparison": ({"comparison": st.just(jb.stats.compare(real())), **TITLE}, drawn_figure),
        "plot_profiles": ({"profiles": st.just(jb.stats.performance_profiles(fuzzing.sweep_results(), num_resamples=50)), **TITLE}, drawn_figure),
        "plot_final": ({"ds": synthetic, "learners": learner, "family": st.sampled_from(["I1", "I2"]),
                        "x_scale": st.sampled_from(["linear", "log"]),
                        **WHICH, **TITLE}, drawn_figure),
        "plot_instance": ({"mdp": st.just(MDP), **TITLE}, drawn_figure),
        "plot_episode": ({"mdp": st.just(MDP), "episode": st.just(jb.trace(MDP, jb.optimal(MDP)[1], jax.random.key(0))), **TITLE}, drawn_figure),
        "plot_metric": ({"ds": st.just(fuzzing.sweep_results().assign(gap=fuzzing.sweep_results()["regret"])), "name": st.just("gap"), "learners": learner,
                         "family": st.sampled_from(["I1", "I2"]), **WHICH, **TITLE}, drawn_figure),
        "plot_parameter": ({"ds": st.just(varied()), "parameter": st.sampled_from([None, "bonus_scale"]),
                            "instance": st.just("I1"), "y_scale": st.sampled_from(["linear", "log"]),
                            **WHICH, **TITLE}, drawn_figure),
        "plot_policy": ({"policy": st.sampled_from([[[0, 1], [1, 0]], np.full((2, 2, 2), 0.5)]),
                         "against": st.sampled_from([None, MDP]), **TITLE}, drawn_figure),
        "plot_active_sets": ({"ds": synthetic, "learner": st.sampled_from(["ExpRef", "UCB-VI"]), "instance": st.just("I1"),
                              "phases": st.sampled_from([None, [1], [9]]), "columns": st.just(2), **TITLE}, drawn_figure),
    }  # fmt: skip


def call(name, /, **arguments):
    if name in ("tune", "until_decided"):
        arguments |= {"progress": False}
    return getattr(jb, name)(**arguments)


def study(draw):
    name = fuzzing.evenly(draw).choice(NAMES)
    strategies, check = parts()[name]
    arguments = drawn(draw, strategies, odds=0.6 / (1 + len(strategies)))
    return Case(name, functools.partial(call, name), arguments, functools.partial(check, arguments))


@settings(max_examples=70, **RULES)
@given(st.data())
def test_studies_are_right_or_refused_by_name(data):
    outcome(study(data.draw))


def test_all_are_there():
    assert sorted(parts()) == NAMES


def test_a_shard_says_which_it_is():
    """What `check_merged` stands on: the parts are parts."""
    assert [json.loads(part.attrs["config"])["shard"] for part in shards()] == [[1, 2], [2, 2]]
