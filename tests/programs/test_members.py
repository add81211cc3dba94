"""What authors wrote in classes, apart from what Python and its libraries add."""

import collections
import dataclasses
import enum
import random
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np

from jaxbandit.programs import members


class Pair(NamedTuple):
    x: int
    y: int = 2

    def total(self):
        return self.x + self.y


@dataclasses.dataclass(frozen=True, slots=True)
class Data:
    x: int = 1
    __scale__ = 3


class Size(enum.Enum):
    SMALL = 1
    LARGE = 2

    @classmethod
    def _missing_(cls, value):
        return cls.SMALL


def written(thing):
    return {name for name, value in vars(thing).items() if members.says_something(name, value)}


def test_only_what_was_written_counts():
    assert written(Pair) == {"total", "_field_defaults"}
    assert written(Data) <= {"__scale__", "__getstate__", "__setstate__"}
    assert dict(members.enum_members(Size)).keys() == {"SMALL", "LARGE", "_missing_"}
    assert members.slots_of(Data) == ("x",)


def test_slots_have_the_names_that_attributes_have():
    class _Own:
        __slots__ = ("__c", "__d__", "e")

    assert members.slots_of(_Own) == ("_Own__c", "__d__", "e")


def test_what_may_be_put_into_a_library():
    may = [3, np.zeros(1), np.random.rand, random.randrange, test_only_what_was_written_counts]
    assert all(map(members.may_be_put, may))
    assert not any(map(members.may_be_put, [np.mean, dict.fromkeys, len, collections.OrderedDict]))


def test_methods_that_the_library_wrote():
    assert members.is_generated(Data.__init__)
    assert members.is_generated(Pair.__new__)
    assert not members.is_generated(Pair.total)
    typed: dict = {}
    exec("def f():\n    return 1", typed)
    exec("class T:\n    def __init__(self):\n        self.x = 1", typed)
    assert not members.is_generated(typed["f"])
    assert not members.is_generated(typed["T"].__init__)


def test_classes_that_say_they_are_a_librarys():
    made = type("OrderedDict", (), {"__module__": "collections"})
    assert not members.stands_in_its_module(made)
    assert members.stands_in_its_module(collections.OrderedDict)
    assert members.module_of(np.ndarray) == "numpy"


def test_objects_that_hold_more_than_attributes():
    assert members.has_more(random.Random)
    assert members.has_more(np.ma.MaskedArray)
    assert not members.has_more(type("Plain", (), {}))


def test_cells_and_context_variables():
    def outer(filled):
        def inner():
            return value, filled

        if filled:
            value = 3
        return inner.__closure__

    assert [members.content(cell) for cell in outer(True)] == [True, 3]
    assert [members.content(cell) for cell in outer(False)] == [False, None]
    assert members.held(ContextVar("unset")) is None
    assert members.held(ContextVar("set", default=2)) == 2
