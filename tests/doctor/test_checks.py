"""The self-test passes here, and notices what it is there to notice."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.doctor import checks


@pytest.mark.parametrize("name", checks.CHECKS)
def test_every_check_passes_on_a_machine_that_is_right(name):
    found = checks.run_check(name, checks.CHECKS[name], jax.devices()[0])
    assert found["passed"], found["seen"]
    assert found["name"] == name


def test_an_error_is_a_failure_with_its_text():
    def breaks(device):
        raise RuntimeError("no memory left")

    found = checks.run_check("memory", breaks, None)
    assert (found["passed"], found["seen"]) == (False, "RuntimeError: no memory left")


def test_another_last_bit_in_company_is_noticed(monkeypatch):
    sweep = jb.sweep

    def wrong(*args, num_seeds, **more):
        ds = sweep(*args, num_seeds=num_seeds, **more)
        if num_seeds > 1:
            ds["regret"].values[:] = np.nextafter(ds["regret"].values, np.inf)
        return ds

    monkeypatch.setattr(jb, "sweep", wrong)
    assert not checks.bits("ucbvi", "episodes", 200)(jax.devices()[0])[0]


def test_a_regret_that_is_off_is_noticed(monkeypatch):
    sweep = jb.sweep

    def wrong(*args, **more):
        ds = sweep(*args, **more)
        ds["regret"].values[:] *= 1.001
        return ds

    monkeypatch.setattr(jb, "sweep", wrong)
    assert not checks.exact_regret(jax.devices()[0])[0]


def test_engines_that_differ_are_noticed(monkeypatch):
    sweep = jb.sweep

    def wrong(*args, engine, **more):
        ds = sweep(*args, engine=engine, **more)
        ds["regret"].values[:] *= 1.5 if engine == "blocks" else 1
        return ds

    monkeypatch.setattr(jb, "sweep", wrong)
    passed, seen = checks.engines(jax.devices()[0])
    assert not passed
    assert "standard errors apart" in seen
