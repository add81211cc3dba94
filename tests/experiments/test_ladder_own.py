"""The ladder on one's own MDP, from Python and from the command line; arrays to a figure in ten lines."""

import jax
import numpy as np
import pytest
from jaxbandit.experiments.ladder_own import fitting, reached

import jaxbandit as jb
from jaxbandit.cli import main
from jaxbandit.experiment import load_instance

TEN_LINES = """
import numpy as np
import jaxbandit as jb

P = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.1, 0.9]]])  # P[s, a, s']
R = np.array([[0.0, -1.0], [2.0, 1.0]])  # R[s, a], any numbers
mdp = jb.from_arrays(P, R, horizon=10)
learners = {name: jb.make_learner(name) for name in ("ucbvi", "psrl", "q-learning", "expref")}
ds = jb.sweep(learners, {"mine": mdp}, num_episodes=2_000, num_seeds=8)
jb.plot_regret(jb.in_units(ds)).save("regret.png")
"""
FIVE_LINES = """
import gymnasium, jaxbandit as jb
mdp = jb.from_gymnasium(gymnasium.make("FrozenLake-v1"), horizon=20)
learners = {name: jb.make_learner(name) for name in ("ucbvi", "q-learning", "uniform")}
ds = jb.sweep(learners, {"FrozenLake": mdp}, num_episodes=1_000, num_seeds=4)
jb.plot_regret(ds).save("frozen_lake.png")
"""


@pytest.mark.parametrize(("text", "lines"), [(TEN_LINES, 10), (FIVE_LINES, 5)])
def test_snippets_fit_and_run(text, lines, tmp_path, monkeypatch):
    assert len(text.strip().splitlines()) <= lines
    monkeypatch.chdir(tmp_path)
    exec(text.replace("2_000", "40").replace("1_000", "40"), {})
    assert list(tmp_path.glob("*.png"))


def test_who_fits():
    plain = jb.make_instance("riverswim", num_states=3, horizon=2)
    ordered = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
    assert "UCB1 over policies" in fitting(plain)
    assert not {"OrderedExpRef", "prophet optimism"} & set(fitting(plain))
    assert "OrderedExpRef" in fitting(ordered)
    assert "trajectory TS" not in fitting(jb.make_instance("riverswim"))
    assert reached(plain)[:, 1:].tolist() == [[True, False, False], [True, True, False]]
    with pytest.raises(ValueError, match="learners: 'ExpReff'; did you mean 'ExpRef'"):
        fitting(plain, ["ExpReff"])


def test_ladder_tunes_on_other_draws_and_draws_a_figure():
    draws = [
        jb.make_instance(
            "random-general", key=jax.random.key(seed), horizon=2, width=2, num_actions=2
        )
        for seed in range(3)
    ]
    found = jb.ladder(
        draws[0], 60, 2, training=draws[1:], learners=["ExpRef", "Q-learning"], progress=False
    )
    assert found.dataset["regret"].sizes["learner"] == 4
    assert "Q-learning" in repr(found)
    assert len(found.plot().axes) == 1


def test_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
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
