"""Hooks, with what wandb, TensorBoard and a notebook would see of a growing sweep."""

import numpy as np
import pytest
from synthetic_sweep import synthetic_sweep

from jaxbandit.stats import regret_band
from jaxbandit.studies import hooks


class Progress:
    """What a sweep hands to its hook after a number of recorded points."""

    def __init__(self, whole, points):
        self.whole, self.points = whole, points
        self.episodes, self.total = points, whole.sizes["episode"]

    def dataset(self):
        later = np.arange(self.total) >= self.points
        return self.whole.assign(regret=self.whole["regret"].where(~later))


@pytest.fixture(scope="module")
def whole():
    return synthetic_sweep(instances=("I1", "I2"), num_points=12)


class Log(list):
    """What a Weights & Biases run and a TensorBoard writer have."""

    log = list.append

    def add_scalar(self, tag, value, step):
        self.append((tag, value, step))


def test_wandb_gets_every_point_of_every_band_once(whole):
    run = Log()
    hook = hooks.to_wandb(run)
    for points in (0, 5, 5, 12):
        hook(Progress(whole, points))
    assert [row["episode"] for row in run] == whole["episode"].values.tolist()
    band = regret_band(whole, "UCB-VI", family="I2")
    for name, values in {"mean": band.center, "low": band.low, "high": band.high}.items():
        np.testing.assert_allclose([row[f"I2/UCB-VI/{name}"] for row in run], values)


def test_tensorboard_gets_every_seed(whole):
    writer = Log()
    hook = hooks.to_tensorboard(writer, each="seed")
    for points in (3, 12):
        hook(Progress(whole, points))
    assert len(writer) == whole["regret"].size
    assert len({(tag, step) for tag, _, step in writer}) == whole["regret"].size
    mine = [value for tag, value, _ in writer if tag == "I1/ExpRef/seed 3/regret"]
    np.testing.assert_array_equal(mine, whole["regret"].values[0, 0, 3])


def test_runs_that_have_not_begun_do_not_hold_up_the_others(whole):
    regret = whole["regret"].copy()
    regret[1] = np.nan
    regret[0, :, 4:] = np.nan
    run = Log()
    hooks.to_wandb(run)(Progress(whole.assign(regret=regret), 6))
    assert "I1/ExpRef/mean" in run[0]
    assert "I1/UCB-VI/mean" in run[0]
    assert not any("OrderedExpRef" in tag for row in run for tag in row)


def test_live_plot_draws_what_is_there(whole):
    shown = []
    hook = hooks.live_plot(shown.append, family="I1")
    hook(Progress(whole, 0))
    assert not shown
    hook(Progress(whole, 7))
    (drawn,) = shown
    assert drawn.data["ExpRef"].center.shape == (7,)


def test_errors_name_what_is_accepted():
    with pytest.raises(ValueError, match="each: 'run'; accepted: band, seed"):
        hooks.to_wandb(Log(), each="run")
