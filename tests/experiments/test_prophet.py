"""The paper's figure: sizes, panels, and what a run says of itself."""

import pytest
from jax import monitoring
from jaxbandit.experiments import prophet, references
from made_up_results import LEVELS, draw_everything, make_up, make_up_all

import jaxbandit as jb
from jaxbandit.experiment import Options
from jaxbandit.sweeps.arguments import expand_instances
from jaxbandit.xla.programs import PROGRAMS


def test_prophet_has_the_sizes_of_the_paper():
    plans = prophet.sweeps(Options(full=True))
    assert list(plans) == ["I1", "I2"]
    for label, arguments in plans.items():
        assert arguments["num_episodes"] == 2_000_000
        assert len(arguments["instances"]) == 6
        shapes = {
            (mdp.horizon, mdp.width) for mdp in expand_instances(arguments["instances"]).values()
        }
        assert shapes == {(h, k) for h in (15, 20) for k in (2, 3, 4)}
        assert arguments["num_seeds"] == (32 if label == "I1" else 2)
    assert plans["I2"]["instances"]["I2 H=15 k=2"].prob.shape == (16, 15, 3, 5, 5)
    joined = prophet.joined(make_up_all(prophet.EXPERIMENT, Options(full=True)), "practical")
    panels = jb.stats.families(joined)
    assert len(panels) == 12
    assert list(panels)[:4] == ["I1 H=15 k=2", "I1 H=15 k=3", "I1 H=15 k=4", "I1 H=20 k=2"]
    assert jb.stats.replicates(joined, "UCB-VI", family="I1 H=15 k=2").shape[0] == 32
    assert jb.stats.replicates(joined, "UCB-VI", family="I2 H=15 k=2").shape[0] == 16


def test_prophet_draws_a_users_learner_and_says_what_to_expect():
    plans = prophet.sweeps(Options(seeds=2, instances=2))
    plans["both"]["learners"]["mine"] = jb.make_learner("uniform")
    datasets = {"both": make_up(plans["both"], {**LEVELS, "mine": 9.0})}
    drawn = prophet.figures(datasets, Options())
    assert all("mine" in bands for d in drawn.values() for bands in d.data.values())
    assert "mine" in prophet.tables(datasets, Options())["final_regret.txt"]
    assert "mine" not in prophet.joined(datasets, "theory")["learner"].values
    said = prophet.expect(datasets, Options())
    assert "What to expect at T = " in said
    assert "regret grows linearly from phase to phase" in said


@pytest.mark.parametrize("name", ["applications", "constants", "prophet", "sharing", "tuning"])
def test_figures_and_tables_of_made_up_results(name):
    draw_everything(name)


def test_prophet_compiles_one_program_per_kind_of_learner_and_size():
    """The default run, shortened: what is counted and named is one program each; other seeds and episodes compile nothing.

    Nothing at all, by jax's own account: no key and no curve is computed in a shape of its own.
    """
    events = []
    monitoring.register_event_duration_secs_listener(lambda name, *_, **__: events.append(name))

    def run(seeds, num_episodes):
        plans = prophet.sweeps(Options(seeds=seeds, instances=2, episodes=num_episodes))
        for arguments in plans.values():
            jb.sweep(**arguments, progress=False)

    arguments = prophet.sweeps(Options(seeds=1, instances=2))["both"]
    kinds = {learner.rules for learner in arguments["learners"].values()}
    shapes = {(x.horizon, x.width) for x in expand_instances(arguments["instances"]).values()}
    PROGRAMS.compiled.clear()  # another test may have needed one of them
    before, names = PROGRAMS.count, []
    PROGRAMS.listeners.append(heard := lambda words, begins: begins and names.append(words))
    try:
        run(1, 40)
        assert sorted(names) == sorted(set(names))
        assert PROGRAMS.count - before == len(names) <= len(kinds) * len(shapes)
        assert any("backend_compile" in name for name in events)
        events.clear()
        run(2, 70)
    finally:
        PROGRAMS.listeners.remove(heard)
    assert not [name for name in events if "backend_compile" in name]


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"results: .* holds no \.nc files; accepted: a folder"):
        references.write(tmp_path, tmp_path / "out.nc")
    assert not (tmp_path / "out.nc").exists()


def test_kept_episodes_divide_the_200_that_a_sweep_records():
    assert 200 % references.POINTS == 0
    assert 200 % references.POINTS_OF_FULL == 0
