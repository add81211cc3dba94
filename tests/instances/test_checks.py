"""A message for every kind of bad input of the instance constructors."""

import jax
import numpy as np
import pytest

from jaxbandit import make_instance as make

KEY = jax.random.key(11)
UNIFORM = {"horizon": 3, "capacity": 2, "num_values": 3}
TWO = {"values": [[0, 1], [0, 1]], "probabilities": [[0.5, 0.5], [0.5, 0.5]], "capacity": 1}
ITEM = {"probabilities": [[0.5, 0.5]], "rewards": [[1, 2]], "costs": [[0, 1]], "budget": 1}
THETA = {"theta": [0, 1], "num_actions": 2, "gap": 0.1}
PATH = {"horizon": 4, "down_stages": [1, 3], "down_actions": [1, 2], "num_actions": 2, "gap": 0.1}
RANDOM = {"key": KEY, "horizon": 3, "width": 2, "num_actions": 2}

BAD = [
    (
        "prophet-uniform",
        {**UNIFORM, "horizon": 0},
        "horizon: 0; accepted: a whole number, at least 1",
    ),
    ("prophet-uniform", {**UNIFORM, "horizon": 2.5}, "horizon: 2.5; accepted: a whole number"),
    (
        "prophet-uniform",
        {**UNIFORM, "capacity": 0},
        "capacity: 0; accepted: a whole number, at least 1",
    ),
    ("prophet-uniform", {**UNIFORM, "capacity": True}, "capacity: True; accepted: a whole number"),
    (
        "prophet-uniform",
        {**UNIFORM, "num_values": 1},
        "num_values: 1; accepted: a whole number, at least 2",
    ),
    (
        "prophet-random",
        {**UNIFORM, "key": KEY, "num_values": 1},
        "num_values: 1; accepted: a whole number, at least 2",
    ),
    (
        "prophet-random",
        {**UNIFORM, "key": 3},
        r"key: 3; accepted: a typed key such as jax.random.key\(0\)",
    ),
    (
        "prophet-random",
        {**UNIFORM, "key": np.zeros(2, np.uint32)},
        "key: array.*accepted: a typed key",
    ),
    (
        "prophet-random",
        {**UNIFORM, "key": jax.random.split(KEY)},
        r"key: an array of shape \(2,\); accepted: a single",
    ),
    (
        "prophet",
        {**TWO, "values": [[0, 1], [0]]},
        r"values: cannot be made an array .*rows of unequal lengths are padded",
    ),
    (
        "prophet",
        {**TWO, "values": [[0, 1], [0, "x"]]},
        "values: dtype <U21; accepted: numbers of shape",
    ),
    ("prophet", {**TWO, "values": [0, 1]}, r"values: shape \(2,\); accepted: shape \[H, A\]"),
    (
        "prophet",
        {**TWO, "values": [[0, 1]]},
        r"probabilities: shape \(2, 2\); accepted: shape \[H, A\] = \(1, 2\)",
    ),
    (
        "prophet",
        {**TWO, "values": [[0, 1], [0, -1]]},
        "values: -1.0 at stage 2, entry 1; accepted: numbers >= 0",
    ),
    (
        "prophet",
        {**TWO, "values": [[0, np.nan], [0, 1]]},
        "values: nan at stage 1, entry 1; accepted: finite numbers",
    ),
    (
        "prophet",
        {**TWO, "probabilities": [[0.5, 0.5], [0.5, 0.4]]},
        "probabilities: entries of stage 2 sum to 0.9; they must sum to 1",
    ),
    (
        "posted-pricing",
        {**TWO, "probabilities": [[1.5, -0.5], [0.5, 0.5]]},
        "probabilities: -0.5 at stage 1, entry 1; accepted: numbers >= 0",
    ),
    ("posted-pricing", {**TWO, "capacity": 0}, "capacity: 0; accepted: a whole number, at least 1"),
    (
        "posted-pricing",
        {**TWO, "value_scale": 0},
        "value_scale: 0; accepted: a positive number, 1e-30 to 1e.30, or None",
    ),
    (
        "posted-pricing",
        {**TWO, "value_scale": 0.5},
        "value_scale: 0.5; accepted: at least the largest value, 1, or None",
    ),
    ("posted-pricing-random", {**UNIFORM, "key": None}, "key: None; accepted: a typed key"),
    (
        "knapsack",
        {**ITEM, "costs": [[0, 1.5]]},
        "costs: 1.5 at stage 1, entry 1; accepted: integers >= 0",
    ),
    (
        "knapsack",
        {**ITEM, "costs": [[0, -1]]},
        "costs: -1.0 at stage 1, entry 1; accepted: numbers >= 0",
    ),
    (
        "knapsack",
        {**ITEM, "costs": [[0]]},
        r"costs: shape \(1, 1\); accepted: shape \[H, M\] = \(1, 2\)",
    ),
    (
        "knapsack",
        {**ITEM, "rewards": [[1, -2]]},
        "rewards: -2.0 at stage 1, entry 1; accepted: numbers >= 0",
    ),
    (
        "knapsack",
        {**ITEM, "probabilities": [[0.5, 0.6]]},
        "probabilities: entries of stage 1 sum to 1.1; they must",
    ),
    ("knapsack", {**ITEM, "budget": -1}, "budget: -1; accepted: a whole number, at least 0"),
    (
        "knapsack",
        {**ITEM, "reward_scale": 1},
        "reward_scale: 1; accepted: at least the largest total .*, 2, or None",
    ),
    (
        "knapsack-random",
        {"key": KEY, "horizon": 3, "budget": 1, "num_outcomes": 0},
        "num_outcomes: 0; accepted: a whole",
    ),
    (
        "knapsack-random",
        {"key": KEY, "horizon": 3, "budget": 1, "largest_cost": -1},
        "largest_cost: -1; accepted: a whole",
    ),
    ("hard-general", {**THETA, "theta": [0, 2]}, r"theta: entry 2; accepted: 0\.\.1"),
    (
        "hard-general",
        {**THETA, "theta": [0, 0.5]},
        r"theta: \[0, 0.5\]; accepted: a non-empty list of integers",
    ),
    (
        "hard-general",
        {**THETA, "theta": []},
        r"theta: \[\]; accepted: a non-empty list of integers",
    ),
    ("hard-general", {**THETA, "horizon": 3}, "theta: 2 entries; accepted: horizon = 3 entries"),
    (
        "hard-general",
        {**THETA, "theta": None},
        "theta: None; accepted: actions .*both horizon and key to draw them",
    ),
    ("hard-general", {**THETA, "gap": 0.6}, r"gap: 0.6; accepted: a number in \[0, 1/2\]"),
    (
        "hard-general",
        {**THETA, "gap": None},
        "gap: None; accepted: a number .*or num_episodes for the proof's gap",
    ),
    (
        "hard-general",
        {**THETA, "num_actions": 0},
        "num_actions: 0; accepted: a whole number, at least 1",
    ),
    (
        "hard-ordered",
        {**PATH, "down_stages": [3, 1]},
        r"down_stages: \[3, 1\]; accepted: strictly increasing stages",
    ),
    (
        "hard-ordered",
        {**PATH, "down_stages": [1, 1]},
        r"down_stages: \[1, 1\]; accepted: strictly increasing stages",
    ),
    ("hard-ordered", {**PATH, "down_stages": [1, 4]}, r"down_stages: entry 4; accepted: 1\.\.3"),
    ("hard-ordered", {**PATH, "down_stages": [0, 1]}, r"down_stages: entry 0; accepted: 1\.\.3"),
    ("hard-ordered", {**PATH, "down_actions": [0, 1]}, r"down_actions: entry 0; accepted: 1\.\.2"),
    ("hard-ordered", {**PATH, "down_actions": [1]}, r"down_stages, down_actions: sizes \[2, 1\]"),
    ("hard-ordered", {**PATH, "num_downs": 1}, r"down_stages, down_actions: sizes \[1, 2, 2\]"),
    ("hard-ordered", {**PATH, "horizon": 2}, "num_downs: 2; accepted: less than the horizon 2"),
    (
        "hard-ordered",
        {**PATH, "down_stages": None},
        "down_stages: None; accepted: .* a key and num_downs to draw it",
    ),
    (
        "hard-ordered",
        {**PATH, "down_actions": None},
        "down_actions: None; accepted: .* a key and num_downs to draw it",
    ),
    ("hard-ordered", {**PATH, "gap": None}, "gap: None; accepted: a number"),
    (
        "hard-ordered",
        {**PATH, "gap": None, "num_episodes": 0},
        "num_episodes: 0; accepted: a whole number, at least 1",
    ),
    ("prophet", {**TWO, "values": [[0, 1e39], [0, 1]]}, r"values: 1e\+39 at stage 1, entry 1; acc"),
    ("prophet", {**TWO, "values": [[0, 1e-39], [0, 1]]}, r"values: 1e-39 at stage 1, entry 1; acc"),
    (
        "prophet",
        {**TWO, "values": [[0.1, 0.1 + 1e-12], [0, 1]]},
        r"values: .* at stage 1 are equal in float32; accepted",
    ),
    ("prophet", {**TWO, "values": [[True, False], [True, True]]}, "values: dtype bool; accepted"),
    ("prophet", {**TWO, "values": [[1j, 0], [0, 1]]}, "values: dtype complex128; accepted"),
    ("prophet", {**TWO, "values": [[None, 0], [0, 1]]}, "values: dtype object; accepted"),
    ("prophet", {**TWO, "value_scale": 1e39}, r"value_scale: 1e\+39; accepted: a positive number"),
    ("prophet", {**TWO, "value_scale": "1"}, r"value_scale: '1'; accepted: a positive number"),
    (
        "knapsack",
        {**ITEM, "rewards": [[1, 1e39]]},
        r"rewards: 1e\+39 at stage 1, entry 1; accepted",
    ),
    (
        "knapsack",
        {**ITEM, "budget": 10**9},
        r"budget \+ 2 = 1000000002.*outcomes; accepted: at most",
    ),
    (
        "knapsack-random",
        {"key": KEY, "horizon": 1e39, "budget": 0},
        r"horizon = 9\d{38}, .*outcomes; accepted: at most",
    ),
    ("prophet-uniform", {**UNIFORM, "horizon": 10**12}, "horizon.*outcomes; accepted: at most"),
    ("hard-general", {**THETA, "theta": None, "horizon": 10**12, "key": KEY}, "horizon.*at most"),
    ("hard-general", {**THETA, "theta": [True, False]}, "theta: dtype bool; accepted: a non-empty"),
    ("hard-general", {**THETA, "gap": np.nan}, r"gap: nan; accepted: a number in \[0, 1/2\]"),
    ("hard-general", {**THETA, "gap": "x"}, r"gap: 'x'; accepted: a number in \[0, 1/2\]"),
    (
        "knapsack-random",
        {"key": KEY, "horizon": 3, "budget": 1, "largest_cost": 2**31},
        "largest_cost: 2147483648; accepted: a whole number, at least 0 and at most",
    ),
    ("random-general", {**RANDOM, "width": 10**10}, r"width \+ 1 = .*outcomes; accepted: at most"),
    ("random-general", {**RANDOM, "key": "seed"}, "key: 'seed'; accepted: a typed key"),
    ("random-general", {**RANDOM, "width": 0}, "width: 0; accepted: a whole number, at least 1"),
    (
        "random-ordered",
        {**RANDOM, "num_outcomes": 0},
        "num_outcomes: 0; accepted: a whole number, at least 1",
    ),
    (
        "random-ordered",
        {**RANDOM, "num_actions": None},
        "num_actions: None; accepted: a whole number, at least 1",
    ),
]


@pytest.mark.parametrize(("name", "parameters", "message"), BAD)
def test_bad_input_is_named(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        make(name, **parameters)
