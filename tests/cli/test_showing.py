"""``jaxbandit show``: an instance, its optimal policy and an episode."""

import pytest

from jaxbandit.cli import main

pytestmark = pytest.mark.usefixtures("started")


def test_show_prints_an_instance_and_an_episode(capfd):
    assert main(["show", "prophet-uniform", "horizon=3", "capacity=1", "--seed", "4"]) == 0
    out = capfd.readouterr().out
    assert "MDP(H=3, k=1, A=5, ordered)" in out
    assert "optimal policy: accept from ..." in out
    assert "total reward" in out
    assert main(["show", "hard-ordered", "--policy", "uniform"]) == 0
