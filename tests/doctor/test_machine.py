"""What the doctor says of versions, wheels, flags and devices."""

import jax

from jaxbandit.doctor import machine

WHEELS = {"jax": "0.10.2", "jaxlib": "0.10.2"}
CUDA = {"jax-cuda12-plugin": "0.10.2", "jax-cuda12-pjrt": "0.10.2"}


def test_versions_of_what_takes_part():
    found = machine.versions()
    assert found["jax"] == jax.__version__
    assert {"python", "system", "jaxbandit", "jaxlib", "numpy"} <= set(found)


def test_wheels_that_match():
    assert machine.wheel_problems(WHEELS) == []
    assert machine.wheel_problems(WHEELS | CUDA) == []
    # A patch release of jax alone is what jax itself accepts.
    assert machine.wheel_problems({"jax": "0.10.3", "jaxlib": "0.10.2"}) == []


def test_wheels_that_do_not():
    assert "accepted: both installed" in machine.wheel_problems({"jax": "0.10.2"})[0]
    assert "jaxlib is 0.9.1" in machine.wheel_problems({"jax": "0.10.2", "jaxlib": "0.9.1"})[0]
    (older,) = machine.wheel_problems(WHEELS | CUDA | {"jax-cuda12-plugin": "0.7.2"})
    assert "jax-cuda12-plugin is 0.7.2; accepted: 0.10.2" in older
    (alone,) = machine.wheel_problems(WHEELS | {"jax-cuda13-pjrt": "0.10.2"})
    assert "without jax-cuda13-plugin" in alone


def test_flags_name_no_folder_and_no_host():
    given = {
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "JAX_COMPILATION_CACHE_DIR": "/home/someone",
        "JAX_COORDINATOR_ADDRESS": "10.0.0.1:1",
        "PATH": "/bin",
        "CUDA_VISIBLE_DEVICES": "0",
    }
    assert machine.flags(given) == {
        "CUDA_VISIBLE_DEVICES": "0",
        "JAX_COMPILATION_CACHE_DIR": "(set)",
        "JAX_COORDINATOR_ADDRESS": "(set)",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }


def test_devices_and_their_choices(monkeypatch):
    (first, *_) = machine.devices()
    assert (first["platform"], first["choices"], first["problem"]) == ("cpu", "cpu", None)
    monkeypatch.setenv("JAXBANDIT_PLATFORM", "tpu")
    (first, *_) = machine.devices()
    assert first["choices"] is None
    assert "The block engine needs float64" in first["problem"]


def test_notes(monkeypatch):
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    assert machine.notes(WHEELS, [{"platform": "cpu"}]) == []
    assert "sees no GPU" in machine.notes(CUDA, [{"platform": "cpu"}])[0]
    (memory,) = machine.notes(CUDA, [{"platform": "gpu"}])
    assert "XLA_PYTHON_CLIENT_PREALLOCATE=false" in memory
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    assert machine.notes(CUDA, [{"platform": "gpu"}]) == []
