"""Parameter specs: what they call good passes, what they call odd is refused by name."""

import pytest

from jaxbandit import specs

EVERY = [
    specs.Real(), specs.Real(low=0), specs.Real(0, 1, above=True, below=True), specs.Probability(),
    specs.Whole(), specs.Whole(0, 3), specs.Choice("a", "b", 3), specs.Flag, specs.Values("K", 0, 1),
    specs.Values("H A"), specs.Optional(specs.Whole(1)),
]  # fmt: skip


@pytest.mark.parametrize("spec", EVERY, ids=str)
def test_good_values_pass_and_odd_ones_are_refused_by_name(spec):
    assert spec.good()
    for value in spec.good():
        spec.check("x", value)
    for value in spec.odd():
        with pytest.raises(ValueError, match=r"^x: ") as caught:
            spec.check("x", value)
        assert spec.accepted in str(caught.value)


def test_takes_checks_by_position_and_by_name_but_no_default():
    @specs.takes(a=specs.Whole(1), b=specs.Real(low=0))
    def make(a, b=None):
        return a, b

    assert make(2.0) == (2, None)
    assert make(a=1, b=0) == (1, 0.0)
    with pytest.raises(ValueError, match="b: -1; accepted: a finite number >= 0"):
        make(1, -1)
    with pytest.raises(TypeError, match="missing"):
        make()


def test_what_a_parameter_cannot_hold_is_refused_by_name():
    from jaxbandit.specs import Real, as_params

    with pytest.raises(
        ValueError, match=r"scale: 1e\+39; accepted: numbers that float32 holds, at most 3.403e\+38"
    ):
        as_params({"scale": Real(low=0)}, scale=1e39)
