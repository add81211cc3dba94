"""Strict numerics for every test: no silent dtype or rank promotion; compilations are cached
between runs."""

import os
import pathlib

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest

CACHE = pathlib.Path(__file__).parent.parent / ".jax_cache"

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@pytest.fixture(scope="session")
def started():
    """Devices are made before the first command in this process, which then leaves them as they are for other tests."""
    jax.devices()


@pytest.fixture
def promotion_as_users_have_it():
    """Strict promotion is for the tests of this package's own code."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
