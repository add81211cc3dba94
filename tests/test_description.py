"""Every name is explained, with all its parameters."""

import inspect

import pytest

import jaxbandit as jb
from jaxbandit import description
from jaxbandit.description import WIDTH, Description, Entry, Parameter, small_instance


@pytest.mark.parametrize("kind", description.KINDS)
def test_everything_is_described(kind):
    for name in description.names(kind):
        (entry,) = jb.describe(name, kind).entries
        assert entry.kind == kind
        assert entry.summary
        assert name in str(entry)
        assert f"<b>{name}</b>" in entry._repr_html_()
        assert "as there" not in str(entry)
        assert all(len(line) <= 110 for line in str(entry).splitlines() if ">>>" not in line)
        if kind in ("learner", "instance"):
            constructor = description._registry(kind).constructors[name]
            assert [p.name for p in entry.parameters] == [
                *inspect.signature(constructor).parameters
            ]
        if kind in ("learner", "instance", "feedback"):
            assert [p.name for p in entry.parameters if not p.meaning] == [], name


def test_names_are_in_the_docstring_of_make_learner():
    documented = jb.make_learner.__doc__
    assert [name for name in jb.LEARNERS.names() if f'"{name}"' not in documented] == []


def test_presets_are_what_the_constructor_makes_of_them():
    for name in ("expref", "ordered-expref", "ucbvi"):
        found = description.presets(name)
        assert {"theory", "practical"} <= set(found)
        for preset, values in found.items():
            params = jb.make_learner(name, preset=preset).params
            for key, value in values.items():
                assert float(params[key]) == value


def test_a_users_own_learner_is_described(monkeypatch):
    def mine(rate=0.5):
        """Learns nothing.

        Args:
            rate: how fast.
        """
        return jb.make_learner("uniform")

    monkeypatch.setitem(jb.LEARNERS.constructors, "mine", mine)
    assert "rate = 0.5  how fast." in repr(jb.describe("mine"))


def test_fields_of_an_mdp_are_documented_where_help_looks():
    assert all(f"{field}:" in jb.MDP.__doc__ for field in jb.MDP._fields)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(("exprf",), "did you mean 'expref'"), ((3,), "name: 3"), (("expref", "x"), "kind: 'x'")],
)
def test_mistakes(arguments, told):
    with pytest.raises(ValueError, match=told):
        jb.describe(*arguments)


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


def documented(first, second):
    """Adds
    two numbers.

    Or strings.

    Args:
        first: a number
        or a string.
        second: see there: it has
            a colon.

    Returns:
        The sum.

    Example:
        >>> 1 + 1
        2
    """


def bare(x):
    return x


def test_parts():
    assert description.paragraphs(documented) == ["Adds two numbers.", "Or strings."]
    assert description.entries(documented) == {
        "first": "a number or a string.",
        "second": "see there: it has a colon.",
    }
    assert description.example(documented) == ">>> 1 + 1\n2"
    assert description.paragraphs("Plain text.\n\nMore.") == ["Plain text.", "More."]
    nothing = description.paragraphs(bare), description.entries(bare), description.example(bare)
    assert nothing == ([""], {}, "")


@pytest.mark.parametrize("name", jb.INSTANCES.names())
def test_every_family_has_a_small_instance(name):
    mdp, parameters = small_instance(name)
    jb.validate(mdp)
    assert mdp.prob.size < 10_000
    assert parameters


def test_what_is_given_is_taken():
    mdp, parameters = small_instance("hard-general", {"theta": [0, 1, 2], "gap": 0.1})
    assert mdp.horizon == 3
    assert parameters["gap"] == "0.1"
    assert "key" not in parameters
    with pytest.raises(ValueError, match="did you mean 'knapsack'"):
        small_instance("knapsak")
