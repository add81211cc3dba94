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
AS_USERS = ("engines/blocks/test_bits", "engines/blocks/test_runner", "engines/episodes/test_gpu",
            "engines/episodes/test_loop", "engines/episodes/test_many", "engines/episodes/test_runner",
            "engines/episodes/test_walking", "engines/test_runner", "experiments/bench", "kernels",
            "learners/test_from_blocks", "learners/test_renumbering", "results/test_references", "sweeps",
            "test_distributed", "test_testing", "xla")  # fmt: skip
"""Tests that compare bits which an optimisation could change, as of two programs for one lane, compile as users do."""
OF_LOGIC = (
    "arguments",
    "faults",
    "identity",
    "memory",
    "progress",
    "reached",
    "shards",
    "wrong_learners",
)
"""In ``sweeps``, those that do not."""
THOROUGH = tuple(
    line
    for line in (TESTS / "thorough.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
)
"""How the names of tests begin that CI runs in addition to README's command."""

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _is_quick(item):
    place = item.path.relative_to(TESTS).as_posix()
    return not place.startswith(AS_USERS) or place.startswith(
        tuple(f"sweeps/test_{name}" for name in OF_LOGIC)
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Those that compile as users do come first, so that a process changes once."""
    items.sort(key=_is_quick)
    for item in items:
        if item.nodeid.removeprefix("tests/").startswith(THOROUGH):
            item.add_marker("thorough")


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
