"""Sums of regrets: those of a device are those of the host, bit for bit, however many episodes and rows."""

import jax
import numpy as np
import pytest

from jaxbandit.engines.episodes.sums import MARKS, device_sums, host_sums, padded, take_rows
from jaxbandit.xla.compat import x64


@pytest.mark.parametrize("count", [1, 31, 32, 33, 100, 128])
def test_the_device_adds_as_the_host_does(count):
    random = np.random.default_rng(count)
    # Magnitudes from 1e-12 to 1: any other order of adding has other bits.
    regrets = (10 ** random.uniform(-12, 0, (128, 50))).astype(np.float32)
    total = random.uniform(0, 1e5, 50)
    host = host_sums(total, regrets, count)
    with x64():
        found = np.asarray(jax.jit(device_sums)(total, regrets, np.int32(count)))
    assert host.tobytes() == found[:count].tobytes()
    other = total + regrets[:count].astype(np.float64).sum(axis=0)
    assert count < 32 or not np.array_equal(other, host[-1])


def test_what_is_no_number_stays_one_and_what_is_not_counted_does_not():
    regrets = np.ones((32, 2), np.float32)
    regrets[5, 0], regrets[20, 1] = np.nan, np.nan
    with x64():
        found = np.asarray(jax.jit(device_sums)(np.zeros(2), regrets, np.int32(10)))
    np.testing.assert_array_equal(np.isnan(found[-1]), [True, False])


@pytest.mark.parametrize("count", [1, MARKS, MARKS + 1, 3 * MARKS])
def test_rows_come_in_pieces_of_one_shape(count):
    rows = np.sort(np.random.default_rng(0).choice(64, count, replace=False))
    sums = np.arange(64.0)[:, None]
    with x64():
        found = np.concatenate(
            [np.asarray(take_rows(jax.numpy.asarray(sums), p)) for p in padded(rows)]
        )
    np.testing.assert_array_equal(found[:count, 0], rows)
