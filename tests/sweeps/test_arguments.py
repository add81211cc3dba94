"""What a sweep is over: settings of parameters that the constructor would refuse are refused, families are never guessed,
and what is no learner or instance is named."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.checks import number
from jaxbandit.sweeps.arguments import expand_instances, expand_learners

SIZES = {"horizon": 3, "capacity": 1, "num_values": 3}
MDP = jb.make_instance("prophet-uniform", **SIZES)


def toy(**params):
    values = {"scale": np.float32(1), "cap": np.float32(np.nan), "num": np.int32(2), **params}
    check = lambda params: number("scale", params["scale"], low=0)  # noqa: E731
    return jb.make_learner("uniform")._replace(params=values, name="toy", check=check)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"scale": [1, -1]}, r"grid: learner 'toy': scale: .*-1\.0.*; accepted: a finite number >= 0"),
        ({"scale": [np.nan]}, r"grid: scale: .*nan.* for learner 'toy'; accepted: finite float32"),
        ({"scale": [np.inf]}, r"grid: scale: .*inf.*; accepted: finite float32"),
        ({"scale": [1e39]}, r"grid: scale: .*1e\+39.*; accepted: finite float32"),
        ({"cap": [1e39]}, r"grid: cap: .*1e\+39.*; accepted: finite float32"),
        ({"num": [0.5]}, r"grid: num: .*0\.5.*; accepted: finite int32 values"),
        ({"num": [2**32]}, r"grid: num: .*4294967296.*; accepted: finite int32 values"),
        ({"num": [np.nan]}, r"grid: num: .*nan.*; accepted: finite int32 values"),
        ({"scale": ["a"]}, r"grid: scale: dtype <U1; accepted: a non-empty list of values"),
        ({"scale": "ab"}, r"grid: scale: dtype <U2; accepted: a non-empty list of values"),
        ({"scale": 0.5}, r"grid: scale: 0\.5; accepted: a non-empty list"),
        ({"scale": []}, r"grid: scale: \[\]; accepted: a non-empty list"),
        ({"scale": [True]}, r"grid: scale: dtype bool; accepted: a non-empty list of values"),
        ({"scale": [1j]}, r"grid: scale: dtype complex128; accepted: a non-empty list of values"),
        ({"scale": [[1], [1, 2]]}, r"grid: scale: cannot be made an array"),
        ({"scale": [[1.0]]}, r"grid: scale: \[\[1\.0\]\]; accepted: .* of shape \(\)"),
        ({"scale": np.arange(2000), "num": np.arange(2000)}, "grid: 4,000,000 settings; accepted"),
        ({"bonus": [1.0]}, "grid: learner 'toy' has no array parameter 'bonus'; accepted: scale, cap, num"),
    ],
)  # fmt: skip
def test_values_that_the_learner_cannot_mean(values, message):
    with pytest.raises(ValueError, match=message):
        jb.grid(toy(), **values)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([], "settings: .*accepted: a non-empty list of dictionaries"),
        ([0.5], "settings: .*accepted: a non-empty list of dictionaries"),
        (None, "settings: None; accepted: a non-empty list of dictionaries"),
        ([{"bonus": 1.0}], "no scalar parameter 'bonus'; accepted: bonus_scale"),
        ([{"bonus_scale": [1.0, 2.0]}], r"points: bonus_scale: .*; accepted: .*values of shape \(\)"),
        ([{"bonus_scale": -1.0}], "points: learner 'ucbvi': bonus_scale: .*: a finite number >= 0"),
        ([{"bonus_scale": float("nan")}], "points: bonus_scale: .*accepted: finite float32 values"),
    ],
)  # fmt: skip
def test_settings_that_are_none(settings, message):
    with pytest.raises(ValueError, match=message):
        jb.points(jb.make_learner("ucbvi"), settings)


def test_the_last_parameter_varies_fastest_and_a_default_of_nan_may_be_nan():
    points = jb.grid(toy(), scale=(x for x in (1.0, 2.0)), num=range(3), cap=[np.nan])
    assert points.learner.params["scale"].tolist() == [1, 1, 1, 2, 2, 2]
    assert points.learner.params["num"].tolist() == [0, 1, 2] * 2
    assert points.learner.params["num"].dtype == np.int32
    assert np.isnan(points.learner.params["cap"]).all()
    assert jb.grid(toy()).size == 1


def test_points_are_the_settings_in_their_order():
    learner = jb.make_learner("ordered-expref", preset="practical")
    given = [{"threshold": 0.3}, {"exploration_scale": 1.5, "threshold": 0.2}, {}]
    tried = jb.points(learner, given)
    assert tried.names == ("threshold", "exploration_scale")
    for name in tried.names:
        own = float(learner.params[name])
        np.testing.assert_array_equal(
            tried.learner.params[name], [each.get(name, own) for each in given]
        )
    assert tried.learner.params["epsilons"].shape == (3, *np.shape(learner.params["epsilons"]))


def test_points_of_a_product_are_the_grid():
    learner, scales = jb.make_learner("ucbvi"), [0.1, 0.5]
    product = jb.points(learner, [{"bonus_scale": scale} for scale in scales])
    grid = jb.grid(learner, bonus_scale=scales)
    assert product.names == grid.names
    np.testing.assert_equal(product.learner.params, grid.learner.params)
    assert product.learner[:4] == grid.learner[:4]


def test_learners_are_checked_when_they_enter_a_sweep():
    with pytest.raises(ValueError, match=r"learners\['T'\]: learner 'toy': scale: .*-1"):
        expand_learners({"T": toy(scale=np.float32(-1))})
    with pytest.raises(ValueError, match=r"learners\['T'\]: .* params: x: 'text'; accepted: numb"):
        expand_learners({"T": toy(x="text")})
    with pytest.raises(TypeError, match="learner: 'ucbvi'; accepted: a Learner"):
        jb.grid("ucbvi", bonus_scale=[1.0])
    wrong = jb.make_learner("ucbvi")._replace(params=[1.0])
    with pytest.raises(ValueError, match=r"params: \[1.0\]; accepted: a dictionary, name"):
        jb.points(wrong, [{"bonus_scale": 1.0}])


def test_only_what_is_given_together_is_a_family():
    draws = jb.family("prophet-random", count=2, key=jax.random.key(1), **SIZES)
    given = {"A/k=2": MDP, "A/k=3": MDP, "B": [MDP, MDP], "C": draws, "D": (MDP,)}
    assert expand_instances(given).families == {
        "A/k=2": "A/k=2", "A/k=3": "A/k=3", "B/0": "B", "B/1": "B", "C/0": "C", "C/1": "C", "D/0": "D",
    }  # fmt: skip


def test_two_names_that_look_alike_are_two_instances_in_the_results():
    instances = {"A/k=2": MDP, "A/k=3": MDP, "B": [MDP, MDP]}
    ds = jb.sweep(jb.make_learner("uniform"), instances, 50, 3, record=jb.record.linear(2))
    assert ds["family"].values.tolist() == ["A/k=2", "A/k=3", "B", "B"]
    rows = [(row.family, row.n, row.replicates) for row in jb.stats.final_table(ds)]
    assert rows == [("A/k=2", 3, "seeds"), ("A/k=3", 3, "seeds"), ("B", 2, "instances")]


def test_ranks_are_an_order_and_nothing_else():
    loose = [MDP._replace(rank=r) for r in (MDP.rank / 3 - 5, np.int64(MDP.rank) * 2**40)]
    for other in expand_instances({"I": [MDP, *loose]}).values():
        assert other.rank.dtype == np.int32
        np.testing.assert_array_equal(other.rank, MDP.rank)


@pytest.mark.parametrize(
    ("instances", "error", "message"),
    [
        ({"a\nb": None}, ValueError, "instances: name .* has the character"),
        ({"I": []}, TypeError, r"instances\['I'\]: list; accepted: .*non-empty list"),
        ({"I": 3}, TypeError, r"instances\['I'\]: int; accepted: an MDP"),
        ({3: None}, ValueError, "instances: name 3; accepted: a non-empty string"),
        ({"B": [MDP], "B/0": MDP}, ValueError, "'B/0' is named twice"),
        ({"I": [MDP, MDP._replace(prob=np.asarray(MDP.prob) + 0j)]}, ValueError, r"instances\['I/1'\]: MDP.prob: dtype complex64; acc"),
        ({"bad": MDP._replace(prob=MDP.prob * 2)}, ValueError, r"instances\['bad'\]: MDP.prob: .* must sum to 1"),
    ],
)  # fmt: skip
def test_instances_that_are_none(instances, error, message):
    with pytest.raises(error, match=message):
        expand_instances(instances)


def test_draws_of_a_family():
    few, many = (
        jb.family("prophet-random", count=n, key=jax.random.key(7), **SIZES) for n in (2, 4)
    )
    np.testing.assert_array_equal(few.prob, many.prob[:2])
    assert not np.array_equal(many.prob[0], many.prob[1])
    for count in (0, 1.5, "2", None):
        with pytest.raises(ValueError, match=r"count: .*; accepted: a whole number of draws"):
            jb.family("prophet-random", count=count, key=jax.random.key(0), **SIZES)
    with pytest.raises(ValueError, match="key: 0; accepted: a typed key"):
        jb.family("prophet-random", count=1, key=0, **SIZES)
