"""Every name is explained, with all its parameters."""

import inspect

import pytest

import jaxbandit as jb
from jaxbandit.explaining import describing


@pytest.mark.parametrize("kind", describing.KINDS)
def test_everything_is_described(kind):
    for name in describing.names(kind):
        (entry,) = jb.describe(name, kind).entries
        assert entry.kind == kind
        assert entry.summary
        assert name in str(entry)
        assert f"<b>{name}</b>" in entry._repr_html_()
        assert "as there" not in str(entry)
        assert all(len(line) <= 110 for line in str(entry).splitlines() if ">>>" not in line)


@pytest.mark.parametrize("kind", ["learner", "instance"])
def test_no_parameter_is_missing(kind):
    registry = jb.LEARNERS if kind == "learner" else jb.INSTANCES
    for name in registry.names():
        (entry,) = jb.describe(name, kind).entries
        wanted = list(inspect.signature(registry.constructors[name]).parameters)
        assert [p.name for p in entry.parameters] == wanted


def test_names_are_in_the_docstrings_of_the_makers():
    for make, registry in ((jb.make_learner, jb.LEARNERS), (jb.make_instance, jb.INSTANCES)):
        for name in registry.names():
            assert f'"{name}"' in make.__doc__, name


def test_presets_are_what_the_constructor_makes_of_them():
    for name in ("expref", "ordered-expref", "ucbvi"):
        found = describing.presets(name)
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


def test_fields_are_documented_where_help_looks():
    for kind in ("BanditFeedback", "TrajectoryFeedback", "SemiBanditFeedback"):
        shown = getattr(jb.feedback, kind)
        assert all(f"{field}:" in shown.__doc__ for field in shown._fields)
    assert all(f"{field}:" in jb.MDP.__doc__ for field in jb.MDP._fields)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(("exprf",), "did you mean 'expref'"), ((3,), "name: 3"), (("expref", "x"), "kind: 'x'")],
)
def test_mistakes(arguments, told):
    with pytest.raises(ValueError, match=told):
        jb.describe(*arguments)


@pytest.mark.parametrize("kind", ["learner", "instance", "feedback"])
def test_every_parameter_says_what_it_means(kind):
    for name in describing.names(kind):
        for entry in jb.describe(name, kind).entries:
            assert [p.name for p in entry.parameters if not p.meaning] == [], name
