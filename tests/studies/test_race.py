"""The race: who is dropped, how often wrongly, and what the budget pays for."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

import jaxbandit as jb
from jaxbandit.studies.race import Tuner, clearly_worse


def race(means, rng, budget, instances=3, spread=1.0, **how):
    """A race whose candidate j has mean regret means[j]; instances differ, seeds are shared."""
    tuner = Tuner(instances, budget, **how)
    tuner.add([{"x": float(j)} for j in range(len(means))])
    shared = {}
    while (asked := tuner.ask()) is not None:
        shape = (1, instances, asked.num_seeds)
        luck = shared.setdefault(asked.number, rng.gamma(4.0, 1.0, shape))
        own = rng.normal(0.0, spread, (len(asked.candidates), *shape[1:]))
        tuner.tell(asked, np.asarray(means)[list(asked.candidates), None, None] + luck + own)
    return tuner


def test_the_best_is_dropped_rarely_and_the_budget_goes_to_the_good():
    rng, dropped, repetitions = np.random.default_rng(41), 0, 300
    means = np.array([0.0, 0.0, 0.0, 0.5, 1.0, 2.0, 4.0, 8.0])
    share = []
    for _ in range(repetitions):
        tuner = race(means, rng, budget=800)
        found = tuner.candidates
        dropped += any(candidate.dropped is not None for candidate in found[:3])
        share.append(sum(candidate.regret.n for candidate in found[:4]) / tuner.spent)
        assert tuner.spent <= 800
    # Three candidates are equally best; dropping any of them is wrong. The rate allowed is 5 % for
    # each, and 3 simulation errors of 0.0126 on top: false alarm 0.1 % for a fresh key, none here.
    assert dropped / repetitions < 0.05 + 0.038
    assert np.mean(share) > 0.7  # an even split would give half


def test_one_lucky_seed_drops_nobody():
    tuner = Tuner(1, 100)
    tuner.add([{"x": 0.0}, {"x": 1.0}])
    asked = tuner.ask()
    assert asked.num_seeds == 2
    tuner.tell(asked, [[[1.0, 10.0]], [[100.0, 11.0]]])
    assert [candidate.dropped for candidate in tuner.candidates] == [None, None]


def test_clearly_worse_is_the_paired_t_test_with_no_p_value_below_that_of_signs():
    values = np.random.default_rng(42).normal([0.0, 0.6, 3.0], 1.0, (9, 3))
    by_scipy = [
        scipy_stats.ttest_rel(values[:, j], values[:, 0], alternative="greater").pvalue
        for j in (1, 2)
    ]
    for alpha in (0.5, 0.1, 0.01, 1e-4):
        found = clearly_worse([values], 0, alpha, 2)
        assert found.tolist() == [False, *(max(p, 2**-9) < alpha / 2 for p in by_scipy)]


def test_rounds_double_the_seeds_and_end_with_the_budget():
    tuner = Tuner(2, 50, seed=7)
    tuner.add([{"x": 0.0}, {"x": 1.0}])
    sizes, seeds = [], []
    while (asked := tuner.ask()) is not None:
        sizes.append(asked.num_seeds)
        seeds.append(asked.seed)
        tuner.tell(asked, np.random.default_rng(len(sizes)).random((2, 2, asked.num_seeds)))
    assert sizes == [2, 2, 4, 4]  # 8 would cost 32 more runs, and 18 are left
    assert tuner.spent == 48
    assert seeds[0] == 7
    assert len(set(seeds)) == 4


def test_late_candidates_catch_up_on_the_same_seeds():
    tuner = Tuner(1, 1000)
    tuner.add([{"x": 0.0}, {"x": 1.0}])
    first = tuner.ask()
    tuner.tell(first, np.array([[[1.0, 2.0]], [[1.1, 2.2]]]))
    (late,) = tuner.add([{"x": 2.0}])
    caught = tuner.ask()
    assert (caught.number, caught.candidates, caught.seed) == (1, (late,), first.seed)
    tuner.tell(caught, np.array([[[0.5, 1.4]]]))
    assert tuner.ask().candidates == (0, 1, late)
    assert tuner.best.settings == {"x": 2.0}


class Study:
    """What Optuna's study and trials have: ask, suggest_float, tell."""

    def __init__(self):
        self.rng, self.values = np.random.default_rng(0), {}

    def ask(self):
        return self

    def suggest_float(self, name, low, high, log=False):
        assert log
        return float(np.exp(self.rng.uniform(np.log(low), np.log(high))))

    def tell(self, settings, value):
        self.values[settings] = value


def test_another_optimiser_can_drive_it():
    mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
    learner, study = jb.make_learner("ucbvi"), Study()
    tuner = jb.Tuner(num_instances=1, budget=60)
    for _ in range(2):
        trials = [study.ask() for _ in range(3)]
        added = tuner.add(
            [{"bonus_scale": t.suggest_float("bonus_scale", 0.01, 5.0, log=True)} for t in trials]
        )
        asked = tuner.ask()
        many = jb.points(learner, asked.settings)
        how = {"num_seeds": asked.num_seeds, "seed": asked.seed, "progress": False}
        tuner.tell(asked, jb.sweep({"UCB-VI": many}, {"I1": mdp}, 200, **how))
        for j in added:
            found = tuner.candidates[j]
            study.tell(found.settings["bonus_scale"], found.regret.value)
    assert len(study.values) == 6
    assert all(np.isfinite(value) for value in study.values.values())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Tuner(0, 10), "num_instances: 0; accepted"),
        (lambda: Tuner(1, 10, first_seeds=1), "first_seeds: 1; accepted: .* at least 2"),
        (lambda: Tuner(1, 10, level=0.0), "level: 0.0; accepted"),
        (lambda: race([0.0] * 9, np.random.default_rng(0), 10), "budget: 10 runs; accepted: at least 54"),
        (lambda: Tuner(1, 10).best, "nothing was told yet"),
    ],
)  # fmt: skip
def test_errors_name_what_is_accepted(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_answers_of_the_wrong_shape_or_twice_are_refused():
    tuner = Tuner(1, 100)
    tuner.add([{"x": 0.0}, {"x": 1.0}])
    asked = tuner.ask()
    with pytest.raises(ValueError, match=r"regret: shape \(2, 2\).*seeds\] = \(2, 1, 2\)"):
        tuner.tell(asked, np.ones((2, 2)))
    with pytest.raises(ValueError, match="4 not finite"):
        tuner.tell(asked, np.full((2, 1, 2), np.nan))
    tuner.tell(asked, np.random.default_rng(0).random((2, 1, 2)))
    with pytest.raises(ValueError, match="accepted: the round that ask returned last, once"):
        tuner.tell(asked, np.ones((2, 1, 2)))


@pytest.mark.parametrize("count", [2**20 + 1, 2**40, 10**400], ids=["many", "more", "most"])
def test_more_instances_than_any_budget_pays_for_take_no_memory(count):
    with pytest.raises(ValueError, match=r"num_instances: \d+; accepted: .* at most 1048576"):
        jb.Tuner(num_instances=count, budget=10)
