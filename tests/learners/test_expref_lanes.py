"""The counters of ExpRef's lanes are packed to themselves."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.learners.expref_lanes import Lane, at, bit, bits, first, pack, unpack


def test_bits_of_arms_and_the_first_of_them():
    arms = np.random.default_rng(2).random((70, 5)) < 0.05
    arms[:, 0] = False
    words = bits(list(jnp.asarray(arms)))
    assert len(words) == 3
    np.testing.assert_array_equal([bit(words, b) for b in range(70)], arms)
    wanted = np.where(arms.any(0), arms.argmax(0), 0)
    np.testing.assert_array_equal(first(list(jnp.asarray(arms))), wanted)


def test_packed_counters_are_unpacked_to_themselves():
    random = np.random.default_rng(3)

    def whole():
        return jnp.asarray(random.integers(0, 2**31 - 1, 4), jnp.int32)

    def real():
        return jnp.asarray(random.normal(size=4), jnp.float32)

    lane = Lane(
        phase=whole(),
        stage=whole(),
        played=whole(),
        finished=jnp.asarray([True, False, True, False]),
        wanted=[whole(), whole()],
        length=whole(),
        arm=whole(),
        left=whole(),
        total=real(),
        lost=real(),
        totals=[real() for _ in range(33)],
        renewed=jnp.asarray([False, False, True, True]),
    )
    jax.tree.map(np.testing.assert_array_equal, unpack(pack(lane), 33), lane)


def test_each_lane_looks_up_its_own_row():
    table = np.random.default_rng(4).random((5, 2, 3)).astype(np.float32)
    index = np.asarray([4, 0, 2])
    wanted = np.stack([table[n, :, lane] for lane, n in enumerate(index)], axis=-1)
    np.testing.assert_array_equal(at(jnp.asarray(table), jnp.asarray(index)), wanted)
