"""The feedback ladder: made-up results go through choice, figures and tables; and the ladder on one's own MDP."""

import itertools

import jax
import numpy as np
import pytest
from jaxbandit.experiments import ladder
from jaxbandit.experiments.ladder import (
    CONTESTANTS,
    RUNGS,
    TINY,
    YARDSTICKS,
    fitting,
    make,
    reached,
)
from made_up_results import make_up, make_up_all
from synthetic_sweep import clipped_texts, texts

import jaxbandit as jb
from jaxbandit.cli import main
from jaxbandit.experiment import Options, load_instance
from jaxbandit.feedback import check_kind
from jaxbandit.sweeps.arguments import expand_instances

NAMES = [*CONTESTANTS, *ladder.segmented(), *YARDSTICKS]
LEVELS = {label: 1.0 + row for row, label in enumerate(NAMES)} | {"uniform": 100.0, "oracle": 0.0}


@pytest.fixture(scope="module")
def plans():
    return ladder.sweeps(Options(instances=4))


@pytest.fixture(scope="module")
def made():
    return make_up_all(ladder.EXPERIMENT, Options(instances=4), levels=LEVELS)


def test_every_rung_has_a_learner_of_its_feedback(plans):
    for label, contestant in CONTESTANTS.items():
        learner = make(label, TINY)
        check_kind(learner.feedback)
        assert contestant.rung.startswith(learner.feedback.replace("one-bit", "one bit"))
        assert len(contestant.values) == make(label, TINY, grid=True).size == 5  # equal budgets
    assert {one.rung for one in CONTESTANTS.values()} == set(RUNGS)
    names = ("tiny", "tiny-prophets", "paper", "paper-prophets", "segments")
    assert list(plans) == [name + end for name in names for end in ("-training", "")]


def test_training_is_apart(plans, made):
    training = expand_instances(plans["tiny-training"]["instances"])
    others = expand_instances(plans["tiny"](made)["instances"])
    assert (len(training), len(others)) == (6, 12)
    for one, other in itertools.product(training.values(), others.values()):
        assert not np.array_equal(one.prob, other.prob)


def test_the_best_setting_is_chosen_and_reported(plans, made):
    for label in ("ExpRef", "PSRL"):
        assert ladder.judged(made["tiny-training"], label).choice == 2
    picked = plans["tiny"](made)["learners"]
    assert float(picked["PSRL"].params["concentration"]) == 3.0
    assert float(picked["ExpRef"].params["threshold"]) == CONTESTANTS["ExpRef"].values[2]
    shown = plans["segments"](made)["learners"]["2 segments"]
    assert shown.feedback == "segments:2"


def test_a_linear_setting_is_refused(plans):
    ds = make_up(plans["tiny-training"], LEVELS)
    episodes = ds["episode"].values
    ds["regret"].loc[{"learner": "PSRL", "parameter": 2}] = 1e-3 * episodes
    assert ladder.judged(ds, "PSRL").choice in (1, 3)
    ds["regret"].loc[{"learner": "PSRL"}] = 1e-3 * episodes
    assert ladder.judged(ds, "PSRL").choice == 0  # all are linear: the first of the best


def test_figures_and_tables_have_every_learner_on_its_rung(made):
    drawn = ladder.figures(made, Options())
    both = [f"ladder_{name}{end}" for name in ("tiny", "paper") for end in ("", "_summary")]
    assert set(drawn) == {*both, "ladder_segments"}
    for one in drawn.values():
        assert not clipped_texts(one.figure)
    shown = texts(drawn["ladder_tiny_summary"].figure)
    for label in ("prophet optimism", "UCB1 over policies", "ExpRef (theory)", "one bit"):
        assert label in shown
    assert "UCB1 over policies" not in texts(drawn["ladder_paper_summary"].figure)
    tables = ladder.tables(made, Options())
    assert "| below (" in tables["ladder.md"]
    assert "H = 15, k = 2, A = 5" in tables["ladder.md"]
    assert "3 segments" in tables["ladder_tuning.md"]


def test_who_fits():
    plain = jb.make_instance("riverswim", num_states=3, horizon=2)
    ordered = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
    assert "UCB1 over policies" in fitting(plain)
    assert not {"OrderedExpRef", "prophet optimism"} & set(fitting(plain))
    assert "OrderedExpRef" in fitting(ordered)
    assert "trajectory TS" not in fitting(jb.make_instance("riverswim"))
    assert "UCB1 over policies" not in fitting(jb.make_instance("frozen-lake"))  # 4^1507 arms
    assert reached(plain)[:, 1:].tolist() == [[True, False, False], [True, True, False]]
    with pytest.raises(ValueError, match="learners: 'ExpReff'; did you mean 'ExpRef'"):
        fitting(plain, ["ExpReff"])


def test_ladder_tunes_on_other_draws_and_draws_a_figure():
    sizes = {"horizon": 2, "width": 2, "num_actions": 2}
    keys = [jax.random.key(seed) for seed in range(3)]
    draws = [jb.make_instance("random-general", key=key, **sizes) for key in keys]
    found = jb.ladder(draws[0], 60, 2, training=draws[1:], learners=["Q-learning"], progress=False)
    assert found.dataset["learner"].values.tolist() == ["Q-learning", *YARDSTICKS]
    assert "Q-learning" in repr(found)
    assert len(found.plot().axes) == 1


def test_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ladder, "CONTESTANTS", {"Q-learning": CONTESTANTS["Q-learning"]})
    arrays = {"P": np.full((2, 2, 2), 0.5), "R": np.array([[0.0, 1.0], [3.0, -1.0]]), "horizon": 2}
    np.savez("mine.npz", **arrays)
    command = ["run", "ladder", "--instance", "mine.npz", "--episodes", "30", "--seeds", "2"]
    assert not main([*command, "--formats", "png"])
    assert (tmp_path / "results/ladder/ladder_own.png").is_file()
    assert "Q-learning" in (tmp_path / "results/ladder/ladder_own.md").read_text()
    assert load_instance("riverswim horizon=4").horizon == 4
    np.savez("bad.npz", P=arrays["P"])
    with pytest.raises(ValueError, match=r"bad.npz: arrays P; accepted: P, R, horizon"):
        load_instance("bad.npz")
    assert main(["run", "prophet", "--instance", "riverswim"])
    assert "no instance of your own in prophet" in capsys.readouterr().err
