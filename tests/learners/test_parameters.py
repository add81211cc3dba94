"""What a constructor refuses, `Learner.check` refuses, too."""

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.learners.parameters import SCHEDULE, check_gradient, check_policy, check_schedule


@pytest.mark.parametrize("name", SCHEDULE)
def test_schedules(name):
    """Values that the spec calls odd are refused by the constructor and by the check, good ones by neither."""
    shared = {"ordered": True} if name in ("greedy_share", "deviations") else {}
    which = "expref-shared" if shared else "ordered-expref"
    params = jb.make_learner(which, **shared).params
    for value in SCHEDULE[name].odd():
        with pytest.raises(ValueError, match=f"{name}: .*; accepted: "):
            jb.make_learner(which, **shared, **{name: value})
    for value in SCHEDULE[name].good():
        check_schedule({**params, name: np.asarray(value)})
        jb.make_learner(which, **shared, **{name: value})
    with pytest.raises(ValueError, match=f"{name}: .*; accepted: "):
        check_schedule({**params, name: np.float64(-1)})


def test_values_that_stand_for_the_paper_are_accepted():
    for name in ("expref", "ordered-expref"):
        learner = jb.make_learner(name)
        learner.check(learner.params)
        learner.check({**learner.params, "threshold": np.float64(0.1), "num_phases": 3})
        explicit = jb.make_learner(name, epsilons=[0.5, 0.25])
        explicit.check(explicit.params)
        for wrong in ([0.5, 2.0], [0.0], [-1.0, 0.5]):
            padded = np.pad(wrong, (0, 32 - len(wrong)))
            with pytest.raises(ValueError, match=r"epsilons: .*; accepted"):
                learner.check({**learner.params, "epsilons": padded})


def test_the_others():
    check_gradient({"baseline_decay": 0.0})
    for params in (
        {"baseline_decay": np.float32(1)},
        {"baseline_decay": 0.5, "learning_rate": np.float32(0)},
        {"baseline_decay": np.nan, "learning_rate": 1.0},
    ):
        with pytest.raises(ValueError, match=r"(baseline_decay|learning_rate): .*; accepted: "):
            check_gradient(params)
    check_policy({"policy": np.full((2, 2, 4), 0.25, np.float32)})
    with pytest.raises(ValueError, match=r"policy: .*\.\.\.; accepted: action probabilities"):
        check_policy({"policy": np.full((2, 20, 4), 0.3)})
    with pytest.raises(ValueError, match=r"policy: \[\[0\], \[1, 2\]\]; accepted: integers"):
        check_policy({"policy": [[0], [1, 2]]})


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("expref", {"preset": ["theory"]}),
        ("expref", {"epsilons": 10**400}),
        ("prophet-bandit", {"first_epsilon": "x"}),
        ("prophet-bandit", {"threshold_scale": 1j}),
        ("prophet-bandit", {"episodes_scale": 10**400}),
        ("prophet-optimism", {"values": "x"}),
        ("prophet-optimism", {"values": 1j}),
    ],
)
def test_strange_values_are_refused_by_the_name_of_the_parameter(name, wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}: .*accepted: "):
        jb.make_learner(name, **wrong)
