"""Instances of a sweep: families are never guessed, and what is no instance is named."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.sweeps.arguments import expand_instances

SIZES = {"horizon": 3, "capacity": 1, "num_values": 3}


@pytest.fixture(scope="module")
def mdp():
    return jb.make_instance("prophet-uniform", **SIZES)


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
