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


def test_show_draws_the_episode(capfd, tmp_path):
    file = tmp_path / "episode.png"
    asked = ["show", "prophet-uniform", "horizon=3", "capacity=1", "--figure", str(file)]
    assert main(asked) == 0
    assert file.read_bytes().startswith(b"\x89PNG")
    assert str(file) in capfd.readouterr().out
    assert main(asked) != 0
    assert "exists; give another --figure, or --overwrite" in capfd.readouterr().err
    assert main([*asked[:-1], str(tmp_path / "episode.jpg")]) != 0
    assert "ends in '.jpg'; accepted" in capfd.readouterr().err
