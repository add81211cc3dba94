"""Which jobs are asked of whom."""

from jaxbandit.experiments.bench import cases

SIZE = (15, 2, 5)


def test_the_engine_follows_the_learner():
    assert cases.job(SIZE, "jaxbandit", "ucbvi", 16, 100)["engine"] == "episodes"
    assert cases.job(SIZE, "jaxbandit", "expref", 16, 100)["engine"] == "blocks"
    assert (
        cases.job(SIZE, "jaxbandit", "expref", 16, 100, engine="episodes")["engine"] == "episodes"
    )
    assert "engine" not in cases.job(SIZE, "numba", "ucbvi", 16, 100)


def test_peers_that_are_not_installed_are_not_asked(monkeypatch):
    monkeypatch.setattr(cases.importlib.util, "find_spec", lambda name: None)
    assert cases.peers_of("ucbvi") == ["numba", "numpy"]
    monkeypatch.setattr(cases.importlib.util, "find_spec", lambda name: object())
    assert cases.peers_of("ucbvi") == ["numba", "numpy", "rlberry"]
    assert cases.peers_of("expref") == ["numba", "numpy"]
