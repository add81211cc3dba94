"""Words of the count machine: what is written is read, fields do not overlap, sets are sets."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandit.engines.blocks import codec
from jaxbandit.engines.blocks.outcomes import MAX_OUTCOMES, MAX_STATES
from jaxbandit.xla.compat import x64

FIELDS = {
    name: field for name, field in vars(codec).items() if isinstance(field, codec.Field) and name != "REST"
}  # fmt: skip


def test_fields_do_not_overlap_and_hold_what_they_must():
    places = [set(range(field.shift, field.shift + field.width)) for field in FIELDS.values()]
    assert all(not one & two for one, two in itertools.combinations(places, 2))
    assert max(max(place) for place in places) < 63  # the sign is not used
    assert codec.FOLLOWING.width >= (MAX_OUTCOMES - 1).bit_length()
    for name in ("TARGET", "POOL", "REST_TARGET", "REST_POOL"):
        assert FIELDS[name].width >= MAX_STATES.bit_length()
        assert FIELDS[name].shift + FIELDS[name].width < 32  # read from the low half
    assert (codec.REST.shift, codec.REST.width) == (codec.REST_TARGET.shift, 12)


def test_what_is_written_is_read():
    random = np.random.default_rng(0)
    with x64():
        values = {
            name: jnp.asarray(random.integers(0, 2**field.width, 100), jnp.int32)
            for name, field in FIELDS.items()
        }
        word = jnp.zeros(100, jnp.int64)
        for name, field in FIELDS.items():
            word = word | field.write(values[name]).astype(jnp.int64)
        for name, field in FIELDS.items():
            np.testing.assert_array_equal(field.read(word), values[name])
            if field.shift + field.width < 32:
                np.testing.assert_array_equal(field.read(codec.low_half(word)), values[name])


@pytest.mark.parametrize("num_states", [5, 31, 32, 63])
def test_sets(num_states):
    with x64():
        kind = codec.set_type(num_states)
        state = jnp.arange(1, num_states, dtype=jnp.int32)
        np.testing.assert_array_equal(codec.largest(codec.singleton(state, kind)), state)
        whole = jnp.bitwise_or.reduce(codec.singleton(state, kind))
        assert int(codec.largest(whole)) == num_states - 1
        assert int(codec.largest(jnp.zeros((), kind))) == 0


def test_flags_are_packed_from_the_first_on():
    with x64():
        flags = jnp.asarray([[True, False, True] + [False] * 20])
        assert codec.STANDING.read(codec.pack(flags)).tolist() == [5]
