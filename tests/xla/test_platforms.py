"""The choices for a kind of device: its own, or those that are forced."""

import jax
import pytest

from jaxbandit.xla.platforms import CPU, GPU, VARIABLE, active, platform_of, tracing_for, use


def test_an_argument_wins_over_the_environment_and_that_over_use(monkeypatch):
    device = jax.devices("cpu")[0]
    assert platform_of(device) is CPU
    with use("gpu"):
        assert platform_of(device) is GPU
        monkeypatch.setenv(VARIABLE, "cpu")
        assert platform_of(device) is CPU
        assert platform_of(device, "gpu") is GPU
    monkeypatch.delenv(VARIABLE)
    assert platform_of(device) is CPU


def test_an_unknown_kind_is_refused(monkeypatch):
    device = jax.devices("cpu")[0]
    for name in ("tpu", "abacus"):
        monkeypatch.setenv(VARIABLE, name)
        with pytest.raises(ValueError, match=r"platform: '.*'; accepted: cpu, gpu"):
            platform_of(device)


def test_what_is_traced_for_ends_with_the_tracing():
    with tracing_for(GPU):
        assert active() is GPU
    assert active() is CPU
