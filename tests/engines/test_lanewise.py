"""First states, reports and metrics of a tile whose lanes have several sizes are those of each size alone."""

import numpy as np
from padded_lanes import LEARNERS, run, small_gpu

import jaxbandit as jb


def test_first_states_are_those_of_the_own_sizes_and_zeros(monkeypatch):
    small_gpu(monkeypatch)
    learner = jb.make_learner("ucbvi")
    padded, _ = run(learner, ((3, 2), (2, 1)), True, num_episodes=100)
    constants, state = padded.beginnings(padded.tiles[0], padded.rules)
    for lane, own in ((0, (3, 2)), (3, (2, 1))):
        alone, _ = run(learner, (own,), False, num_episodes=100)
        numbers, first = alone.beginnings(alone.tiles[0], alone.rules)
        for small, large in ((numbers.log_term, constants.log_term), (first.model, state.model)):
            corner = tuple(slice(size) for size in small.shape[1:])
            np.testing.assert_array_equal(large[lane][corner], small[0])
            assert np.count_nonzero(large[lane]) == np.count_nonzero(small[0])
    assert padded.learner_bytes(padded.rules) > alone.learner_bytes(alone.rules)


def test_a_first_block_is_made_anew_in_the_larger_sizes(monkeypatch):
    """Its arms of levels that were added have no episodes; the others are those of the own sizes, in order."""
    small_gpu(monkeypatch)
    learner = jb.make_learner("expref", **LEARNERS["expref"])
    runners = [run(learner, ((3, 2),), padded)[0] for padded in (True, False)]
    large, small = (r.beginnings(r.tiles[0], r.rules)[1].blocks.episodes[0] for r in runners)
    assert large.size > small.size
    np.testing.assert_array_equal(large[large > 0], small)
