"""``jaxbandit list``: everything by name, and one name explained."""

import pytest

from jaxbandit.cli import main

pytestmark = pytest.mark.usefixtures("started")


def test_list_explains_a_name(capfd):
    assert main(["list", "ordered-expref"]) == 0
    out = capfd.readouterr().out
    assert "n = ceil(12 s ln T / eps^2)" in out  # said of expref, and meant here
    assert 'preset "practical"' in out


def test_list_names_everything_with_parameters(capfd):
    assert main(["list"]) == 0
    out = capfd.readouterr().out
    for wanted in (
        "prophet ",
        "tuning",
        "ordered-expref",
        "bonus_scale=None",
        "(horizon, capacity",
    ):
        assert wanted in out
