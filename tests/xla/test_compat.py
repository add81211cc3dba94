"""64-bit types exist inside the context and nowhere else; what jax has been told is known."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import jaxbandit as jb
from jaxbandit.xla.compat import settings, x64


def test_x64_holds_inside_and_ends_outside():
    before = jnp.asarray(1.0).dtype
    with x64():
        assert jnp.asarray(1.0).dtype == jnp.float64
        with x64(False):
            assert jnp.asarray(1.0).dtype == jnp.float32
        assert jnp.asarray(1.0).dtype == jnp.float64
    assert jnp.asarray(1.0).dtype == before


def test_settings_are_those_in_force():
    before = settings()
    with jax.default_matmul_precision("highest"), x64():
        inside = settings()
    assert inside == before | {"default_matmul_precision": "highest"}
    assert before["default_prng_impl"] == "threefry2x32"
    assert settings() == before


PROGRAM = """
import os, pwd, sys

def nobody(number):
    raise KeyError(number)

pwd.getpwuid = nobody
import jax, jaxbandit as jb
from jaxbandit.cli import main
for name in jb.__all__:
    getattr(jb, name)
mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)
ds = jb.sweep({"U": jb.make_learner("ucbvi")}, {"\\u00dc": mdp}, 50, 2, progress=False)
if ds["regret"].shape != (1, 1, 2, 50) or sys.flags.optimize != 2:
    raise SystemExit("wrong")
if main(["list"]) or main(["list", "ucbvi"]):
    raise SystemExit("list")
from jaxbandit.status import lasting_output
with lasting_output():
    print("\\u00dc", ds["instance"].values.tolist())
"""


def run(program, **settings):
    ours = {"HOME", "XDG_CACHE_HOME", "JAXBANDIT_COMPILATION_CACHE"}
    return subprocess.run(
        [sys.executable, *program], capture_output=True, text=True, check=False,
        env={**{name: value for name, value in os.environ.items() if name not in ours}, **settings},
    )  # fmt: skip


def test_settings_of_a_process_that_are_not_the_usual_ones():
    """No home, no docstrings, an ASCII terminal and no implicit transfers, all at once."""
    odd = {"PYTHONOPTIMIZE": "2", "PYTHONIOENCODING": "ascii", "JAX_TRANSFER_GUARD": "disallow"}
    done = run(["-c", PROGRAM], **odd)
    assert done.returncode == 0, done.stderr
    assert "ucbvi" in done.stdout


def test_a_platform_that_does_not_exist_is_named_in_one_line():
    done = run(["-m", "jaxbandit.cli", "show", "prophet-uniform"], JAX_PLATFORMS="bogus")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("jaxbandit: JAX_PLATFORMS: 'bogus'; Unable to initialize backend")


def test_a_sweep_in_a_traced_function_is_refused():
    mdp = jb.make_instance("prophet-uniform", horizon=2, capacity=1, num_values=3)

    @jax.vmap
    def traced(x):
        jb.sweep(jb.make_learner("uniform"), mdp, 50, 2, progress=False)
        return x

    with pytest.raises(RuntimeError, match="sweep: called while jax traces a function; accepted"):
        traced(jnp.zeros(2))
