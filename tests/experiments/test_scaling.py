"""Long runs are exact, and the worst case over gaps has the slope that it was given."""

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray
from jaxbandit.experiments import noiseless, scaling

import jaxbandit as jb
from jaxbandit import theory
from jaxbandit.engines import make_runner

SHAPE = scaling.Shape(False, 2, 2, 2)
LONG = 10**12


def stacked(mdp):
    return jax.tree.map(lambda x: np.asarray(x)[None], mdp)


@pytest.fixture(scope="module")
def long_run():
    """A run of 10^12 episodes on M^theta with a gap that is not near any threshold C 2^-r, and its
    runner."""
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
            # Entries are rounded to float32, so a value of H stages is right to 2 H 2^-24.
            error = 2 * shape.horizon * 2.0**-24
            np.testing.assert_allclose(start.max() - smaller.max(), gap, rtol=1e-6, atol=error)


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


T = np.array([1e6, 1e9])


def test_lower_bounds_are_those_of_general_instances_of_width_two():
    general, ordered = scaling.Shape(False, 3, 2, 2), scaling.Shape(True, 3, 2, 2)
    found = scaling.bounds_of(general, "ExpRef", T)
    np.testing.assert_array_equal(found["upper"], theory.upper_bound_general(3, 2, 2, T))
    np.testing.assert_array_equal(found["lower"], theory.lower_bound_general(3, 2, T))
    found = scaling.bounds_of(ordered, "OrderedExpRef", T)
    np.testing.assert_array_equal(found["upper"], theory.upper_bound_ordered(3, 2, 2, T))
    assert "lower" not in found


def test_axes_in_powers_of_ten():
    assert scaling.decades(np.array([3.0, 4e5])) == (1.0, 1e6)
    figure, ax = plt.subplots()
    scaling.power_axis(ax, "x", 1.0, 1e12, most=4)
    ticks = ax.xaxis.get_majorticklocs()
    plt.close(figure)
    assert 2 <= len(ticks) <= 5
    np.testing.assert_allclose(np.log10(ticks) % 1, 0, atol=1e-9)


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


def fake_sweep(exponent, seeds=8):
    """A worst case of known slope: regret T^exponent at the gap 1/2^j that belongs to T, less
    elsewhere."""
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


def test_recorded_horizons():
    assert scaling.horizons_of(10**13)[[0, -1]].tolist() == [10**4, 10**13]
