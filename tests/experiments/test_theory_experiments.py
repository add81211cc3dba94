"""The experiments about the theorems: exactness at T = 10^12, slopes, bounds, crossovers."""

import numpy as np
import pytest
from jaxbandit.experiments import exploration, lower_bounds, noiseless, price_of_horizon, scaling

import jaxbandit as jb
from jaxbandit import theory
from jaxbandit.engines import make_runner
from jaxbandit.experiment.contract import Options

SHAPE = scaling.Shape(False, 2, 2, 2)
LONG = 10**12


def stacked(mdp):
    import jax

    return jax.tree.map(lambda x: np.asarray(x)[None], mdp)


@pytest.fixture(scope="module")
def long_run():
    """A run of 10^12 episodes on M^theta with a gap that is not near any threshold C 2^-r, and its
    runner."""
    import jax

    mdp = scaling.exact("hard-general", theta=[1, 1], num_actions=2, gap=0.3)
    learner = jb.make_learner("expref")
    learner = learner._replace(
        params={name: np.asarray(value)[None] for name, value in learner.params.items()}
    )
    points = np.unique(np.rint(np.geomspace(100, LONG, 60)).astype(np.int64))
    keys = jax.random.split(jax.random.key(0), 4).reshape(1, 4)
    runner = make_runner("blocks", learner, stacked(mdp), keys, LONG, points)
    carry = runner.start()
    carries = [carry]
    while runner.episodes_done(carry) < LONG:
        carry = runner.step(carry)
        carries.append(carry)
    return mdp, points, carries, runner.result(carry)


def test_no_float32_in_a_run_of_ten_to_the_twelve(long_run):
    import jax

    _, _, carries, result = long_run
    for carry in carries:
        kinds = {np.asarray(leaf).dtype for leaf in jax.tree.leaves(carry)}
        assert np.dtype(np.float32) not in kinds
        assert np.dtype(np.float64) in kinds
    assert result["regret"].dtype == np.float64


def test_episodes_are_counted_exactly_to_ten_to_the_twelve(long_run):
    _, _, carries, result = long_run
    assert np.all(np.asarray(carries[-1]["tiles"][0]["played"]) == LONG)
    # Phase ends against whole-number arithmetic: |active| arms of n episodes each, in Python
    # integers.
    schedule = theory.schedule(2, 2, 2, LONG)
    for end, active in zip(result["phase_end"][0], result["active_actions"][0], strict=True):
        sizes = np.concatenate([[8], np.nansum(active[:, :, 1:], axis=(1, 2))])
        total = 0
        for r, n in enumerate(schedule.episodes_per_arm):
            total += int(n) * int(sizes[r])
            if total > LONG:
                assert np.isnan(end[r])
                break
            assert int(end[r]) == total


def test_regret_of_a_long_run_is_that_of_the_noiseless_computation(long_run):
    """Two independent computations, the same sums: noise cannot change a decision here.

    The gap is 0.3; what falls does so with 20 % of C eps to spare: 5 standard errors of a
    difference of Phi-hat at stage 2 and 40 at stage 1 (false alarms: one in 10^5, and the key is
    fixed). Levels that tie (Q = 0, level 2) keep both actions in either computation.
    """
    mdp, points, _, result = long_run
    episodes, regret = noiseless.noiseless_run(mdp, ordered=False, num_episodes=float(LONG))
    expected = np.interp(points, episodes, regret)
    late = points > 10**7  # early on alpha-hat may differ from alpha
    assert np.abs(result["regret"][0][:, late] / expected[late] - 1).max() < 0.02
    tail = points > episodes[np.flatnonzero(np.diff(regret) > 0)[-1] + 1]
    flat = result["regret"][0][:, tail]
    assert tail.any()
    assert (flat == flat[:, :1]).all()  # not a single episode of regret after the last elimination


def test_a_parameter_grid_of_horizons_is_a_set_of_runs():
    """The run for T read off a longer one is the run of T episodes."""
    learner, shape, longest = jb.make_learner("expref"), SHAPE, 10**7
    horizons = np.array([10**5, 10**6])
    mdp = scaling.exact("hard-general", theta=[1, 1], num_actions=2, gap=0.3)
    record = jb.record.explicit([int(T) for T in horizons])
    together = jb.sweep(
        {"ExpRef": scaling.with_horizons(learner, shape, horizons, longest)}, {"M": mdp}, longest, num_seeds=2,
        record=record, progress=False,
    )  # fmt: skip
    T = int(horizons[1])
    alone = jb.sweep(
        {"ExpRef": learner}, {"M": mdp}, T, num_seeds=2, record=jb.record.linear(1), progress=False
    )
    ours = together["regret"].isel(learner=0, instance=0, parameter=1).sel(episode=T).values
    np.testing.assert_allclose(
        ours, alone["regret"].isel(learner=0, instance=0, episode=0).values, rtol=1e-12
    )


def fake_sweep(exponent, seeds=8):
    """A worst case of known slope: regret T^exponent at the gap 1/2^j that belongs to T, less
    elsewhere."""
    import xarray

    horizons = scaling.horizons_of(10**9)
    gaps = 2.0 ** -np.arange(1, 8)
    rng = np.random.default_rng(0)
    size = (1, gaps.size, horizons.size, seeds, horizons.size)
    noise = 1 + 0.01 * rng.standard_normal(size)
    worst = np.clip(np.arange(horizons.size) - 2, 0, gaps.size - 1)
    shape = np.where(np.arange(gaps.size)[:, None] == worst[None, :], 1.0, 0.3)
    values = shape[None, :, :, None, None] * horizons.astype(float) ** exponent * noise
    names = [f"{gap:.9g}" for gap in gaps]
    dims = ("learner", "instance", "parameter", "seed", "episode")
    coords = {"learner": ["ExpRef"], "instance": [scaling.FIXED, *names], "episode": horizons}
    return xarray.Dataset(
        {"regret": (dims, np.concatenate([values[:, :1], values], axis=1))}, coords
    )


def test_worst_case_finds_slope_gap_and_interval():
    case = scaling.worst_case(fake_sweep(0.7), "ExpRef")
    assert abs(case.slope - 0.7) < 0.01
    assert case.seeds[0] < 0.7 < case.seeds[1]
    assert (
        case.fitted.sum() == case.horizons.size - 3
    )  # the first worst gaps are the largest of the family
    assert (np.diff(case.gap) <= 0).all()


@pytest.mark.parametrize("shape", scaling.SHAPES, ids=lambda shape: shape.label)
def test_families_have_the_gap_in_their_name(shape):
    for name in shape.learners:
        instances = scaling.instances_of(shape, name)
        family = {float(key): mdp for key, mdp in instances.items() if key != scaling.FIXED}
        assert max(family) <= scaling.LARGEST_GAP
        for gap, mdp in list(family.items())[::6]:
            jb.validate(mdp)
            assert mdp.prob.dtype == np.float64
            kernel, pay = noiseless.tables_of(mdp)
            values, tail = [], np.zeros(mdp.width + 1)
            for i in reversed(range(shape.horizon)):
                q = pay[i] + kernel[i] @ tail
                tail = q.max(-1)
                values.append(q)
            start = values[-1][int(mdp.start)]
            smaller = start[start < start.max() - 1e-12]
            np.testing.assert_allclose(start.max() - smaller.max(), gap, rtol=1e-6)


def test_noiseless_slope_of_the_worst_case_is_a_half():
    """The square root of the theorem from the noiseless computation, T = 10^7 .. 10^13, and the
    upper bound above it."""
    horizons = np.geomspace(1e7, 1e13, 25)
    gaps = scaling.gaps_of(SHAPE, "ExpRef")
    instances = [
        scaling.exact("hard-general", theta=[1, 1], num_actions=2, gap=float(gap)) for gap in gaps
    ]
    worst = np.array(
        [max(noiseless.noiseless_run(m, False, T)[1][-1] for m in instances) for T in horizons]
    )
    slope = np.polyfit(np.log(horizons), np.log(worst), 1)[0]
    assert 0.48 < slope < 0.56
    assert (worst < theory.upper_bound_general(2, 2, 2, horizons)).all()
    assert (worst > theory.lower_bound_general(2, 2, horizons)).all()


def test_crossovers():
    assert price_of_horizon.crossover(1, 2, largest=5)[2:] == (3, 2, 2)
    assert price_of_horizon.crossover(2, 2, largest=7)[2:] == (5, 5, 5)


def test_time_of_a_bound():
    time = price_of_horizon.bound_time(lambda T: theory.upper_bound_general(2, 1, 2, T))
    assert theory.upper_bound_general(2, 1, 2, time) == pytest.approx(
        price_of_horizon.TARGET * time, rel=1e-6
    )


def test_proven_constants_are_those_of_the_proofs():
    for H in lower_bounds.HORIZONS:
        assert 0.05 <= lower_bounds.proven(False, H, 10**6) <= 0.25
    for H in lower_bounds.ORDERED_HORIZONS:
        assert 0.03 <= lower_bounds.proven(True, H, 10**6) <= 0.125


def test_ratios_and_shares_of_a_known_result():
    """Three of four instances never find the needle, one plays it from the start."""
    import xarray

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


def test_plans_fit_the_contract():
    for module in (scaling, price_of_horizon, lower_bounds, exploration):
        experiment = module.EXPERIMENT
        assert experiment.summary
        plans = experiment.sweeps(Options(seeds=2))
        for arguments in plans.values():
            assert {"learners", "instances", "num_episodes", "num_seeds"} <= set(arguments)
    assert scaling.horizons_of(10**13)[[0, -1]].tolist() == [10**4, 10**13]


def test_maps_of_exact_planning():
    drawn = exploration.draw_maps()
    assert set(drawn.data) == {
        "optimal policy", "uniform exploration", "ordered exploration",
        "signal, uniform exploration", "signal, ordered exploration",
    }  # fmt: skip
    assert drawn.data["ordered exploration"][-1, 3] > 100 * drawn.data["uniform exploration"][-1, 3]
