"""Regret, metrics, parameters, decisions: the data returned, what is written on the figure in which colours, nothing cut off."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex, to_rgb
from synthetic_sweep import LEARNERS, clipped_texts, synthetic_sweep, texts, with_parameter_grid

import jaxbandit as jb
from jaxbandit.plotting import curves as plots
from jaxbandit.plotting import figures
from jaxbandit.stats.intervals import band, method_of_all
from jaxbandit.stats.replication import CurveName, regret_band

PANELS = [f"I{i} H={H}" for i in (1, 2) for H in (15, 20, 25)]


def result(regret, **values):
    """Runs [learner, instance, parameter, seed, episode] of "A" and "B" on "I1" and "I2", with values of parameters."""
    dims = ("learner", "instance", "parameter", "seed", "episode")
    learners, instances, *_, episodes = regret.shape
    coords = {"learner": ["A", "B"][:learners], "instance": ["I1", "I2"][:instances]}
    coords["episode"] = np.arange(1, episodes + 1)
    points = {name: ("parameter", listed) for name, listed in values.items()}
    return xr.Dataset({"regret": (dims, regret)}, coords=coords | points)


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
    runs = np.random.default_rng(0).normal(100.0, 1.0, (2, 2, 1, 40, 1))
    runs[1, 1, 0] = np.arange(40.0)[:, None] ** 6
    one = result(runs)
    assert "skewed runs: covers less" in texts(plots.plot_regret(one, instance="I2").figure)
    assert "skewed runs: covers less" in texts(plots.plot_panels(one).figure)
    assert "covers less" not in texts(plots.plot_regret(one, instance="I1").figure)


def test_names_axes_learners_and_replicates_at_column_width(ds):
    drawn = plots.plot_regret(ds, size=(3.3, 2.4))
    written = texts(drawn.figure)
    words = ("episode", "cumulative regret", "8 seeds", "I1 H=4 k=2", "2M", "phase ends")
    assert all(wanted in written for wanted in (*LEARNERS, *words))
    assert clipped_texts(drawn.figure) == []
    assert clipped_texts(jb.plot_final(ds.isel(seed=[0, 1, 2]), size=(3.3, 2.4)).figure) == []


def test_any_three_of_many_learners_are_told_apart_in_grey(ds):
    """Styles are assigned to what is drawn: colours of the paper's learners stay."""
    names = [f"{name} ({kind})" for kind in ("theory", "practical") for name in LEARNERS]
    paper = [style.color for style in figures.styles(LEARNERS).values()]
    for chosen in itertools.combinations([*names, "psrl", "ucb1"], 3):
        looks = plots.curve_styles([CurveName(name, name, None) for name in chosen]).values()
        assert len({str(look.line) for look in looks}) == len({look.color for look in looks}) == 3
    many = ds.isel(learner=[0, 1, 2] * 2).assign_coords(learner=names)
    lines = plots.plot_regret(many, names[3:], phases=False).axes.lines
    assert [line.get_color() for line in lines] == paper
    assert len({str(line._dash_pattern) for line in lines}) == 3


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
    by_family = plots.plot_regret(sweep, instance="I2")  # a family in the instance's place
    assert (by_family.data["ExpRef"].n, by_family.data["ExpRef"].replicates) == (3, "instances")
    assert "3 instances x 4 seeds" in texts(by_family.figure)
    assert plots.plot_regret(sweep, instance="I2/1").data["ExpRef"].n == 4


def test_loglog_with_bounds_and_guides(ds):
    bounds = {"theorem": lambda t: 100 * np.sqrt(t), "array": np.full(ds.sizes["episode"], 1e5)}
    drawn = plots.plot_regret(ds, scale="loglog", bounds=bounds, slope_guides=(0.5, 1))
    assert drawn.axes.get_xscale() == drawn.axes.get_yscale() == "log"
    written = texts(drawn.figure)
    assert all(wanted in written for wanted in ("theorem", "array", "slope 1/2", "slope 1\n"))
    lines = {line.get_label(): line for line in drawn.axes.lines}
    for label, slope in (("slope 1/2", 0.5), ("slope 1", 1)):
        x, y = lines[label].get_data()
        seen = np.isfinite(y)
        np.testing.assert_allclose(np.diff(np.log(y[seen])) / np.diff(np.log(x[seen])), slope)
    assert clipped_texts(drawn.figure) == []


def test_parameter_grid_gives_one_curve_per_point(ds):
    drawn = plots.plot_regret(with_parameter_grid(ds))
    assert list(drawn.data)[2:] == [f"UCB-VI, bonus_scale = {v}" for v in ("0.1", "0.5", "2")]
    assert clipped_texts(drawn.figure) == []
    one = plots.plot_regret(with_parameter_grid(ds), ["UCB-VI"], parameters=[1])
    assert list(one.data) == ["UCB-VI, bonus_scale = 0.5"]


def test_many_panels_share_a_legend():
    names = [n for p in PANELS for n in ([p] if p.startswith("I1") else [f"{p}/0", f"{p}/1"])]
    drawn = plots.plot_panels(synthetic_sweep(names, num_seeds=3, num_points=10))
    assert list(drawn.data) == PANELS
    assert len(drawn.axes) == 6
    assert len(drawn.figure.legends) == 1
    assert [text.get_text() for text in drawn.figure.legends[0].get_texts()] == list(LEARNERS)
    written = texts(drawn.figure)
    words = ("episode", "cumulative regret", "3 seeds", "2 instances x 3 seeds", "mean and 95 %")
    assert all(wanted in written for wanted in (*PANELS, *words))
    assert clipped_texts(drawn.figure) == []


def test_panels_are_chosen_ordered_shaped_and_shared():
    sweep = synthetic_sweep(["a", "b", "c", "d"], num_seeds=3, num_points=10)
    how = {"columns": 2, "share_y": True, "title": "three panels", "scale": "loglog"}
    drawn = plots.plot_panels(sweep, ["d", "a", "b"], **how)
    assert list(drawn.data) == ["d", "a", "b"]
    assert len(drawn.figure.axes) == 3
    assert len({ax.get_ylim() for ax in drawn.axes}) == 1
    assert "three panels" in texts(drawn.figure)
    assert clipped_texts(drawn.figure) == []
    every = plots.plot_regret(sweep)  # several families and none chosen: two by two
    assert list(every.data) == ["a", "b", "c", "d"]
    assert len({round(a.get_position().x0, 3) for a in every.axes}) == 2


@pytest.mark.parametrize("size", [None, (6.0, 4.0)])
def test_legends_never_take_a_third_of_the_figure(size):
    sweep = synthetic_sweep(["a", "b"], num_seeds=3, num_points=10)
    long = [f"a learner with a long name, and number {j}" for j in range(9)]
    many = sweep.isel(learner=[0, 1, 2] * 3).assign_coords(learner=long)
    for ds in (sweep, many) if size is None else (many,):
        drawn = plots.plot_panels(ds, title="nine", kind="simultaneous", size=size)
        assert clipped_texts(drawn.figure) == []
        legend, whole = drawn.figure.legends[0].get_window_extent(), drawn.figure.bbox
        assert min(legend.width / whole.width, legend.height / whole.height) < 1 / 3
        for ax in drawn.axes:
            assert not ax.get_tightbbox().overlaps(legend)
            assert ax.get_window_extent().height > 80
        assert size is None or tuple(drawn.figure.get_size_inches()) == size


def test_legends_say_what_every_line_is(ds):
    """Bounds too; above a figure of its own, inside given axes, and over panels."""
    bounds = {"theorem": lambda t: 100 * np.sqrt(t)}
    one = plots.plot_regret(ds, labels="legend", bounds=bounds)
    panels = plots.plot_panels(synthetic_sweep(["a", "b"], num_points=4), bounds=bounds)
    for drawn in (one, panels):
        entries = [text.get_text() for text in drawn.figure.legends[0].get_texts()]
        assert entries == [*LEARNERS, "theorem"]
    assert clipped_texts(one.figure) == []
    assert not one.figure.legends[0].get_window_extent().overlaps(one.axes.get_window_extent())
    assert one.caption in texts(one.figure).replace("\n", " ")


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
    for arguments, message in [
        ({"learners": ["Expref"]}, "learner: 'Expref'; did you mean 'ExpRef'"),
        ({"kind": "std"}, "kind: 'std'; accepted: t, bootstrap, simultaneous, quantile, skewed"),
        ({"scale": "log"}, "scale: 'log'; did you mean 'symlog' or 'loglog'\\? accepted: linear"),
        ({"labels": "directly"}, "labels: 'directly'; did you mean 'direct'"),
        ({"instance": "I2"}, "instance: 'I2'; accepted: I1 H=4 k=2"),
        ({"slope_guides": (0.5,)}, "slope_guides: .*; accepted: with scale 'loglog'"),
        ({"bounds": {"b": [1.0, 2.0]}}, r"bounds\['b'\]: shape \(2,\); accepted"),
        ({"ds": two, "ax": ax}, "family: not given; accepted: one of a, b"),
        ({"ds": 0 * ds, "scale": "loglog"}, "no positive regret; accepted: 'linear'"),
        ({"colors": {"ExpReff": "red"}}, "colors: 'ExpReff'"),
        ({"names": {"ExpReff": "red"}}, "names: 'ExpReff'"),
    ]:
        with pytest.raises(ValueError, match=message):
            plots.plot_regret(**{"ds": ds} | arguments)
    for arguments, message in [
        ({"panels": ["c"]}, "panels: 'c'; accepted: a, b"),
        ({"columns": 0}, "columns: 0; accepted"),
        ({"ax": [ax]}, "ax: 1 axes; accepted: 2, one per panel"),
    ]:
        with pytest.raises(ValueError, match=message):
            plots.plot_panels(two, **arguments)


def test_bounds_far_above_a_linear_panel_do_not_flatten_it(ds):
    drawn = plots.plot_regret(ds, bounds={"theorem": lambda t: 1e9 + t, "near": lambda t: 0.05 * t})
    assert drawn.axes.get_ylim()[1] < 3e5
    assert "above the axes: theorem" in texts(drawn.figure)
    assert "\nnear" in texts(drawn.figure)


def test_phases_are_circles_on_their_curves_at_medians(ds):
    drawn = plots.plot_regret(ds)
    marks = [c.get_offsets() for c in drawn.axes.collections if len(c.get_offsets()) > 1]
    expected = np.median(ds["phase_end"].sel(learner="OrderedExpRef").values[0], axis=0)
    assert [len(found) for found in marks] == [2, 3]  # ExpRef's third phase is never finished
    np.testing.assert_allclose(marks[1][:, 0], expected)
    center = np.interp(expected, ds["episode"].values, drawn.data["OrderedExpRef"].center)
    np.testing.assert_allclose(marks[1][:, 1], center)
    assert "circles: phase ends" in drawn.caption
    assert "phase ends" not in plots.plot_regret(ds, phases=False).caption


def test_missing_points_and_missing_learners_are_drawn_around(ds):
    gaps = ds.copy(deep=True)
    gaps["regret"][0, :, 2, 10:12] = np.nan
    gaps["regret"][1] = np.nan
    drawn = plots.plot_regret(gaps)
    assert list(drawn.data) == ["ExpRef", "UCB-VI"]
    assert np.isnan(drawn.data["ExpRef"].high[10:12]).all()
    gaps["regret"][:] = np.nan
    with pytest.raises(ValueError, match="no runs of ExpRef"):
        plots.plot_regret(gaps)


def test_one_seed_has_a_line_and_no_band(ds):
    drawn = plots.plot_regret(ds.isel(seed=[0]), phases=False)
    assert not drawn.axes.collections
    assert "no intervals, 1 seed" in texts(drawn.figure)


def test_zero_regret_is_drawn_on_both_scales(ds):
    zero = ds.copy(deep=True)
    zero["regret"][2] = 0.0
    zero["regret"][0, :, :, :3] = 0.0
    assert plots.plot_regret(zero).axes.get_ylim()[0] == 0
    assert plots.plot_regret(zero, scale="loglog").axes.get_ylim()[0] > 0


def test_flat_curves_are_shown_by_an_inset_or_on_a_symlog_axis(ds):
    far = ds.copy(deep=True)
    far["regret"][2] *= 0.01
    (small,) = plots.plot_regret(far, inset=True).axes.child_axes
    assert small.get_ylim()[1] < 1000
    assert "inset: UCB-VI" in plots.plot_regret(far, inset=True).caption
    assert all(len(ax.child_axes) == 1 for ax in plots.plot_panels(far, inset=True).axes)
    assert not plots.plot_regret(far).axes.child_axes
    near = ds.copy(deep=True)
    near["regret"][2] = near["regret"][0]
    assert not plots.plot_regret(near, inset=True).axes.child_axes  # nothing to enlarge
    axes = plots.plot_regret(far, scale="symlog").axes
    low, high = axes.transAxes.inverted().transform(
        axes.transData.transform([(0, 0), (0, far["regret"].values[2, ..., -1].mean())])
    )[:, 1]
    assert high - low > 0.15  # of the height of the panel


def test_the_subtitle_is_left_out_and_the_caption_stays(ds):
    for draw in (plots.plot_regret, plots.plot_panels):
        with_text, without = draw(ds), draw(ds, subtitle=False)
        assert with_text.caption == without.caption
        assert "t-interval" in texts(with_text.figure)
        assert "t-interval" not in texts(without.figure)


@pytest.fixture(scope="module")
def metrics(ds):
    made = ds
    rng = np.random.default_rng(0)
    regret = made["regret"]
    optimism = 0.3 * rng.gamma(9, 1 / 9, (*regret.shape[:3], 1)) / np.arange(1, 41) ** 0.5
    optimism[:2] = np.nan
    visits = rng.integers(0, 100, (*regret.shape, 4, 3)).astype(float)
    visits[..., 0] = np.nan
    return made.assign(
        optimism=(regret.dims, optimism), visits=((*regret.dims, "stage", "level"), visits)
    )


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_bands_are_those_of_the_runs(metrics, scale):
    drawn = plots.plot_metric(metrics, "optimism", scale=scale)
    assert list(drawn.data) == ["UCB-VI"]
    expected = band(metrics["optimism"].values[2, 0])
    np.testing.assert_array_equal(drawn.data["UCB-VI"].low, expected.low)
    written = texts(drawn.figure)
    assert "optimism" in written
    assert "mean and 95 % t-interval (" in written
    assert "8 seeds" in written
    assert clipped_texts(drawn.figure) == []


def test_axes_of_its_own_are_chosen_or_averaged(metrics):
    chosen = plots.plot_metric(metrics, "visits", at={"stage": 2, "level": 1})
    np.testing.assert_allclose(
        chosen.data["ExpRef"].center, metrics["visits"].values[0, 0, :, :, 1, 1].mean(axis=0)
    )
    assert "visits at stage 2, level 1" in texts(chosen.figure)
    averaged = plots.plot_metric(metrics, "visits")
    np.testing.assert_allclose(
        averaged.data["ExpRef"].center,
        metrics["visits"].values[0, 0, :, :, :, 1:].mean(axis=(0, 2, 3)),
    )


def test_parameter_points_are_lines_of_metrics():
    grid = with_parameter_grid(synthetic_sweep())
    drawn = plots.plot_metric(grid.assign(mine=grid["regret"] + 1), "mine")
    assert len(drawn.data) == 5


def test_errors_of_metrics(metrics):
    assert plots.metric_names(metrics) == ["optimism", "visits"]
    for call, message in [
        (lambda: plots.plot_metric(metrics, "regret"), "name: 'regret'; accepted: optimism, visits"),
        (lambda: plots.plot_metric(metrics, "optimism", ["ExpRef"]), "nan for these learners"),
        (lambda: plots.plot_metric(metrics, "visits", at={"phase": 1}), "at: 'phase'; accepted: stage, level"),
        (lambda: plots.plot_metric(metrics, "visits", at={"stage": 9}), r"at\['stage'\]: 9; accepted: 1, 2, 3, 4"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            call()


def test_a_size_in_which_panels_cannot_be_read_is_refused():
    four = synthetic_sweep(["a", "b", "c", "d"], num_seeds=3, num_points=4)
    told = r"size: 3.25 x 2.2 inches for 4 panels in 2 x 2; accepted: at least 3.2 x 2.6, "
    with pytest.raises(ValueError, match=told):
        plots.plot_panels(four, size=(3.25, 2.2))
    plots.plot_panels(four, size=(3.25, 4.0))


@pytest.mark.parametrize("x_scale", ["linear", "log"])
def test_every_run_is_a_dot(ds, x_scale):
    drawn = jb.plot_final(ds, x_scale=x_scale)
    dots = [line for line in drawn.axes.lines if line.get_marker() == "o"]
    shown = np.sort(np.concatenate([line.get_xdata() for line in dots]))
    np.testing.assert_array_equal(shown, np.sort(ds["regret"].values[..., -1].ravel()))
    for label, (runs, found) in drawn.data.items():
        expected = jb.stats.band(runs[:, None])
        assert (found.low[0], found.high[0]) == (expected.low[0], expected.high[0])
        assert label in texts(drawn.figure)
    assert "mean and 95 % t-interval (" in texts(drawn.figure)
    assert "cover less), 8 seeds" in texts(drawn.figure)
    assert clipped_texts(drawn.figure) == []


def test_a_seed_has_one_height_in_all_rows(ds):
    dots = [line for line in jb.plot_final(ds).axes.lines if line.get_marker() == "o"]
    heights = [line.get_ydata() - row for row, line in enumerate(dots)]
    assert len({tuple(np.round(height, 12)) for height in heights}) == 1


def test_drawn_families_count_instances_and_missing_runs_are_no_dots():
    ds = synthetic_sweep(instances=tuple(f"I2/{j}" for j in range(5)), num_seeds=3)
    ds["regret"][0, 0, 0] = np.nan
    runs, band = jb.plot_final(ds, family="I2").data["ExpRef"]
    assert runs.size == 14
    assert (band.n, band.replicates) == (5, "instances")
    assert "5 instances x 3 seeds" in texts(jb.plot_final(ds).figure)
    assert len(jb.plot_final(with_parameter_grid(synthetic_sweep())).data) == 5


def test_pairs_and_ranking():
    found = jb.stats.compare(synthetic_sweep(num_seeds=12))
    drawn = jb.plot_comparison(found)
    assert list(drawn.data.values()) == list(found.pairs)
    written = texts(drawn.figure)
    assert "ExpRef − UCB-VI" in written
    assert "1. UCB-VI; 2. OrderedExpRef; 3. ExpRef" in written
    assert "paired over 12 seeds" in written
    assert clipped_texts(drawn.figure) == []


def test_profiles_are_drawn_with_their_sizes():
    ds = synthetic_sweep(instances=("I1", "I2"))
    drawn = jb.plot_profiles(jb.stats.performance_profiles(ds))
    assert set(drawn.data) == {"ExpRef", "OrderedExpRef", "UCB-VI"}
    assert "2 instances x 8 seeds" in texts(drawn.figure)
    assert clipped_texts(drawn.figure) == []


def test_errors_of_final_regret(ds):
    with pytest.raises(ValueError, match="x_scale: 'sqrt'; accepted: linear, log"):
        jb.plot_final(ds, x_scale="sqrt")
    with pytest.raises(ValueError, match="x_scale: 'log' with regret 0; accepted: 'linear'"):
        jb.plot_final(ds * 0, x_scale="log")


@pytest.fixture(scope="module")
def grid():
    return with_parameter_grid(synthetic_sweep())


@pytest.mark.parametrize("y_scale", ["linear", "log"])
def test_values_intervals_and_level_lines(grid, y_scale):
    drawn = jb.plot_parameter(grid, "bonus_scale", y_scale=y_scale)
    values, band = drawn.data["UCB-VI"]
    np.testing.assert_array_equal(values, [0.1, 0.5, 2.0])
    expected = jb.stats.mean_interval(grid["regret"].values[2, 0, 1, :, -1])
    np.testing.assert_allclose((band.center[1], band.low[1], band.high[1]), expected[:3])
    assert np.isnan(drawn.data["ExpRef"][0]).all()
    assert drawn.axes.get_xscale() == "log"
    assert drawn.axes.get_yscale() == y_scale
    written = texts(drawn.figure)
    count = "(few or skewed runs: may cover less), 8 seeds"
    words = ("ExpRef", "UCB-VI", "bonus_scale", "2,000,000 episodes", "0.5", count)
    assert all(wanted in written for wanted in words)
    assert clipped_texts(drawn.figure) == []


def test_intervals_do_not_reach_below_0_and_one_doubtful_value_is_enough(grid):
    """Regret is at least 0; and every value of the parameter has runs of its own, not only the last."""
    regret = np.random.default_rng(0).normal(100.0, 1.0, (1, 1, 3, 32, 1))
    regret[0, 0, 0, :, 0] = np.r_[np.ones(31), 1e6]
    drawn = jb.plot_parameter(result(regret, scale=[1.0, 2.0, 3.0]))
    assert (drawn.data["A"][1].low >= 0).all()
    assert "skewed runs: covers less" in texts(drawn.figure)


def test_values_are_sorted_and_other_parameters_make_lines(grid):
    regret = np.arange(1.0, 1 + 4 * 3).reshape(1, 1, 4, 3, 1)
    two = result(regret, scale=[2.0, 1.0, 2.0, 1.0], delta=[0.1, 0.1, 0.2, 0.2])
    drawn = jb.plot_parameter(two, "scale")
    assert list(drawn.data) == ["A, delta = 0.1", "A, delta = 0.2"]
    values, band = drawn.data["A, delta = 0.1"]
    assert values.tolist() == [1.0, 2.0]
    assert band.center.tolist() == [5.0, 2.0]
    with pytest.raises(ValueError, match="parameter: not given; accepted: one of scale, delta"):
        jb.plot_parameter(two)


def test_errors_of_parameters(grid):
    negative = grid.assign_coords(bonus_scale=-grid["bonus_scale"])
    uneven = grid.copy(deep=True)
    uneven["regret"][2, 0, 1, 0] = np.nan
    for ds, arguments, message in [
        (synthetic_sweep(), {}, "no parameter grid"),
        (grid, {"parameter": "bonus"}, "parameter: 'bonus'; did you mean 'bonus_scale'"),
        (grid, {"y_scale": "loglog"}, "y_scale: 'loglog'; did you mean 'log'"),
        (grid, {"learners": ["UCBVI"]}, "learner: 'UCBVI'; did you mean 'UCB-VI'"),
        (negative, {}, "accepted: positive values"),
        (0 * grid, {"y_scale": "log"}, "y_scale: 'log' with regret 0; accepted: 'linear'"),
        (uneven, {}, "UCB-VI has 8, 7, 8 replicates; accepted: the same number"),
    ]:
        with pytest.raises(ValueError, match=message):
            jb.plot_parameter(ds, **arguments)


def grid_of(count):
    """A learner with so many values of a parameter."""
    regret = np.arange(1.0, count + 1)[:, None, None] * np.ones((3, 1)) * np.arange(1.0, 6.0)
    return result(regret[None, None], bonus_scale=np.geomspace(0.1, 1, count))


def looks(drawn):
    lines = drawn.axes.lines
    return {each.get_label(): (to_hex(each.get_color()), each.get_linestyle()) for each in lines}


def test_colours_and_names_by_learner():
    ds = synthetic_sweep()
    drawn = jb.plot_regret(ds, colors={"ExpRef": "#123456"}, names={"UCB-VI": "optimism"})
    assert looks(drawn)["ExpRef"][0] == "#123456"
    assert "optimism" in texts(drawn.figure)
    assert "UCB-VI" not in texts(drawn.figure)
    assert "UCB-VI" in drawn.data  # data keep the names of the sweep
    panels = jb.plot_panels(synthetic_sweep(("I1", "I2")), names={"UCB-VI": "a rather long name"})
    assert "a rather long name" in texts(panels.figure)
    assert clipped_texts(panels.figure) == []


def test_values_of_a_parameter_get_a_ramp():
    seen = list(looks(jb.plot_regret(grid_of(5))).values())
    light = [sum(to_rgb(color)) for color, _ in seen]
    assert light == sorted(light, reverse=True)
    assert {line for _, line in seen} == {"-"}
    assert len({color for color, _ in looks(jb.plot_regret(grid_of(2))).values()}) == 2
    for color, _ in looks(jb.plot_regret(grid_of(4), colors={"A": "red"})).values():
        red, *others = to_rgb(color)
        assert red >= max(others)


def test_parameter_figures_take_them_too():
    drawn = jb.plot_parameter(grid_of(4), colors={"A": "#654321"}, names={"A": "mine"})
    assert "mine" in texts(drawn.figure)
    with pytest.raises(ValueError, match="colors: 'x'"):
        jb.plot_parameter(grid_of(4), colors={"x": "red"})
