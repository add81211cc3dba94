"""Colours and names as arguments, and a ramp for the values of a parameter."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex, to_rgb
from synthetic_sweep import clipped_texts, synthetic_sweep, texts

import jaxbandit as jb
from jaxbandit.plotting.figures import ramp


def grid(count):
    dims = ("learner", "instance", "parameter", "seed", "episode")
    regret = (
        np.arange(1.0, 6.0)
        * np.arange(1.0, count + 1)[:, None, None]
        * np.ones((1, 1, count, 3, 5))
    )
    scales = (("learner", "parameter"), np.geomspace(0.1, 1, count)[None])
    names = {
        "learner": ["UCB-VI"],
        "instance": ["I1"],
        "episode": np.arange(1, 6),
        "bonus_scale": scales,
    }
    return xr.Dataset({"regret": (dims, regret)}, coords=names)


def looks(drawn):
    return {
        line.get_label(): (to_hex(line.get_color()), line.get_linestyle())
        for line in drawn.axes.lines
    }


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
    seen = list(looks(jb.plot_regret(grid(5))).values())
    light = [sum(to_rgb(color)) for color, _ in seen]
    assert light == sorted(light, reverse=True)
    assert {line for _, line in seen} == {"-"}
    assert len({color for color, _ in looks(jb.plot_regret(grid(2))).values()}) == 2
    red = [
        to_rgb(color)
        for color, _ in looks(jb.plot_regret(grid(4), colors={"UCB-VI": "red"})).values()
    ]
    assert all(r >= g and r >= b for r, g, b in red)


def test_parameter_figures_take_them_too():
    drawn = jb.plot_parameter(grid(4), colors={"UCB-VI": "#654321"}, names={"UCB-VI": "mine"})
    assert "mine" in texts(drawn.figure)
    with pytest.raises(ValueError, match="colors: 'x'"):
        jb.plot_parameter(grid(4), colors={"x": "red"})


def test_ramps():
    assert len(set(ramp("#0072B2", 7))) == 7
    assert ramp("#0072B2", 1) == ["#0072B2"]
