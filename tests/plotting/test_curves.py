"""Regret panels and grids: the data returned, what is written on the figure, nothing cut off."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from synthetic_sweep import LEARNERS, clipped_texts, synthetic_sweep, texts, with_parameter_grid

from jaxbandit.plotting import curves as plots
from jaxbandit.plotting.decisions import plot_final
from jaxbandit.stats.intervals import method_of_all
from jaxbandit.stats.replication import regret_band

PANELS = [f"I{i} H={H} k={k}" for i in (1, 2) for H in (15, 20) for k in (2, 3, 4)]


@pytest.fixture(scope="module")
def ds():
    return synthetic_sweep()


@pytest.mark.parametrize("kind", ["t", "skewed", "bootstrap", "simultaneous", "quantile"])
def test_returns_the_bands_it_drew(ds, kind):
    drawn = plots.plot_regret(ds, kind=kind)
    assert list(drawn.data) == list(LEARNERS)
    expected = regret_band(ds, "UCB-VI", kind=kind)
    np.testing.assert_array_equal(drawn.data["UCB-VI"].high, expected.high)
    line = next(line for line in drawn.axes.lines if line.get_label() == "UCB-VI")
    np.testing.assert_array_equal(line.get_ydata(), expected.center)
    assert f"{method_of_all(drawn.data.values())}, 8 seeds" in texts(drawn.figure)
    assert clipped_texts(drawn.figure) == []


def test_one_skewed_learner_is_enough_for_a_word(ds):
    """Not only the first one's runs are looked at, and every panel's."""
    runs = np.random.default_rng(0).normal(100.0, 1.0, (2, 2, 40, 1))
    runs[1, 1] = np.arange(40.0)[:, None] ** 6
    of = ("learner", "instance", "seed", "episode")
    names = {"learner": ["even", "far"], "instance": ["I1", "I2"], "episode": [9]}
    one = xr.Dataset({"regret": (of, runs)}, coords=names)
    assert "skewed runs: covers less" in texts(plots.plot_regret(one, instance="I2").figure)
    assert "skewed runs: covers less" in texts(plots.plot_panels(one).figure)
    assert "covers less" not in texts(plots.plot_regret(one, instance="I1").figure)


@pytest.mark.parametrize("width", [3.3, 4.6])
def test_words_about_few_runs_fit_into_small_figures(width):
    few = synthetic_sweep(num_seeds=4)
    for drawn in (plots.plot_regret(few, size=(width, 2.4)), plot_final(few, size=(width, 2.4))):
        assert clipped_texts(drawn.figure) == []


def test_names_axes_learners_and_replicates_at_column_width(ds):
    drawn = plots.plot_regret(ds, size=(3.3, 2.4))
    written = texts(drawn.figure)
    for wanted in (
        *LEARNERS,
        "episode",
        "cumulative regret",
        "8 seeds",
        "I1 H=4 k=2",
        "2M",
        "phase ends",
    ):
        assert wanted in written
    assert clipped_texts(drawn.figure) == []


def test_any_three_of_many_learners_are_told_apart_in_grey(ds):
    """Styles are assigned to what is drawn: colours of the paper's learners stay."""
    names = [f"{name} ({kind})" for kind in ("theory", "practical") for name in LEARNERS]
    many = ds.isel(learner=[0, 1, 2] * 2).assign_coords(learner=names)
    colours = {line.get_label(): line.get_color() for line in plots.plot_regret(ds).axes.lines}
    for chosen in itertools.combinations(names, 3):
        lines = plots.plot_regret(many, chosen, phases=False).axes.lines
        assert len({str(line._dash_pattern) for line in lines}) == 3
        assert len({line.get_color() for line in lines}) == 3
    lines = plots.plot_regret(many, names[3:]).axes.lines
    assert [line.get_color() for line in lines] == [colours[name] for name in LEARNERS]


def test_draws_into_given_axes_and_leaves_no_figure_behind(ds):
    before = plt.get_fignums()
    plots.plot_regret(ds)
    assert plt.get_fignums() == before
    figure, axes = plt.subplots(1, 2, figsize=(7, 2.5))
    try:
        drawn = plots.plot_regret(ds, ax=axes[1], labels="legend", title="my title")
        assert drawn.axes is axes[1]
        assert drawn.figure is figure
        assert axes[1].get_legend() is not None
        assert not axes[0].lines
    finally:
        plt.close(figure)


def test_family_uses_instances_as_replicates():
    sweep = synthetic_sweep(["I2/0", "I2/1", "I2/2"], num_seeds=4)
    by_family = plots.plot_regret(
        sweep, instance="I2"
    )  # a family's name works in the instance's place
    assert (by_family.data["ExpRef"].n, by_family.data["ExpRef"].replicates) == (3, "instances")
    assert "3 instances x 4 seeds" in texts(by_family.figure)
    assert plots.plot_regret(sweep, instance="I2/1").data["ExpRef"].n == 4


def test_loglog_with_bounds_and_guides(ds):
    bounds = {"theorem": lambda t: 100 * np.sqrt(t), "array": np.full(ds.sizes["episode"], 1e5)}
    drawn = plots.plot_regret(ds, scale="loglog", bounds=bounds, slope_guides=(0.5, 1))
    assert drawn.axes.get_xscale() == drawn.axes.get_yscale() == "log"
    written = texts(drawn.figure)
    assert all(wanted in written for wanted in ("theorem", "array", "slope 1/2", "slope 1\n"))
    grey = [line for line in drawn.axes.lines if line.get_label().startswith("_")]
    for line, slope in zip(grey[2:], (0.5, 1), strict=True):
        x, y = line.get_data()
        seen = np.isfinite(y)
        np.testing.assert_allclose(np.diff(np.log(y[seen])) / np.diff(np.log(x[seen])), slope)
    assert clipped_texts(drawn.figure) == []


def test_parameter_grid_gives_one_curve_per_point(ds):
    drawn = plots.plot_regret(with_parameter_grid(ds))
    assert list(drawn.data)[2:] == [f"UCB-VI, bonus_scale = {v}" for v in ("0.1", "0.5", "2")]
    assert clipped_texts(drawn.figure) == []
    assert list(plots.plot_regret(with_parameter_grid(ds), ["UCB-VI"], parameters=[1]).data) == [
        "UCB-VI, bonus_scale = 0.5"
    ]


def test_twelve_panels_share_a_legend():
    names = [n for p in PANELS for n in ([p] if p.startswith("I1") else [f"{p}/0", f"{p}/1"])]
    drawn = plots.plot_panels(synthetic_sweep(names, num_seeds=3, num_points=10))
    assert list(drawn.data) == PANELS
    assert len(drawn.axes) == 12
    assert len(drawn.figure.legends) == 1
    assert [text.get_text() for text in drawn.figure.legends[0].get_texts()] == list(LEARNERS)
    written = texts(drawn.figure)
    for wanted in (
        *PANELS,
        "episode",
        "cumulative regret",
        "3 seeds",
        "2 instances x 3 seeds",
        "mean and 95 %",
    ):
        assert wanted in written
    assert clipped_texts(drawn.figure) == []


def test_four_panels_are_two_by_two():
    drawn = plots.plot_panels(synthetic_sweep(PANELS[:4], num_seeds=3, num_points=10))
    assert len({round(a.get_position().x0, 3) for a in drawn.axes}) == 2


def test_panels_are_chosen_ordered_shaped_and_shared():
    sweep = synthetic_sweep(["a", "b", "c", "d"], num_seeds=3, num_points=10)
    drawn = plots.plot_panels(
        sweep, ["d", "a", "b"], columns=2, share_y=True, title="three panels", scale="loglog"
    )
    assert list(drawn.data) == ["d", "a", "b"]
    assert len(drawn.figure.axes) == 3
    assert len({ax.get_ylim() for ax in drawn.axes}) == 1
    assert "three panels" in texts(drawn.figure)
    assert clipped_texts(drawn.figure) == []
    assert list(plots.plot_regret(sweep).data) == [
        "a",
        "b",
        "c",
        "d",
    ]  # several families and none chosen


@pytest.mark.parametrize("size", [None, (6.0, 4.0)])
def test_legends_never_take_a_third_of_the_figure(size):
    sweep = synthetic_sweep(["a", "b"], num_seeds=3, num_points=10)
    many = sweep.isel(learner=[0, 1, 2] * 3)
    many = many.assign_coords(
        learner=[f"a learner with a long name, and number {j}" for j in range(9)]
    )
    for ds in (sweep, many):
        drawn = plots.plot_panels(ds, title="nine", kind="simultaneous", size=size)
        assert clipped_texts(drawn.figure) == []
        legend, whole = drawn.figure.legends[0].get_window_extent(), drawn.figure.bbox
        assert min(legend.width / whole.width, legend.height / whole.height) < 1 / 3
        for ax in drawn.axes:
            assert not ax.get_tightbbox().overlaps(legend)
            assert ax.get_window_extent().height > 80
        assert size is None or tuple(drawn.figure.get_size_inches()) == size


def test_several_instances_are_panels(ds):
    two = synthetic_sweep(["a", "I2/0", "I2/1"], num_seeds=3, num_points=4)
    assert list(plots.plot_regret(two, instance=["I2/1", "a"], columns=1).data) == ["I2/1", "a"]
    assert list(plots.plot_regret(two, instance=["a"]).data) == list(LEARNERS)


def test_panels_into_given_axes():
    sweep = synthetic_sweep(["a", "b"], num_seeds=3, num_points=10)
    figure, axes = plt.subplots(1, 2)
    try:
        drawn = plots.plot_panels(sweep, ax=axes)
        assert drawn.figure is figure
        assert axes[0].get_legend() is not None
        assert axes[1].get_xlabel() == "episode"
    finally:
        plt.close(figure)


def test_errors_name_what_is_accepted(ds):
    two = synthetic_sweep(["a", "b"], num_seeds=2, num_points=4)
    figure, ax = plt.subplots()
    plt.close(figure)
    for call, message in [
        (lambda: plots.plot_regret(ds, ["Expref"]), "learner: 'Expref'; did you mean 'ExpRef'"),
        (
            lambda: plots.plot_regret(ds, kind="std"),
            "kind: 'std'; accepted: t, bootstrap, simultaneous, quantile, skewed",
        ),
        (
            lambda: plots.plot_regret(ds, scale="log"),
            "scale: 'log'; did you mean 'symlog' or 'loglog'\\? accepted: linear, loglog, symlog",
        ),
        (
            lambda: plots.plot_regret(ds, labels="directly"),
            "labels: 'directly'; did you mean 'direct'",
        ),
        (lambda: plots.plot_regret(ds, instance="I2"), "instance: 'I2'; accepted: I1 H=4 k=2"),
        (
            lambda: plots.plot_regret(ds, slope_guides=(0.5,)),
            "slope_guides: .*; accepted: with scale 'loglog'",
        ),
        (
            lambda: plots.plot_regret(ds, bounds={"b": [1.0, 2.0]}),
            r"bounds\['b'\]: shape \(2,\); accepted",
        ),
        (lambda: plots.plot_regret(two, ax=ax), "family: not given; accepted: one of a, b"),
        (
            lambda: plots.plot_regret(0 * ds, scale="loglog"),
            "no positive regret; accepted: 'linear'",
        ),
        (lambda: plots.plot_panels(two, ["c"]), "panels: 'c'; accepted: a, b"),
        (lambda: plots.plot_panels(two, columns=0), "columns: 0; accepted"),
        (lambda: plots.plot_panels(two, ax=[ax]), "ax: 1 axes; accepted: a sequence of at least 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
