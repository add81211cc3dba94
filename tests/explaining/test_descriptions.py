"""Descriptions print within the width, and as escaped tables in notebooks."""

from jaxbandit.explaining.descriptions import WIDTH, Description, Entry, Parameter

ENTRY = Entry(
    name="mine",
    kind="learner",
    summary="word " * 60,
    call="make('mine')",
    parameters=(Parameter("scale", "1.0", "meaning " * 40), Parameter("a < b", "", "no default")),
    example=">>> 1 < 2",
)


def test_text_has_all_parts_within_the_width():
    text = repr(Description((ENTRY, ENTRY)))
    assert text.count("mine  (learner)") == 2
    assert "scale = 1.0" in text
    assert ">>> 1 < 2" in text
    assert max(map(len, text.splitlines())) <= WIDTH


def test_html_is_escaped():
    page = Description((ENTRY,))._repr_html_()
    assert "a &lt; b" in page
    assert "1 &lt; 2" in page
    assert "<code>a < b" not in page
