"""What UCB-VI keeps of an episode: entries are read and written in place, sums of rewards never lose a bit."""

import jax.numpy as jnp
import numpy as np

from jaxbandit.feedback import SemiBanditFeedback
from jaxbandit.learners.ucbvi_counts import FRACTION_BITS, counted, paid, read, visited, write


def test_visited_entries_count_actions_and_levels_from_one():
    whole = jnp.int32
    feedback = SemiBanditFeedback(
        levels=jnp.asarray([2, 1, 0], whole),
        actions=jnp.asarray([1, 0, 1], whole),
        rewards=jnp.asarray([0.5, 1.0, 0.0], jnp.float32),
        next_levels=jnp.asarray([1, 0, 0], whole),
    )
    entry, target, reward = visited(feedback, jnp.int32(2))
    assert entry.tolist() == [3, 0, -1]
    assert target.tolist() == [0, -1, -1]
    assert reward.tolist() == [2 ** (FRACTION_BITS - 1), 2**FRACTION_BITS, 0]


def test_only_the_visited_entries_are_read_and_written():
    table = jnp.arange(2 * 3 * 2 * 4, dtype=jnp.int32).reshape(2, 3, 2, 4)
    entry = jnp.asarray([0, 5, -1, 2], jnp.int32)
    fields = read(table, entry)
    flat = np.asarray(table).reshape(2, 6, 4)
    expected = np.where(entry >= 0, flat[:, np.maximum(entry, 0), np.arange(4)], 0)
    np.testing.assert_array_equal(fields, expected)
    changed = np.asarray(write(table, entry, fields + 100)) - np.asarray(table)
    assert sorted(np.unique(changed)) == [0, 100]
    assert (changed == 100).sum() == 6


def test_moves_and_rewards_add_up_beyond_float32():
    counts = jnp.zeros((3, 2), jnp.int32)
    counts = counted(counts, jnp.asarray([1, -1], jnp.int32))
    np.testing.assert_array_equal(counts, [[1, 1], [0, 0], [1, 0]])
    almost = 2**FRACTION_BITS - 1
    rewards = jnp.asarray([[2**25], [almost]], jnp.int32)
    np.testing.assert_array_equal(paid(rewards, jnp.asarray([1], jnp.int32)), [[2**25 + 1], [0]])
