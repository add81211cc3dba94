"""A message for every kind of bad input of the instance constructors."""

import inspect

import jax
import numpy as np
import pytest

import jaxbandit as jb

KEY = jax.random.key(11)
HALVES = [[0.5, 0.5], [0.5, 0.5]]
GOOD = {
    "prophet-uniform": {"horizon": 3, "capacity": 2, "num_values": 3},
    "prophet-random": {"horizon": 3, "capacity": 2, "num_values": 3, "key": KEY},
    "prophet": {"values": [[0, 1], [0, 1]], "probabilities": HALVES, "capacity": 1},
    "knapsack": {"probabilities": HALVES[:1], "rewards": [[1, 2]], "costs": [[0, 1]], "budget": 1},
    "knapsack-random": {"key": KEY, "horizon": 3, "budget": 1},
    "hard-general": {"theta": [0, 1], "num_actions": 2, "gap": 0.1},
    "hard-ordered": {
        "horizon": 4,
        "down_stages": [1, 3],
        "down_actions": [1, 2],
        "num_actions": 2,
        "gap": 0.1,
    },
    "random-general": {"key": KEY, "horizon": 3, "width": 2, "num_actions": 2},
    "bandit": {"values": [1, 2], "probabilities": HALVES},
}
SPECS = [
    (name, parameter, spec)
    for name, constructor in jb.INSTANCES.constructors.items()
    for parameter, spec in getattr(constructor, "specs", {}).items()
]
BAD = [
    ("prophet-random", {"key": 3}, r"key: 3; accepted: a typed key such as jax.random.key\(0\)"),
    ("prophet-random", {"key": np.zeros(2, np.uint32)}, "key: array.*accepted: a typed key"),
    ("prophet-random", {"key": jax.random.split(KEY)}, r"key: .* shape \(2,\); accepted: a single"),
    ("prophet", {"values": [[0, 1], [0]]}, "values: cannot be made an array .*of one length"),
    ("prophet", {"values": [[0, 1], [0, "x"]]}, "values: dtype <U21; accepted: finite numbers of"),
    ("prophet", {"values": [0, 1]}, r"values: shape \[2\]; accepted: .* of shape \[H, A\]"),
    ("prophet", {"values": [[0, 1]]}, r"probabilities: shape \(2, 2\); .*that of values, \(1, 2\)"),
    ("prophet", {"values": [[0, 1], [0, -1]]}, r"values: -1.0 at \[1, 1\]; accepted: .* >= 0"),
    ("prophet", {"values": [[0, np.nan], [0, 1]]}, r"values: nan at \[0, 1\]; accepted: finite"),
    ("prophet", {"values": [[0, 1e39], [0, 1]]}, r"values: 1e\+39 at .* <= 1e\+30"),
    ("prophet", {"values": [[0, 1e-39], [0, 1]]}, "values: 1e-39 at .*0 or of size >= 1e-30"),
    ("prophet", {"values": [[0.1, 0.1 + 1e-12]] * 2}, "values: .* stage 1 are equal in float32; a"),
    ("prophet", {"values": [[True, False]] * 2}, "values: dtype bool; accepted"),
    ("prophet", {"values": [[1j, 0]] * 2}, "values: dtype complex128; accepted"),
    ("prophet", {"values": [[None, 0]] * 2}, "values: dtype object; accepted"),
    (
        "prophet",
        {"probabilities": [[1, 0], [0.5, 0.4]]},
        "probabilities at stage 2 sum to 0.9; the",
    ),
    ("prophet", {"probabilities": [[1.5, -0.5], [1, 0]]}, r"probabilities: -0.5 at \[0, 1\]; acc"),
    ("prophet", {"value_scale": 0}, r"value_scale: 0; .* >= 1e-30 and <= 1e\+30, or None"),
    ("prophet", {"value_scale": 0.5}, "value_scale: 0.5; .*at least the largest value, 1, or None"),
    ("prophet", {"value_scale": 1e39}, r"value_scale: 1e\+39; accepted: a finite number"),
    ("prophet", {"value_scale": "1"}, "value_scale: '1'; accepted: a finite number"),
    ("prophet-uniform", {"horizon": 10**12}, "horizon.*outcomes; accepted: at most"),
    ("knapsack", {"costs": [[0, 1.5]]}, r"costs: 1.5 at \[0, 1\]; accepted: whole numbers"),
    ("knapsack", {"costs": [[0]]}, r"costs: shape \(1, 1\); .*that of probabilities, \(1, 2\)"),
    ("knapsack", {"probabilities": [[0.5, 0.6]]}, "probabilities at stage 1 sum to 1.1; they must"),
    ("knapsack", {"reward_scale": 1}, "reward_scale: 1; .*at least the largest total .*, 2, or No"),
    ("knapsack", {"budget": 10**9}, r"budget \+ 2 = 1000000002.*outcomes; accepted: at most"),
    ("knapsack-random", {"horizon": 1e39}, r"horizon = 9\d{38}, .*outcomes; accepted: at most"),
    ("hard-general", {"theta": [0, 2]}, r"theta: entry 2; accepted: 0\.\.1"),
    (
        "hard-general",
        {"theta": [0, 0.5]},
        r"theta: 0.5 at \[1\]; accepted: whole numbers of shape \[H\]",
    ),
    ("hard-general", {"theta": []}, r"theta: shape \[0\]; accepted: whole numbers"),
    ("hard-general", {"theta": [True, False]}, "theta: dtype bool; accepted: whole numbers"),
    ("hard-general", {"horizon": 3}, "theta: 2 entries; accepted: horizon = 3 entries"),
    ("hard-general", {"theta": None}, "theta: None; .*both horizon and key to draw them"),
    ("hard-general", {"theta": None, "horizon": 10**12, "key": KEY}, "horizon.*at most"),
    ("hard-general", {"gap": 0.6}, r"gap: 0.6; accepted: a finite number >= 0 and <= 0\.5"),
    ("hard-general", {"gap": np.nan}, "gap: nan; accepted: a finite number"),
    ("hard-general", {"gap": "x"}, "gap: 'x'; accepted: a finite number"),
    ("hard-general", {"gap": None}, "gap: None; .*or num_episodes for the proof's gap"),
    ("hard-ordered", {"down_stages": [3, 1]}, r"down_stages: \[3, 1\]; accepted: strictly incr"),
    ("hard-ordered", {"down_stages": [1, 1]}, r"down_stages: \[1, 1\]; accepted: strictly incr"),
    ("hard-ordered", {"down_stages": [1, 4]}, r"down_stages: entry 4; accepted: 1\.\.3"),
    ("hard-ordered", {"down_stages": [0, 1]}, r"down_stages: 0.0 at \[0\]; accepted: .* >= 1"),
    ("hard-ordered", {"down_actions": [0, 1]}, r"down_actions: 0.0 at \[0\]; accepted: .* >= 1"),
    ("hard-ordered", {"down_actions": [1]}, r"down_stages, down_actions: sizes \[2, 1\]"),
    ("hard-ordered", {"num_downs": 1}, r"down_stages, down_actions: sizes \[1, 2, 2\]"),
    ("hard-ordered", {"horizon": 2}, "num_downs: 2; accepted: .*less than the horizon 2"),
    ("hard-ordered", {"down_stages": None}, "down_stages: None; .* a key and num_downs to draw it"),
    (
        "hard-ordered",
        {"down_actions": None},
        "down_actions: None; .*a key and num_downs to draw it",
    ),
    ("hard-ordered", {"gap": None}, "gap: None; accepted: a number"),
    ("random-general", {"width": 10**10}, r"width \+ 1 = .*outcomes; accepted: at most"),
    ("bandit", {"means": [0.5]}, "means: given are means, values, probabilities of .*; accepted"),
    ("bandit", {"probabilities": None}, "given are values of means, .*accepted: means alone"),
    (
        "bandit",
        {"values": [1, 2, 3]},
        r"values: shape \[3\]; accepted: \[M\] or \[K, M\] = \[2, 2\]",
    ),
    ("bandit", {"probabilities": [[0.5, 0.6]]}, "probabilities at arm 0 sum to 1.1"),
]


@pytest.mark.parametrize(("name", "changed", "message"), BAD)
def test_bad_input_is_named(name, changed, message):
    with pytest.raises(ValueError, match=message):
        jb.make_instance(name, **{**GOOD[name], **changed})


@pytest.mark.parametrize(("name", "parameter", "spec"), SPECS, ids=lambda x: str(x)[:24])
def test_what_a_spec_refuses_is_refused_by_name(name, parameter, spec):
    constructor = jb.INSTANCES.constructors[name]
    needed = inspect.signature(constructor).parameters
    others = {
        p: 1 for p, known in needed.items() if known.default is known.empty and p != parameter
    }
    only = {p: constructor.specs[p].good()[-1] for p in others if p in constructor.specs}
    for value in spec.odd():
        if value is not needed[parameter].default:
            with pytest.raises(ValueError, match=f"^{parameter}: .*; accepted: "):
                constructor(**{**others, **only, parameter: value})


def test_every_size_of_a_constructor_has_a_spec():
    """But what may be traced or is no number: keys, scales, gaps and maps."""
    own = {"key", "value_scale", "reward_scale", "gap", "rows"}
    for name, constructor in jb.INSTANCES.constructors.items():
        assert set(inspect.signature(constructor).parameters) - own == set(constructor.specs), name
