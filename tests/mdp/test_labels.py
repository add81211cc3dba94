"""Labels stay beside the MDP: they follow its array, vanish with it and change no number."""

import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.mdp import digest, labels

VALUES = [[100.0, 200.0, 400.0], [150.0, 150.0, 300.0]]
CHANCES = [[0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]


def pricing():
    return jb.make_instance("posted-pricing", values=VALUES, probabilities=CHANCES, capacity=2)


def test_constructors_name_actions_and_outcomes():
    words = jb.labels_of(pricing())
    assert words.actions == (
        ("price 100", "price 200", "price 400"),
        ("price 150", "price 150", "price 300"),
    )
    assert words.scale == 800.0  # k * the largest value
    prophet = jb.make_instance("prophet", values=VALUES, probabilities=CHANCES, capacity=2)
    assert jb.labels_of(prophet).actions[1] == ("accept from 300", "accept from 300", "accept none")
    items = {"probabilities": CHANCES, "rewards": VALUES, "costs": np.ones((2, 3), int)}
    knapsack = jb.labels_of(jb.make_instance("knapsack", budget=1, **items))
    assert knapsack.actions[0] == ("reject", "accept")
    assert knapsack.scale == pytest.approx(400.0)
    assert knapsack.offers[0][1] == "200 for 1"


def test_rewards_in_their_unit_are_what_the_problem_pays():
    """The optimum in dollars, by brute force over both prices of both stages with capacity 2."""
    mdp = jb.label(pricing(), unit="$")
    first = max(p * q for p, q in ((100, 1.0), (200, 0.75), (400, 0.5)))
    second = max(p * q for p, q in ((150, 1.0), (300, 0.25)))
    assert jb.labels_of(mdp).money(float(jb.optimal(mdp)[0])) == f"${first + second:g}"


def test_labels_change_no_number_and_no_compilation():
    mdp = pricing()
    named = jb.label(mdp, unit="$", actions=["a", "b", "c"])
    assert digest(named) == digest(mdp)
    assert jax.tree.structure(named) == jax.tree.structure(mdp)
    assert jb.labels_of(mdp).unit == ""  # the first one keeps its own
    assert jb.labels_of(named).action(1, 2) == "c"


def test_labels_follow_the_array_and_vanish_with_it():
    before = len(labels._KNOWN)
    mdp = pricing()
    assert jb.labels_of(mdp._replace(start=jnp.asarray(1, jnp.int32))).actions
    assert len(labels._KNOWN) == before + 1
    stacked = jax.tree.map(lambda x: jnp.stack([x, x]), mdp)
    assert jb.labels_of(stacked) == labels.Labels()
    del mdp
    gc.collect()
    assert len(labels._KNOWN) == before


def test_traced_constructors_have_none_and_still_work():
    def draw(key):
        return jb.make_instance("prophet-random", key=key, horizon=2, capacity=1, num_values=2)

    drawn = jax.vmap(draw)(jax.random.split(jax.random.key(0), 3))
    assert drawn.prob.shape == (3, 2, 2, 2, 2)
    assert not jb.labels_of(drawn).actions


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"actions": ["a", "b"]}, "actions: 2 rows of"),
        ({"offers": [["a"]]}, "offers: 1 rows of"),
        ({"scale": 0}, "scale: 0; accepted"),
        ({"scale": float("nan")}, "scale: nan; accepted"),
    ],
)
def test_mistakes(given, told):
    with pytest.raises(ValueError, match=told):
        jb.label(pricing(), **given)
    with pytest.raises(ValueError, match="mdp: 2 stacked"):
        jb.label(jax.tree.map(lambda x: jnp.stack([x, x]), pricing()), unit="$")
