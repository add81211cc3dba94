"""Options of panels: one list, whose defaults are those of the record that is drawn from."""

import inspect

import pytest
from synthetic_sweep import synthetic_sweep

import jaxbandit as jb
from jaxbandit.plotting.look import USUAL, LookOptions, PanelLook


def test_options_and_record_have_the_same_fields_and_types():
    hints = {name: hint.__forward_arg__ for name, hint in LookOptions.__annotations__.items()}
    record = {name: hint.__forward_arg__ for name, hint in PanelLook.__annotations__.items()}
    assert {"learners": record["learners"], **hints} == record
    assert PanelLook()._asdict() == {"learners": None, **USUAL}


def test_both_functions_show_them():
    for function in (jb.plot_regret, jb.plot_panels):
        shown = inspect.signature(function).parameters
        assert {name: shown[name].default for name in USUAL} == USUAL
        with pytest.raises(TypeError, match="unexpected keyword argument 'colours'"):
            function(synthetic_sweep(), colours={})
