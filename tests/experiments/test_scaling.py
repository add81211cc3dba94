"""Long runs are exact, and the worst case over gaps has the slope that it was given."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from jaxbandit.experiments import noiseless, scaling

import jaxbandit as jb
from jaxbandit import theory
from jaxbandit.engines import make_runner

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
