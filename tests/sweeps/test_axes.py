"""Axes of a sweep: grids refuse what the constructor refuses, families are never guessed."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.checks import number
from jaxbandit.learner import Learner
from jaxbandit.sweeps.axes import expand_instances, expand_learners

SIZES = {"horizon": 3, "capacity": 1, "num_values": 3}


def check(params):
    number("scale", params["scale"], low=0)


def toy(**params):
    values = {"scale": np.float32(1), "cap": np.float32(np.nan), "num": np.int32(2), **params}
    return Learner(None, None, None, params=values, name="toy", check=check)


@pytest.fixture(scope="module")
def mdp():
    return jb.make_instance("prophet-uniform", **SIZES)


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
        ({"scale": np.arange(2000), "num": np.arange(2000)}, "grid: 4,000,000 points; accepted"),
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


def test_only_what_is_given_together_is_a_family(mdp):
    draws = jb.family("prophet-random", count=2, key=jax.random.key(1), **SIZES)
    given = {"A/k=2": mdp, "A/k=3": mdp, "B": [mdp, mdp], "C": draws, "D": (mdp,)}
    expanded = expand_instances(given)
    assert expanded.families == {
        "A/k=2": "A/k=2",
        "A/k=3": "A/k=3",
        "B/0": "B",
        "B/1": "B",
        "C/0": "C",
        "C/1": "C",
        "D/0": "D",
    }
    with pytest.raises(ValueError, match="'B/0' is named twice"):
        expand_instances({"B": [mdp], "B/0": mdp})


def test_two_names_that_look_alike_are_two_instances_in_the_results(mdp):
    learners = {"uniform": jb.make_learner("uniform")}
    instances = {"A/k=2": mdp, "A/k=3": mdp, "B": [mdp, mdp]}
    ds = jb.sweep(learners, instances, 50, 3, record=jb.record.linear(2), progress=False)
    assert ds["family"].values.tolist() == ["A/k=2", "A/k=3", "B", "B"]
    rows = [(row.family, row.n, row.replicates) for row in jb.stats.final_table(ds)]
    assert rows == [("A/k=2", 3, "seeds"), ("A/k=3", 3, "seeds"), ("B", 2, "instances")]


def test_ranks_are_an_order_and_nothing_else(mdp):
    loose = [mdp._replace(rank=r) for r in (mdp.rank / 3 - 5, np.int64(mdp.rank) * 2**40)]
    expanded = expand_instances({"I": [mdp, *loose]})
    for other in expanded.values():
        assert other.rank.dtype == np.int32
        np.testing.assert_array_equal(other.rank, mdp.rank)


@pytest.mark.parametrize(
    ("instances", "error", "message"),
    [
        ({"a\nb": None}, ValueError, "instances: name .* has the character"),
        ({"I": []}, TypeError, r"instances\['I'\]: list; accepted: .*non-empty list"),
        ({3: None}, ValueError, "instances: name 3; accepted: a non-empty string"),
    ],
)
def test_instances_that_are_none(instances, error, message):
    with pytest.raises(error, match=message):
        expand_instances(instances)


def test_an_instance_of_other_types_is_named(mdp):
    with pytest.raises(
        ValueError, match=r"instances\['I/1'\]: MDP.prob: dtype complex64; accepted"
    ):
        expand_instances({"I": [mdp, mdp._replace(prob=np.asarray(mdp.prob) + 0j)]})


def test_draws_of_a_family():
    for count in (0, 1.5, "2", None):
        with pytest.raises(ValueError, match=r"count: .*; accepted: a whole number of draws"):
            jb.family("prophet-random", count=count, key=jax.random.key(0), **SIZES)
    with pytest.raises(ValueError, match="key: 0; accepted: a typed key"):
        jb.family("prophet-random", count=1, key=0, **SIZES)


def test_seeds_outside_32_bits_are_refused(mdp):
    for seed in (2**32, -1):
        with pytest.raises(ValueError, match=f"seed: {seed}; accepted: a whole number"):
            jb.sweep({"U": jb.make_learner("uniform")}, {"I": mdp}, 10, 1, seed=seed)
