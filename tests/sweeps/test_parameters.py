"""Settings of a learner's parameters: grids refuse what the constructor refuses, points go without their product."""

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.checks import number
from jaxbandit.learner import Learner
from jaxbandit.sweeps.arguments import expand_learners


def check(params):
    number("scale", params["scale"], low=0)


def toy(**params):
    values = {"scale": np.float32(1), "cap": np.float32(np.nan), "num": np.int32(2), **params}
    return Learner(None, None, None, params=values, name="toy", check=check)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"scale": [1, -1]},
            r"grid: learner 'toy': scale: .*-1\.0.*; accepted: a finite number >= 0",
        ),
        ({"scale": [np.nan]}, r"grid: scale: .*nan.* for learner 'toy'; accepted: finite float32"),
        ({"scale": [np.inf]}, r"grid: scale: .*inf.*; accepted: finite float32"),
        ({"scale": [1e39]}, r"grid: scale: .*1e\+39.*; accepted: finite float32"),
        ({"cap": [1e39]}, r"grid: cap: .*1e\+39.*; accepted: finite float32"),
        ({"num": [0.5]}, r"grid: num: .*0\.5.*; accepted: finite int32 values"),
        ({"num": [2**32]}, r"grid: num: .*4294967296.*; accepted: finite int32 values"),
        ({"num": [np.nan]}, r"grid: num: .*nan.*; accepted: finite int32 values"),
        ({"scale": ["a"]}, r"grid: scale: dtype <U1; accepted: a non-empty list of values"),
        ({"scale": "ab"}, r"grid: scale: 'ab'; accepted: a non-empty list of values"),
        ({"scale": [True]}, r"grid: scale: dtype bool; accepted: a non-empty list of values"),
        ({"scale": [1j]}, r"grid: scale: dtype complex128; accepted: a non-empty list of values"),
        ({"scale": [[1], [1, 2]]}, r"grid: scale: cannot be made an array"),
        ({"scale": [[1.0]]}, r"grid: scale: \[\[1\.0\]\]; accepted: .* of shape \(\)"),
        ({"scale": np.arange(2000), "num": np.arange(2000)}, "grid: 4,000,000 settings; accepted"),
    ],
)
def test_values_that_the_learner_cannot_mean(values, message):
    with pytest.raises(ValueError, match=message):
        jb.grid(toy(), **values)


def test_a_parameter_whose_default_is_nan_may_be_nan():
    points = jb.grid(toy(), cap=[np.nan, 2.0], num=[3.0])
    assert points.size == 2
    np.testing.assert_array_equal(points.learner.params["cap"], np.float32([np.nan, 2]))
    assert points.learner.params["num"].dtype == np.int32


def test_the_last_parameter_varies_fastest():
    points = jb.grid(toy(), scale=(x for x in (1.0, 2.0)), num=range(3))
    assert points.learner.params["scale"].tolist() == [1, 1, 1, 2, 2, 2]
    assert points.learner.params["num"].tolist() == [0, 1, 2] * 2
    assert jb.grid(toy()).size == 1


def test_learners_are_checked_when_they_enter_a_sweep():
    with pytest.raises(ValueError, match=r"learners\['T'\]: learner 'toy': scale: .*-1"):
        expand_learners({"T": toy(scale=np.float32(-1))})
    with pytest.raises(
        ValueError, match=r"learners\['T'\]: parameter 'x' has dtype .*; accepted: n"
    ):
        expand_learners({"T": toy(x="text")})
    with pytest.raises(TypeError, match="grid: learner: str; accepted: a Learner"):
        jb.grid("ucbvi", bonus_scale=[1.0])


def test_points_are_the_settings_in_their_order():
    learner = jb.make_learner("ordered-expref", preset="practical")
    tried = jb.points(
        learner, [{"threshold": 0.3}, {"exploration_scale": 1.5, "threshold": 0.2}, {}]
    )
    assert tried.names == ("threshold", "exploration_scale")
    own = {name: float(learner.params[name]) for name in tried.names}
    params = tried.learner.params
    np.testing.assert_array_equal(params["threshold"], [0.3, 0.2, own["threshold"]])
    np.testing.assert_array_equal(
        params["exploration_scale"], [own["exploration_scale"], 1.5, own["exploration_scale"]]
    )
    assert params["epsilons"].shape == (3, *np.shape(learner.params["epsilons"]))


def test_points_of_a_product_run_as_the_grid():
    mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
    learner = jb.make_learner("ucbvi")
    scales = [0.1, 0.5]
    runs = [
        jb.sweep(
            {"UCB-VI": many},
            {"I1": mdp},
            60,
            num_seeds=2,
            record=jb.record.linear(3),
            progress=False,
        )
        for many in (
            jb.grid(learner, bonus_scale=scales),
            jb.points(learner, [{"bonus_scale": scale} for scale in scales]),
        )
    ]
    assert runs[0]["regret"].identical(runs[1]["regret"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([], "settings: .*accepted: a non-empty list of dictionaries"),
        ([0.5], "settings: .*accepted: a non-empty list of dictionaries"),
        ([{"bonus": 1.0}], "no scalar parameter 'bonus'; accepted: bonus_scale"),
        (
            [{"bonus_scale": [1.0, 2.0]}],
            r"points: bonus_scale: .*; accepted: .*values of shape \(\)",
        ),
        ([{"bonus_scale": -1.0}], "points: learner 'ucbvi': bonus_scale: .*: a finite number >= 0"),
        ([{"bonus_scale": float("nan")}], "points: bonus_scale: .*accepted: finite float32 values"),
        (None, "settings: None; accepted: a non-empty list of dictionaries"),
    ],
)
def test_errors_name_what_is_accepted(settings, message):
    with pytest.raises(ValueError, match=message):
        jb.points(jb.make_learner("ucbvi"), settings)


def test_parameters_that_are_no_dictionary():
    wrong = jb.make_learner("ucbvi")._replace(params=[1.0])
    for call in (
        lambda: expand_learners({"mine": wrong}),
        lambda: jb.grid(wrong, bonus_scale=[1.0]),
        lambda: jb.points(wrong, [{"bonus_scale": 1.0}]),
    ):
        with pytest.raises(ValueError, match=r"params: \[1.0\]; accepted: a dictionary, name"):
            call()
