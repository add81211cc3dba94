"""Settings before jax starts: the user's stay, the cache is bounded, what cannot be written is said."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from jaxbandit.xla import flags

PROGRAM = """
import os
from jaxbandit.xla.flags import start_jax
start_jax(None)
print(os.environ.get("XLA_FLAGS", ""))
"""


def test_what_the_user_has_set_stays(tmp_path):
    given = "--xla_cpu_multi_thread_eigen=true"
    environment = {**os.environ, "XLA_FLAGS": given, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    words = done.stdout.split()
    assert words[0] == given
    assert sum(word.startswith("--xla_cpu_multi_thread_eigen") for word in words) == 1


def test_the_cache_is_pruned_from_the_oldest(tmp_path, monkeypatch):
    monkeypatch.setattr(flags, "CACHE_BYTES", 25)
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    for age, name in enumerate(("new", "middle", "old")):
        (tmp_path / name).write_bytes(b"x" * 10)
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    before = jax.config.jax_compilation_cache_dir
    try:
        flags.keep_compilations(tmp_path)
        assert jax.config.jax_compilation_cache_dir == str(tmp_path)
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
    assert sorted(os.listdir(tmp_path)) == ["middle", "new"]


def test_a_folder_that_cannot_be_made_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    file = tmp_path / "file"
    file.write_text("")
    flags.keep_compilations(file / "below")
    assert "compilations are not kept: cannot write to" in capsys.readouterr().err


@pytest.mark.parametrize("home", ["", "/elsewhere"])
def test_default_folder(monkeypatch, home):
    monkeypatch.setenv("XDG_CACHE_HOME", home)
    expected = Path(home) if home else Path.home() / ".cache"
    assert flags.default_cache() == expected / "jaxbandit"
