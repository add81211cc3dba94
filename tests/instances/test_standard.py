"""Standard problems against values that are published, known in closed form, or computed by loops of the tests' own."""

from itertools import product

import gymnasium
import numpy as np
import pytest

import jaxbandit as jb

PUBLISHED = [
    ("riverswim", {}, 3.397264, 5e-7),  # Osband, Russo and Van Roy's form, H = 20
    ("frozen-lake", {}, 0.744190, 5e-7),
    ("frozen-lake", {"horizon": 50}, 0.545909, 5e-7),
    ("frozen-lake", {"map_name": "8x8", "is_slippery": False, "horizon": 14}, 1.0, 0),
    ("grid-world", {"horizon": 100}, 0.705, 5e-4),  # Russell and Norvig
    ("deep-sea", {"size": 30}, 0.99, 1e-12),
    ("chain", {"slip": 0.0, "horizon": 20}, 160.0, 1e-9),
    ("six-arms", {"horizon": 2}, 60.0, 1e-9),
    ("combination-lock", {"length": 5, "horizon": 5}, 1.0, 0),
    ("combination-lock", {"length": 5, "horizon": 4}, 0.0, 0),
    ("secretary", {"num_candidates": 4}, 11 / 24, 1e-12),
    ("secretary", {"num_candidates": 200}, 1 / np.e, 2e-3),
    ("base-stock", {"horizon": 3, "fixed_cost": 4.0}, 67 / 16, 1e-12),  # Puterman 1994
    (
        "revenue-management",
        {"fares": [7], "arrivals": [0.5], "capacity": 3, "horizon": 3},
        10.5,
        1e-12,
    ),
]


@pytest.mark.parametrize(("name", "parameters", "value", "tolerance"), PUBLISHED)
def test_values(name, parameters, value, tolerance):
    mdp = jb.validate(jb.make_instance(name, **parameters))
    assert abs(float(jb.optimal(mdp)[0]) - value) <= tolerance + 1e-12


@pytest.mark.parametrize(("name", "slippery"), [*product(["4x4", "8x8"], [True, False])])
def test_frozen_lake_is_gymnasiums(name, slippery):
    env = gymnasium.make("FrozenLake-v1", map_name=name, is_slippery=slippery)
    ours = jb.make_instance("frozen-lake", map_name=name, is_slippery=slippery, horizon=5)
    theirs = jb.from_gymnasium(env, 5)
    for one, other in zip(jb.to_arrays(ours), jb.to_arrays(theirs), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-15)


def test_revenue_management_against_a_plain_recursion():
    fares, arrivals = [120.0, 200.0, 80.0], [[0.3, 0.1, 0.2], [0.2, 0.2, 0.6], [0.1, 0.6, 0.1]]

    def value(stage, seats):
        if stage == 3 or not seats:
            return 0.0
        keep = value(stage + 1, seats)
        paid = sum(
            p * max(fare + value(stage + 1, seats - 1), keep)
            for p, fare in zip(arrivals[stage], fares, strict=True)
        )
        return paid + (1 - sum(arrivals[stage])) * keep

    mdp = jb.make_instance(
        "revenue-management", fares=fares, arrivals=arrivals, capacity=2, horizon=3
    )
    np.testing.assert_allclose(float(jb.optimal(mdp)[0]), value(0, 2), rtol=1e-12)
    assert jb.labels_of(mdp).action(0, 2) == "accept from 120"


def test_base_stock_policies_are_optimal():
    mdp = jb.make_instance("base-stock", demand=(0.1, 0.3, 0.2, 0.4), capacity=5, horizon=4)
    for row in jb.optimal(mdp)[1][:, 1:].tolist():  # order up to row[0] below it, and nothing above
        assert all(level == row[0] for level in row[: row[0]])
        assert all(level <= stock for stock, level in enumerate(row) if stock >= row[0])


def test_prophets_with_many_values_tend_to_mosers_sequence():
    moser = 0.0
    for horizon in (1, 2, 3, 4):
        moser = (1 + moser**2) / 2
        mdp = jb.make_instance("prophet-uniform", horizon=horizon, capacity=1, num_values=201)
        assert abs(float(jb.optimal(mdp)[0]) - moser) < 2 / 200
    assert f"{moser:.4f}" == "0.7417"


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("grid-world", {"rows": ["S?"]}, "rows: .*; accepted: rows of equal length"),
        ("base-stock", {"demand": [0.5]}, "demand: probabilities sum to 0.5; they must sum to 1"),
        ("revenue-management", {"fares": [1]}, r"arrivals: shape \(4,\); accepted: \[J\] = \(1,\)"),
        ("revenue-management", {"arrivals": [0.4] * 4}, "arrivals: .* that sum to at most 1"),
    ],
)
def test_parameters_are_checked(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        jb.make_instance(name, **parameters)


def test_a_grid_may_be_small():
    assert jb.make_instance("grid-world", rows=["S."]).num_states == 2
