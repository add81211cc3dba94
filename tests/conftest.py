"""Strict numerics for every test: no silent dtype or rank promotion. Compilations are cached between runs, and tests of
logic compile with fewer optimisations, which takes half as long."""

import os
import pathlib

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest

TESTS = pathlib.Path(__file__).parent
CACHE = TESTS.parent / ".jax_cache"
QUICK_TO_COMPILE = (
    "cli", "experiments/test_", "inspect", "instances", "learner/", "mdp", "plotting", "results", "stats", "studies", "test_",
    "learners/test_aggregate", "learners/test_bandits", "learners/test_expref", "learners/test_model", "learners/test_one_bit",
    "learners/test_orthogonal", "learners/test_p", "learners/test_q", "learners/test_s", "learners/test_t", "learners/test_ucb",
    "sweeps/test_dataset", "sweeps/test_fa", "sweeps/test_forecast", "sweeps/test_groups", "sweeps/test_identity", "sweeps/test_memory",
    "sweeps/test_progress", "sweeps/test_reached", "sweeps/test_shards", "sweeps/test_sweeping", "sweeps/test_wrong_learners",
)  # fmt: skip
"""Where no test compares bits that an optimisation could change: what two programs give for one lane. All others compile
as users do."""

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _is_quick(item):
    return str(item.path.relative_to(TESTS)).startswith(QUICK_TO_COMPILE)


def pytest_collection_modifyitems(items):
    """Those that compile as users do come first, so that a process changes once."""
    items.sort(key=_is_quick)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Programs of the other way of compiling are forgotten; processes that a test starts compile as it does."""
    quick = _is_quick(item)
    if jax.config.read("jax_disable_most_optimizations") != quick:
        from jaxbandit.xla.programs import PROGRAMS

        jax.config.update("jax_disable_most_optimizations", quick)
        os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = str(int(quick))
        PROGRAMS.compiled.clear()
        jax.clear_caches()


@pytest.fixture(scope="session")
def started():
    """Devices are made before the first command in this process, which then leaves them as they are for other tests."""
    jax.devices()


@pytest.fixture
def promotion_as_users_have_it():
    """Strict promotion is for the tests of this package's own code."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield
