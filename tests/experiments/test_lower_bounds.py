"""Experiments about the theory: constants of the proofs, times of known curves, exploration against exact planning."""

import numpy as np
import pytest
import xarray
from jaxbandit.experiments import exploration, lower_bounds, noiseless, price_of_horizon, scaling
from made_up_results import make_up

import jaxbandit as jb
from jaxbandit import theory
from jaxbandit.experiment import Options


def test_proven_constants_are_those_of_the_proofs():
    for H in lower_bounds.HORIZONS:
        assert 0.05 <= lower_bounds.proven(False, H, 10**6) <= 0.25
    for H in lower_bounds.ORDERED_HORIZONS:
        assert 0.03 <= lower_bounds.proven(True, H, 10**6) <= 0.125


def test_ratios_and_shares_of_a_known_result():
    """Three of four instances never find the needle, one plays it from the start."""
    T, H = 10**4, lower_bounds.GAP_HORIZON
    gap = lower_bounds.proof_gap(False, H, T)
    lost = gap * np.array([1.0, 1.0, 1.0, 0.0])
    ds = xarray.Dataset(
        {
            "regret": (("learner", "instance", "seed", "episode"), (lost * T).reshape(1, 4, 1, 1)),
            "final_gap": (("learner", "instance", "seed"), lost.reshape(1, 4, 1)),
        },
        {
            "learner": ["uniform"],
            "instance": range(4),
            "episode": [T],
            "family": ("instance", [f"H={H}"] * 4),
        },
    )
    (found,) = lower_bounds.ratios(ds, ordered=False)["uniform"].values()
    assert found.value == pytest.approx(0.25 * 0.75)
    assert lower_bounds.found_shares(ds)["uniform"] == {1: 0.25}
    assert lower_bounds.relative_regrets(ds, ordered=False)["uniform"][1] == pytest.approx(0.75)
    assert lower_bounds.smallest_ratio({"general": ds})["general"][:2] == ("uniform", f"H={H}")


def test_worst_ratios_keep_their_bounds():
    for H, k, A in ((4, 1, 3), (6, 2, 3), (8, 3, 2)):
        for mdp in (
            scaling.exact("prophet-uniform", horizon=H, capacity=k, num_values=A),
            price_of_horizon.patient_prophet(H, k, A),
        ):
            found = exploration.explore(mdp)
            for kind in exploration.KINDS:
                assert found.worst_ratio(kind) <= found.ratio_bound(kind, A) * (1 + 1e-9)
    patient = exploration.explore(price_of_horizon.patient_prophet(6, 1, 3))
    assert patient.worst_ratio("uniform") == pytest.approx(3.0**5)
    assert patient.worst_ratio("ordered") < np.e


def test_ratios_of_both_families_are_drawn():
    plans = lower_bounds.sweeps(Options(seeds=2))
    levels = {name: 1.0 for plan in plans.values() for name in plan["learners"]}
    levels |= {name.split(",")[0].split(" (")[0]: 1.0 for name in levels}
    datasets = {label: make_up(plan, levels) for label, plan in plans.items()}
    for label, ds in datasets.items():
        datasets[label] = ds.assign(final_gap=ds["regret"].isel(episode=-1) * 0)
    drawn = lower_bounds.draw_ratios(datasets)
    drawn.figure.draw_without_rendering()
    for kind, ds in datasets.items():
        assert drawn.data[kind] == lower_bounds.ratios(ds, kind == "ordered")


def test_crossovers():
    assert price_of_horizon.crossover(1, 2, largest=5)[2:] == (3, 2, 2)
    assert price_of_horizon.crossover(2, 2, largest=7)[2:] == (5, 5, 5)


def test_time_of_a_bound():
    time = price_of_horizon.bound_time(lambda T: theory.upper_bound_general(2, 1, 2, T))
    assert theory.upper_bound_general(2, 1, 2, time) == pytest.approx(
        price_of_horizon.TARGET * time, rel=1e-6
    )


def test_every_panel_has_its_learners_and_times_rise_with_the_horizon():
    plans = price_of_horizon.sweeps(Options(seeds=2))
    drawn = price_of_horizon.draw_times({label: make_up(plan) for label, plan in plans.items()})
    drawn.figure.draw_without_rendering()
    assert len(drawn.data) == 6
    for title, lines in drawn.data.items():
        assert set(lines) == ({"ExpRef"} if "general" in title else {"ExpRef", "OrderedExpRef"})
        if "against H" in title:
            assert (np.diff([point.noiseless for point in lines["ExpRef"]]) > 0).all()


def test_exploration_agrees_with_planning():
    mdp = jb.make_instance("prophet-uniform", horizon=5, capacity=2, num_values=3)
    for ordered in (False, True):
        eta = noiseless.exploration_policy(mdp, ordered)
        kernel, _ = noiseless.tables_of(mdp)
        theirs = np.asarray(jb.visitation(mdp, eta.astype(np.float32)))
        np.testing.assert_allclose(noiseless.visits_of(kernel, eta, 2), theirs, atol=1e-6)
        mean, deviation = exploration.moments(mdp, eta)
        assert mean == pytest.approx(float(jb.evaluate(mdp, eta.astype(np.float32))), abs=1e-6)
        assert 0 < deviation <= 0.5


def test_maps_of_exact_planning():
    drawn = exploration.draw_maps()
    assert set(drawn.data) == {
        "optimal policy", "uniform exploration", "ordered exploration",
        "signal, uniform exploration", "signal, ordered exploration",
    }  # fmt: skip
    assert drawn.data["ordered exploration"][-1, 3] > 100 * drawn.data["uniform exploration"][-1, 3]
