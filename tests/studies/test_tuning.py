"""Tuning on small problems where the answer is known."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.studies.tuning import Range, grid_settings, random_settings, split, with_settings

SIZES = {"horizon": 3, "capacity": 1, "num_values": 3}


@pytest.fixture(scope="module")
def draws():
    return {"I2": jb.family("prophet-random", count=8, key=jax.random.key(5), **SIZES)}


@pytest.fixture(scope="module")
def tuned(draws):
    space = {"bonus_scale": [0.02, 0.5, 8.0]}
    return jb.tune(
        jb.make_learner("ucbvi", bonus_scale=8.0), space, draws, budget=150, num_episodes=400, progress=False
    )  # fmt: skip


def test_large_bonuses_lose(tuned):
    assert tuned.settings == {"bonus_scale": 0.02}
    assert float(tuned.learner.params["bonus_scale"]) == pytest.approx(0.02)
    dropped = {c.settings["bonus_scale"]: c.dropped for c in tuned.candidates}
    assert dropped[0.02] is None
    assert dropped[8.0] is not None
    assert tuned.runs <= 150
    assert tuned.check.learners[0] == "chosen"


def test_training_regret_is_that_of_plain_sweeps(tuned, draws):
    mdps, _, _ = split(draws, None)
    first = jb.sweep(
        {"UCB-VI": jb.make_learner("ucbvi", bonus_scale=8.0)},
        mdps, 400, num_seeds=2, record=jb.record.linear(1), progress=False,
    )  # fmt: skip
    worst = next(c for c in tuned.candidates if c.settings["bonus_scale"] == 8.0)
    if worst.dropped == 1:
        assert worst.regret.value == pytest.approx(float(first["regret"].isel(episode=-1).mean()))
    assert worst.regret.n == 8 * 2 ** (worst.dropped - 1)


def test_words_and_tables(tuned):
    text = str(tuned)
    assert text.startswith("bonus_scale 0.02 (")
    assert "check on 4 instances kept back: 1" in text
    assert tuned.table("markdown").count("\n") == 4
    assert "after round" in tuned.table()


def test_training_and_checking_are_apart(draws):
    training, checking, words = split(draws, None)
    assert (len(training["I2"]), list(checking)) == (4, ["I2 (kept back)"])
    together = [mdp for pair in zip(training["I2"], checking["I2 (kept back)"], strict=True) for mdp in pair]  # fmt: skip
    for j, mdp in enumerate(together):
        np.testing.assert_array_equal(mdp.reward, np.asarray(draws["I2"].reward)[j])
    assert words == "4 instances kept back"
    one = {"I1": jb.make_instance("prophet-uniform", **SIZES)}
    assert split(one, None)[2] == "the same instances with other seeds"
    assert split(one, draws)[2] == "8 other instances"
    two = {**one, "I3": jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)}
    assert [list(part) for part in split(two, None)[:2]] == [["I1"], ["I3 (kept back)"]]
    with pytest.raises(ValueError, match=r"check\['mine'\]: the same as instances\['I1'\]"):
        split(one, {"mine": one["I1"]})


def test_random_search_over_a_range():
    mdp = jb.make_instance("prophet-uniform", **SIZES)
    found = jb.tune(
        jb.make_learner("ucbvi"), {"bonus_scale": jb.Range(0.01, 10.0)}, {"I1": mdp},
        budget=40, num_episodes=200, seed=3, progress=False,
    )  # fmt: skip
    assert len(found.candidates) == 10
    assert len({c.settings["bonus_scale"] for c in found.candidates}) == 10
    assert found.settings["bonus_scale"] < 1


def test_whole_learners_keep_what_is_not_tuned():
    learner = jb.make_learner("ordered-expref", preset="practical")
    changed = with_settings(learner, {"threshold": 0.2})
    assert changed.rules == learner.rules
    for name, value in learner.params.items():
        if name != "threshold":
            np.testing.assert_array_equal(changed.params[name], value)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"space": {"bonus": [1.0]}}, "no scalar parameter 'bonus'; accepted: bonus_scale"),
        ({"space": {}}, "space: {}; accepted"),
        ({"method": "bayes"}, "method: 'bayes'.*accepted: grid, random"),
        ({"num_candidates": 3}, "num_candidates: 3 with method 'grid'"),
        ({"budget": 3}, "budget: 3 runs; accepted: at least 4"),
    ],
)
def test_errors_name_what_is_accepted(how, message):
    mdp = jb.make_instance("prophet-uniform", **SIZES)
    known = {"space": {"bonus_scale": [0.1, 1.0]}, "budget": 100}
    with pytest.raises(ValueError, match=message):
        jb.tune(
            jb.make_learner("ucbvi"), instances={"I1": mdp}, num_episodes=50, progress=False, **{**known, **how}
        )  # fmt: skip


def test_random_settings_fill_every_part_of_a_range():
    settings = random_settings({"c": Range(0.01, 100.0), "d": Range(-1, 1, log=False)}, 40, key=3)
    logs = np.sort(np.log10([s["c"] for s in settings]))
    np.testing.assert_array_equal(np.floor((logs + 2) * 10), np.arange(40))
    plain = np.sort([s["d"] for s in settings])
    np.testing.assert_array_equal(np.floor((plain + 1) * 20), np.arange(40))


def test_lists_are_drawn_without_repetition():
    space = {"a": [1.0, 2.0, 3.0], "b": [0.1, 0.2]}
    every = grid_settings(space)
    assert len(every) == 6
    some = random_settings(space, 4)
    assert len(some) == 4
    assert all(s in every for s in some)
    assert len({tuple(s.values()) for s in some}) == 4
    assert random_settings(space, 100) == every
    mixed = random_settings({"a": [1.0, 2.0], "c": Range(1.0, 2.0)}, 30)
    assert {s["a"] for s in mixed} == {1.0, 2.0}


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({}, "space: .*accepted: a non-empty dictionary"),
        ({"a": []}, r"space\['a'\]: \[\]; accepted"),
        ({"a": Range(1.0, 2.0)}, "a list of values with method 'grid'"),
    ],
)
def test_spaces_that_are_no_grid(space, message):
    with pytest.raises(ValueError, match=message):
        grid_settings(space)
