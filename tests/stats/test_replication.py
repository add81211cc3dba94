"""Replicates read from a sweep's Dataset: seeds of an instance, instances of a family; tables of them."""

import csv
import io

import numpy as np
import pytest
import xarray as xr

from jaxbandit.stats import mean_interval
from jaxbandit.stats.replication import (
    NOTE,
    curve_names,
    families,
    final_table,
    format_table,
    parameter_names,
    parameter_values,
    place_of,
    regret_band,
    regret_difference,
    replicate_kind,
    replicates,
)

DIMS = ("learner", "instance", "seed", "episode")


@pytest.fixture
def ds():
    rng = np.random.default_rng(0)
    per_instance = 10 * rng.normal(size=(1, 3, 1, 1))  # what runs on one instance have in common
    return xr.Dataset(
        {
            "regret": (DIMS, 100 + per_instance + rng.normal(size=(2, 3, 4, 5))),
            "final_gap": (DIMS[:3], rng.random((2, 3, 4))),
        },
        coords={
            "learner": ["ExpRef", "UCB-VI"],
            "instance": ["I1", "I2/0", "I2/1"],
            "family": ("instance", ["I1", "I2", "I2"]),
            "seed": range(4),
            "episode": [1, 2, 3, 4, 5],
        },
    )


@pytest.fixture
def grid():
    regret = np.ones((2, 1, 3, 4, 5))
    regret[0, :, 1:] = np.nan  # ExpRef has one point of the grid
    scale = (("learner", "parameter"), [[np.nan] * 3, [0.5, 1.0, 2.0]])
    return xr.Dataset(
        {"regret": (("learner", "instance", "parameter", "seed", "episode"), regret)},
        coords={
            "learner": ["ExpRef", "UCB-VI"],
            "instance": ["I1"],
            "bonus_scale": scale,
            "parameter": range(3),
        },
    )


def test_seeds_are_the_replicates_of_an_instance(ds):
    rows = replicates(ds, "UCB-VI", instance="I2/1")
    np.testing.assert_array_equal(rows, ds["regret"].values[1, 2])
    np.testing.assert_array_equal(replicates(ds, "UCB-VI", family="I1"), ds["regret"].values[1, 0])
    assert replicate_kind(ds, instance="I2/1") == replicate_kind(ds, family="I1") == "seeds"
    assert replicates(ds, "ExpRef", "I1", variable="final_gap").shape == (4, 1)


def test_instances_are_the_replicates_of_a_family(ds):
    rows = replicates(ds, "UCB-VI", family="I2")
    np.testing.assert_allclose(rows, ds["regret"].values[1, 1:].mean(axis=1))
    b = regret_band(ds, "UCB-VI", family="I2")
    assert (b.n, b.replicates) == (2, "instances")
    # Counting the 8 runs as 8 replicates would hide how much the two instances differ.
    naive = ds["regret"].values[1, 1:].reshape(8, 5).std(axis=0, ddof=1) / np.sqrt(8)
    assert ((b.high - b.low) / 2 > 2 * naive).all()


def test_families_are_those_of_the_coordinate_and_never_guessed_from_names(ds):
    alone = ds.drop_vars("family")
    assert families(alone) == {name: [name] for name in ("I1", "I2/0", "I2/1")}
    assert replicate_kind(alone, family="I2/0") == "seeds"
    labelled = ds.assign_coords(family=("instance", ["a", "b", "b"]))
    assert families(labelled) == {"a": ["I1"], "b": ["I2/0", "I2/1"]}
    assert replicate_kind(labelled, family="b") == "instances"


def test_missing_runs_are_left_out(ds):
    ds["regret"][1, 2] = np.nan
    ds["regret"][0, 1, 0] = np.nan
    assert replicates(ds, "UCB-VI", family="I2").shape == (1, 5)
    np.testing.assert_allclose(
        replicates(ds, "ExpRef", family="I2")[0], ds["regret"].values[0, 1, 1:].mean(axis=0)
    )


def test_differences_are_paired(ds):
    for where in ({"instance": "I2/0"}, {"family": "I2"}):
        b = regret_difference(ds, "UCB-VI", "ExpRef", **where)
        one, other = (regret_band(ds, name, **where).center for name in ("UCB-VI", "ExpRef"))
        np.testing.assert_allclose(b.center, one - other)
    ds["regret"][1, 1, 0] = np.nan
    b = regret_difference(ds, "UCB-VI", "ExpRef", instance="I2/0")
    both = ds["regret"].values[:, 1, 1:]
    np.testing.assert_allclose(b.center, (both[1] - both[0]).mean(axis=0))
    assert b.n == 3


def test_parameter_grids(grid):
    assert parameter_names(grid) == ["bonus_scale"]
    assert parameter_values(grid, "UCB-VI", 2) == {"bonus_scale": 2.0}
    assert parameter_values(grid, "ExpRef", 0) == {}
    labels = ["ExpRef", *(f"UCB-VI, bonus_scale = {scale}" for scale in ("0.5", "1", "2"))]
    assert [name.label for name in curve_names(grid)] == labels
    assert curve_names(grid, ["UCB-VI"], [1])[0] == ("UCB-VI, bonus_scale = 1", "UCB-VI", 1)
    assert replicates(grid, "UCB-VI", parameter=1).shape == (4, 5)
    assert replicates(grid.isel(parameter=[0]), "UCB-VI").shape == (4, 5)


def test_a_place_is_an_instance_or_a_family(ds):
    assert place_of(ds, "I1", None, either=True)[:2] == (None, "I1")
    assert place_of(ds, "I2/0", None, either=True).members == ["I2/0"]
    for wrong in ([], 3, "I2/9"):
        with pytest.raises(ValueError, match=r"instance: .*accepted: I1, I2/0"):
            place_of(ds, wrong, None, either=True)


def test_final_table_counts_seeds_or_instances(ds):
    lines = [(row.family, row.learner, row.n, row.replicates) for row in final_table(ds)]
    assert lines[:2] == [("I1", name, 4, "seeds") for name in ("ExpRef", "UCB-VI")]
    assert lines[2:] == [("I2", name, 2, "instances") for name in ("ExpRef", "UCB-VI")]
    ds["regret"][1, 0] = [[0.0]] * 3 + [[9.0]]
    expected, row = mean_interval([0.0, 0.0, 0.0, 9.0]), final_table(ds)[1]
    assert expected.low < 0  # which the table, knowing that this is regret, leaves out
    assert (row.mean, row.low, row.high) == (expected.value, 0, expected.high)
    assert [r.family for r in final_table(ds, ["UCB-VI"], ["I2"])] == ["I2"]


def test_table_text_is_aligned(ds):
    ds["regret"][0, 0] = 1234.5
    lines = format_table(final_table(ds)).splitlines()
    assert lines[0].split("  ")[0] == "family"
    assert lines[1].split() == ["I1", "ExpRef", "1,234", "none", "4", "seeds"]
    assert len({line.index("ins" if "ins" in line else "see") for line in lines[1:-1]}) == 1
    assert lines[-1] == NOTE
    assert format_table([]) == "no runs"
    one = format_table(final_table(ds.isel(seed=[0]), panels=["I1"]))
    assert "none" in one
    assert one.endswith("1 seed")


def test_tables_for_papers_and_for_programs(ds):
    rows = final_table(ds)
    markdown, latex = (format_table(rows, format) for format in ("markdown", "latex"))
    assert markdown.startswith("| family")
    assert markdown.endswith(f" |\n\n{NOTE}")
    assert "\\toprule" in latex
    assert latex.endswith(f"\\end{{tabular}}\n% {NOTE}")
    sure = [row._replace(warning="") for row in rows]
    assert NOTE not in "".join(format_table(sure, format) for format in ("text", "markdown"))
    head, *lines = csv.reader(io.StringIO(format_table(rows, "csv")))
    assert head[2:5] == ["mean", "low", "high"]
    assert [line[head.index("warning")] for line in lines] == [row.warning for row in rows]
    assert [float(line[2]) for line in lines] == [row.mean for row in rows]


def test_table_lists_the_parameter_grid(grid):
    labels = [(row.label, row.parameter) for row in final_table(grid)]
    assert labels == [(name.label, name.parameter) for name in curve_names(grid)]


I1 = {"learner": "ExpRef", "instance": "I1"}
REFUSED = [
    (replicates, "ds", I1 | {"learner": "Expref"}, "learner: 'Expref'; did you mean 'ExpRef'"),
    (replicates, "ds", I1 | {"instance": "I3"}, "instance: 'I3'; accepted: I1, I2/0, I2/1"),
    (
        replicates,
        "ds",
        {"learner": "ExpRef", "family": "I2/0"},
        "family: 'I2/0'; did you mean 'I2'",
    ),
    (replicates, "ds", {"learner": "ExpRef"}, "family: not given; accepted: one of I1, I2"),
    (replicates, "ds", I1 | {"family": "I1"}, "accepted: one of the two"),
    (replicates, "ds", I1 | {"variable": "reget"}, "variable: 'reget'; did you mean 'regret'"),
    (replicates, "grid", {"learner": "UCB-VI"}, "parameter: None; accepted: an index .* at most 2"),
    (replicates, "grid", I1 | {"parameter": 3}, "parameter: 3; accepted: an index .* at most 2"),
    (curve_names, "grid", {"parameters": [3]}, "parameters: 3; accepted: an index .* at most 2"),
    (curve_names, "grid", {"learners": ["UCBVI"]}, "learner: 'UCBVI'; did you mean 'UCB-VI'"),
    (final_table, "ds", {"panels": ["I3"]}, "panels: 'I3'; accepted: I1, I2"),
    (regret_difference, "ds", {"first": "", "second": "", "kind": "quantile"}, "accepted: t, boot"),
]


@pytest.mark.parametrize(("function", "of", "how", "message"), REFUSED)
def test_errors_name_what_is_accepted(function, of, how, message, request):
    with pytest.raises(ValueError, match=message):
        function(request.getfixturevalue(of), **how)
