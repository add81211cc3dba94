"""Checks of arguments: what is accepted comes back as a plain value, all else is named."""

import decimal
import fractions

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandit import checks

ODD = [None, "1", b"1", True, np.True_, 1j, [1], {}, object(), np.nan, np.inf, jnp.ones(1)]


@pytest.mark.parametrize("value", [3, 3.0, np.int8(3), np.float32(3), jnp.int32(3), np.array(3)])
def test_whole_numbers_of_any_type(value):
    seen = checks.whole("count", value)
    assert seen == 3
    assert type(seen) is int


def test_fractions_and_decimals_that_are_whole():
    assert checks.whole("count", fractions.Fraction(6, 2)) == 3
    with pytest.raises(ValueError, match="count: Decimal"):
        checks.whole("count", decimal.Decimal(3))


@pytest.mark.parametrize("value", [*ODD, 2.5, 0, -1, "x"])
def test_what_is_not_whole_is_named(value):
    with pytest.raises(ValueError, match=r"^count: .*; accepted: a whole number, at least 1$"):
        checks.whole("count", value)


@pytest.mark.parametrize("value", [*ODD, 10**400])
def test_what_is_not_a_number_is_named(value):
    with pytest.raises(ValueError, match=r"^x: .*; accepted: a finite number$"):
        checks.number("x", value)
    with pytest.raises(ValueError, match=r"^x: .*; accepted: a number strictly between 0 and 1$"):
        checks.share("x", value)


def test_a_traced_value_is_no_number():
    with pytest.raises(ValueError, match="accepted: a whole number"):
        jax.jit(lambda x: checks.whole("x", x))(3)


def test_seeds_are_those_that_jax_tells_apart():
    assert checks.seed("seed", 2**32 - 1) == 2**32 - 1
    for value in (-1, 2**32, 0.5, "0"):
        with pytest.raises(
            ValueError,
            match=r"^seed: .*; accepted: a whole number, at least 0 and at most 4294967295",
        ):
            checks.seed("seed", value)


@pytest.mark.parametrize("name", ["UCB-VI", "α̂ · 1/4", "<b>", "$x$", "a/b", "日本", "👩‍🔬"])
def test_names_that_can_be_shown(name):
    assert checks.printable("learners", name) == name


@pytest.mark.parametrize(
    "name", ["a\0b", "a\nb", "\x1b[31mred", "\ud800", "a\u2028b", "a\u202eb", "\x7f", "\x9b1m"]
)
def test_names_that_nobody_can_mean(name):
    with pytest.raises(
        ValueError, match=r"learners: name .*accepted: text without control"
    ) as error:
        checks.printable("learners", name)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("name", ["", " ", None, 3, b"a", "x" * 201])
def test_names_that_are_none(name):
    with pytest.raises(ValueError, match=r"learners: name .*; accepted: "):
        checks.printable("learners", name)


def test_arrays_of_numbers():
    for value in ([1, 2], np.float16([0.5]), jnp.ones(2), jnp.ones(2, jnp.bfloat16), 3):
        assert checks.real_array("x", value) is not None
    for value in ([True], [1j], ["a"], [None], [2**70], np.array([object()]), jax.random.key(0)):
        with pytest.raises(ValueError, match=r"^x: dtype .*; accepted: real numbers$"):
            checks.real_array("x", value)
    with pytest.raises(ValueError, match="x: cannot be made an array"):
        checks.real_array("x", [[1], [1, 2]])


def test_names_are_accepted_whatever_kind_of_text_they_are():
    checks.accept("learner", np.str_("a"), ["a", "b"])
    checks.accept("phase", np.int64(2), [1, 2])
    for value in (True, 1.0, None, ["a"], np.arange(2)):
        with pytest.raises(ValueError, match=r"learner: .*; accepted: 1, 2"):
            checks.accept("learner", value, [1, 2])
