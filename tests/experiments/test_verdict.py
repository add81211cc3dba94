"""The paper's claims, its running times and what sharing buys, from results whose answer is known."""

import numpy as np
import pytest
import xarray as xr
from jaxbandit.experiments import prophet, runtimes, sharing, verdict
from made_up_results import LEVELS, make_up_all

import jaxbandit as jb
from jaxbandit.cli.driver import run
from jaxbandit.experiment import Options, load_experiment


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


def test_doubts_are_told_and_no_ratio_is_below_0():
    rng = np.random.default_rng(0)
    runs = np.stack(
        [rng.normal(100.0, 1.0, 40), rng.normal(100.0, 1.0, 40), np.r_[np.ones(39), 1e6]]
    )
    even, far = (_sweep(np.stack([*runs[:2], last])) for last in (runs[0] - 9, runs[2]))
    note = "Intervals of few or skewed runs may cover less than they say."
    assert note in verdict.claims_about_regret({"theory": far})
    assert note not in verdict.claims_about_regret({"theory": even})
    (ratio,) = verdict.ratios(far, "UCB-VI", "ExpRef")
    assert (ratio.low, ratio.doubt) == (0.0, "skewed")


def _sweep(final):
    """Final regrets [learners, seeds] on one instance."""
    names = {"learner": ["ExpRef", "OrderedExpRef", "UCB-VI"], "instance": ["I1"], "episode": [9]}
    dims = ("learner", "instance", "seed", "episode")
    coords = names | {"family": ("instance", ["I1"])}
    return xr.Dataset({"regret": (dims, final[:, None, :, None])}, coords=coords)


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


def test_ratios_and_the_goal():
    """Made-up regrets are 3 (ExpRef, shared ExpRef) and 2 (OrderedExpRef, shared) times sqrt(t)."""
    options = Options(seeds=4)
    datasets = make_up_all(sharing.EXPERIMENT, options)
    datasets["I1"]["regret"].loc[{"learner": "shared OrderedExpRef"}] /= 2
    text = sharing.tables(datasets, options)["sharing.md"]
    assert "shared ExpRef: at most 0.5 of ExpRef's regret on 0 of 6 panels (0 with" in text
    assert "shared OrderedExpRef: at most 0.5 of ExpRef's regret on 6 of 6 panels (6 with" in text
