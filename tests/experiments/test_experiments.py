"""Experiments without their runs: made-up results of the right shape go through all figures and
tables."""

import importlib
import zlib
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from jaxbandit.experiments import prophet, runtimes, tuning, verdict

import jaxbandit as jb
from jaxbandit.experiment import catalogue, load_experiment
from jaxbandit.experiment.contract import Experiment, Options
from jaxbandit.experiment.driver import check_folder, for_terminal, join, run
from jaxbandit.sweeps.families import expand_instances
from jaxbandit.sweeps.parameters import expand_learners

POINTS = 12
LEVELS = {"ExpRef": 3.0, "OrderedExpRef": 2.0, "UCB-VI": 1.0}


def make_up(arguments, levels=LEVELS, seconds=lambda learner, capacity: 1.0, number=0):
    """A Dataset as `jaxbandit.sweep` would return; regret is level x (a factor of the instance) x
    sqrt(t)."""
    grids, mdps = expand_learners(arguments["learners"]), expand_instances(arguments["instances"])
    total, seeds = arguments["num_episodes"], arguments["num_seeds"]
    episodes = np.linspace(total / POINTS, total, POINTS).astype(np.int64)
    points = max(grid.size for grid in grids.values())
    rng = np.random.default_rng(number)
    regret = np.full((len(grids), len(mdps), points, seeds, POINTS), np.nan)
    for row, (learner, grid) in enumerate(grids.items()):
        for column, name in enumerate(mdps):
            factor = 0.9 + 0.2 * np.random.default_rng(zlib.crc32(name.encode())).random()
            for point in range(grid.size):
                noise = 1 + 0.01 * rng.standard_normal((seeds, 1))
                short = learner.split(",")[0].split(" (")[0]
                level = levels.get(learner, levels[short]) * (1 + abs(point - grid.size // 2))
                regret[row, column, point] = level * factor * noise * np.sqrt(episodes)
    coords = {
        "learner": list(grids),
        "instance": list(mdps),
        "seed": np.arange(seeds),
        "episode": episodes,
        "family": ("instance", [name.split("/")[0] for name in mdps]),
    }
    dims = ["learner", "instance", "parameter", "seed", "episode"]
    if points > 1:
        for name in dict.fromkeys(name for grid in grids.values() for name in grid.names):
            column = np.full((len(grids), points), np.nan)
            for row, grid in enumerate(grids.values()):
                if name in grid.learner.params:
                    column[row, : grid.size] = np.asarray(grid.learner.params[name], np.float64)
            coords[name] = (("learner", "parameter"), column)
    else:
        regret, dims = regret[:, :, 0], [dim for dim in dims if dim != "parameter"]
    widths = [mdp.width for mdp in mdps.values()]
    spent = [
        [seconds(learner, width) * rng.uniform(1, 1.01) for width in widths] for learner in grids
    ]
    cells = ("learner", "instance")
    variables = {
        "regret": (dims, regret),
        "run_seconds": (cells, spent),
        "compile_seconds": (cells, spent),
    }
    return xr.Dataset(variables, coords)


def make_up_all(experiment, options, **how):
    datasets = {}
    for number, (label, arguments) in enumerate(experiment.sweeps(options).items()):
        decided = arguments(datasets) if callable(arguments) else arguments
        datasets[label] = make_up(decided, number=number, **how)
    return datasets


def test_every_experiment_of_the_catalogue_can_be_loaded():
    for name, summary in catalogue().items():
        experiment = load_experiment(name)
        assert experiment.name == name
        assert experiment.summary == summary
        assert summary.endswith(".")
        module = importlib.import_module(f"jaxbandit.experiments.{name.replace('-', '_')}")
        assert Path(module.__file__).name == f"{name.replace('-', '_')}.py"
    assert {"prophet", "runtimes", "constants", "applications", "tuning", "verdict"} <= set(
        catalogue()
    )


@pytest.mark.parametrize("name", ["prophet", "constants", "applications", "tuning"])
def test_figures_and_tables_of_made_up_results(name):
    experiment, options = load_experiment(name), Options(seeds=3)
    datasets = make_up_all(experiment, options)
    figures = experiment.figures(datasets, options)
    assert figures
    for drawn in figures.values():
        drawn.figure.draw_without_rendering()
    if experiment.tables is not None:
        assert all(text for text in experiment.tables(datasets, options).values())


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


def test_tuning_instances_are_not_the_reported_ones_and_budgets_are_equal():
    roots = {prophet.INSTANCE_KEY, tuning.TRAINING_KEY, tuning.CHECKING_KEY}
    assert len(roots) == 3
    values = [np.asarray(prophet.random_instances(15, 2, 2, root).reward) for root in sorted(roots)]
    assert not any(np.array_equal(a, b) for a in values for b in values if a is not b)
    training = tuning.sweeps(Options())["training"]
    assert {grid.size for grid in training["learners"].values()} == {27}
    for name in tuning.LEARNERS:
        preset = tuning.make(name).params
        for parameter, tried in tuning.settings(name).items():
            assert any(np.isclose(float(preset[parameter]), value, rtol=1e-6) for value in tried)


def test_tuning_chooses_the_lowest_mean():
    options = Options(seeds=4)
    datasets = make_up_all(tuning.EXPERIMENT, options)
    # The made-up regret is lowest in the middle of each grid.
    assert tuning.chosen(datasets, "ExpRef", options) == pytest.approx(
        {"first_epsilon": 0.213, "threshold": 0.064, "num_phases": 4}
    )
    table = tuning.tables(datasets, options)["tuning.md"]
    assert "27 settings x 8 runs x 100,000" in table


def test_tuning_runs_again_what_is_not_clearly_worse():
    options = Options(seeds=4)
    plans = tuning.EXPERIMENT.sweeps(options)
    datasets = {"training": make_up(plans["training"])}
    # Three settings around the middle are made equal, up to noise that seeds do not share.
    regret = datasets["training"]["regret"]
    noise = np.random.default_rng(0).uniform(0.9, 1.1, (regret.sizes["instance"], 3, 2, 1))
    regret[0, :, 12:15] = regret[0, :, 13:14].values * noise
    second = plans["second"](datasets)
    assert second["seed"] != options.seed
    left = [j for j, c in enumerate(tuning.race(datasets, "ExpRef", options).candidates) if c.dropped is None]  # fmt: skip
    assert {12, 13, 14} <= set(left)
    assert len(left) < 27
    again, tried = (
        plan["learners"]["ExpRef"].learner.params for plan in (second, plans["training"])
    )
    for name, values in tried.items():
        np.testing.assert_array_equal(again[name], values[left])
    tuner = tuning.race({**datasets, "second": make_up(second)}, "ExpRef", options)
    assert all(found.regret.n in (8, 16) for found in tuner.candidates)


@pytest.mark.parametrize(
    ("levels", "verdicts"),
    [
        (LEVELS, ("holds", "holds", "holds")),
        (
            {"ExpRef": 2.0, "OrderedExpRef": 30.0, "UCB-VI": 1.0},
            ("holds", "does not hold", "does not hold"),
        ),
        (
            {"ExpRef": 2.0, "OrderedExpRef": 2.0, "UCB-VI": 3.0},
            ("does not hold", "not decided", "holds"),
        ),
    ],
)
def test_verdict_on_regret(levels, verdicts):
    datasets = make_up_all(prophet.EXPERIMENT, Options(seeds=8), levels=levels)
    found = verdict.overall(verdict.regret_findings("theory", prophet.joined(datasets, "theory")))
    assert tuple(found.values()) == verdicts


def test_verdict_reads_saved_results_and_says_where_constants_decide(tmp_path, capsys):
    def spent(learner, capacity):
        return capacity / 2 if learner == "UCB-VI" else 1.0

    swapped = {"ExpRef": 2.0, "OrderedExpRef": 3.0, "UCB-VI": 1.0}
    made = {
        "prophet": make_up_all(
            prophet.EXPERIMENT,
            Options(seeds=6),
            levels=LEVELS | {f"{name} (theory)": level for name, level in swapped.items()},
        ),
        "runtimes": make_up_all(runtimes.EXPERIMENT, Options(), seconds=spent),
    }
    for name, datasets in made.items():
        for label, dataset in datasets.items():
            jb.save(dataset, tmp_path / name / f"{label}.nc")
    options = Options(results=tmp_path, out=tmp_path / "verdict")
    outcome = run(load_experiment("verdict"), options)
    text = (tmp_path / "verdict" / "verdict.md").read_text(encoding="utf-8")
    assert text.strip() == outcome.tables["verdict.md"]
    assert "depends: does not hold (theory); holds (practical" in text
    lines = {
        line.split("|")[1].strip(): line.split("|")[2].strip() for line in text.split("\n")[2:7]
    }
    assert lines["UCB-VI has the lowest regret"] == "holds"
    assert lines["ExpRef's and OrderedExpRef's time is flat in k"] == "holds"
    assert lines["UCB-VI's time grows with k"] == "holds"
    assert "verdict.md" in capsys.readouterr().out


def test_times_are_scaled_to_the_papers_episodes_and_seeds():
    datasets = make_up_all(
        runtimes.EXPERIMENT, Options(episodes=20_000), seconds=lambda *cell: 1.28
    )
    alone, together, blocks = (
        runtimes.times(datasets, way, "ExpRef", "H = 15, k = 2, A = 4") for way in runtimes.WAYS
    )
    # 1.28 s (up to 1 % more): for 20,000 episodes, for 64 seeds of 2,000 episodes, for all
    # 2,000,000.
    assert alone.run == pytest.approx(128, rel=0.011)
    assert together.run == pytest.approx(20, rel=0.011)
    assert blocks.run == pytest.approx(1.28, rel=0.011)
    assert runtimes.times(datasets, "blocks", "UCB-VI", "H = 15, k = 2, A = 4") is None
    table = runtimes.tables(datasets, Options())["runtimes.md"]
    assert "| UCB-VI, paper (Apple M3)" in table
    assert "947" in table


def test_join_keeps_every_seed():
    plans = prophet.sweeps(Options(full=True, instances=2))
    parts = [make_up(plans[kind]) for kind in ("I1", "I2")]
    both = join(*parts)
    assert both.sizes["seed"] == 32
    for part in parts:
        names, seeds = part["instance"].values, part["seed"].values
        assert np.array_equal(
            both["regret"].sel(instance=names, seed=seeds).values, part["regret"].values
        )
    assert int(both["regret"].isnull().sum()) == 30 * 12 * 7 * POINTS  # I2: 2 of 32 seeds


def test_joined_results_keep_their_instances(tmp_path):
    sizes = {"I1": (3, 1, 3), "I2": (4, 2, 2)}
    mdps = {
        name: jb.make_instance("prophet-uniform", horizon=h, capacity=k, num_values=a)
        for name, (h, k, a) in sizes.items()
    }
    parts = [
        jb.sweep(
            {"uniform": jb.make_learner("uniform")}, {name: mdp}, 20, num_seeds=2, progress=False
        )
        for name, mdp in mdps.items()
    ]
    both = join(*parts)
    assert jb.load(jb.save(both, tmp_path / "both.nc")).equals(both)
    for name, mdp in mdps.items():
        found = jb.instance_of(both, name)
        assert all(np.array_equal(a, b) for a, b in zip(found, mdp, strict=True))
        assert jb.labels_of(found).actions == jb.labels_of(mdp).actions


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
    assert "straight lines" in said


def test_folders_are_not_replaced_unless_told(tmp_path):
    check_folder(tmp_path / "new", ["a"], Options())
    (tmp_path / "checkpoints" / "a").mkdir(parents=True)
    with pytest.raises(ValueError, match="unfinished run"):
        check_folder(tmp_path, ["a"], Options())
    (tmp_path / "a.nc").touch()
    with pytest.raises(ValueError, match="holds results already"):
        check_folder(tmp_path, ["a"], Options())
    check_folder(tmp_path, ["a"], Options(resume=True))
    check_folder(tmp_path, ["a"], Options(overwrite=True))
    check_folder(tmp_path, ["b"], Options())
    with pytest.raises(ValueError, match="is a file"):
        check_folder(tmp_path / "a.nc", ["a"], Options())


def test_options_choose_sizes():
    assert Options(episodes=7).choose_episodes(1, full=2) == 7
    assert [Options(full=full).choose_seeds(1, full=2) for full in (False, True)] == [1, 2]
    assert Options(instances=3).choose_instances(1, full=2) == 3
    with pytest.raises(ValueError, match="seeds: 0; accepted"):
        Options(seeds=0).choose_seeds(1, full=2)
    with pytest.raises(ValueError, match=r"episodes: 1000000000.*; accepted: a whole"):
        Options(episodes=10**40).check()
    with pytest.raises(ValueError, match="one of the two"):
        Options(resume=True, overwrite=True).check()
    assert Experiment("name", "  First\nline.\n\nMore.", dict).summary == "First line."


def test_wide_tables_are_left_to_the_file():
    text = f"| short |\n\n{'a note ' * 30}\n\n| {'x' * 200} |\n| {'y' * 200} |"
    shown = for_terminal(text, Path("out/verdict.md")).split("\n\n")
    assert shown[0] == "| short |"
    assert all(len(line) <= 100 for line in shown[1].split("\n"))
    assert shown[2] == "(a wide table: see out/verdict.md)"
