"""Compilations between processes: kept, bounded, switched off, and harmless where the folder is bad."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest

from jaxbandit.xla import compilations
from jaxbandit.xla.compilations import is_whole

SWEEP = """
import json, os, sys
import jax, jax.numpy as jnp
from jax import monitoring
import jaxbandit as jb

events = []
monitoring.register_event_listener(lambda name, **_: events.append(name.split("/")[-1]))
names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs", "jax_persistent_cache_min_entry_size_bytes")
before = [getattr(jax.config, name) for name in names]
mdp = jb.make_instance("prophet-uniform", horizon=3, capacity=1, num_values=3)
events.clear()
ds = jb.sweep({"uniform": jb.make_learner("uniform")}, {"I1": mdp}, 50, num_seeds=2, progress=False)
during = list(events)
events.clear()
jax.jit(lambda x: jnp.sin(x) * 7)(1.5)  # a program of the user's own
print(json.dumps({
    "asked": during.count("compile_requests_use_cache"), "hits": during.count("cache_hits"),
    "same": before == [getattr(jax.config, name) for name in names],
    "later": events.count("cache_misses"), "regret": ds["regret"].values.tolist(),
}))
"""


def run_sweep(folder, wait=True, **environment):
    cleared = {name: value for name, value in os.environ.items() if "COMPILATION_CACHE" not in name}
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SWEEP], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**cleared, compilations.VARIABLE: str(folder), **environment},
    )  # fmt: skip
    return answer(process) if wait else process


def answer(process):
    import json

    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return SimpleNamespace(**json.loads(out), err=err)


def files_in(folder):
    return {path for path in Path(folder).rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A folder after two processes that ran at the same time, and what they said."""
    folder = tmp_path_factory.mktemp("cache")
    together = [run_sweep(folder, wait=False) for _ in range(2)]
    return folder, [answer(process) for process in together]


def test_the_second_process_compiles_nothing(first):
    folder, earlier = first
    kept = files_in(folder)
    second = run_sweep(folder)
    assert second.asked > 3
    assert second.hits == second.asked
    assert files_in(folder) == kept
    assert all(each.regret == second.regret for each in earlier)


def test_afterwards_jax_is_as_it_was(first):
    _, earlier = first
    assert all(each.same and each.later == 0 and each.err == "" for each in earlier)


def test_none_writes_nothing(tmp_path):
    found = run_sweep("none", XDG_CACHE_HOME=str(tmp_path), HOME=str(tmp_path))
    assert (found.hits, found.err) == (0, "")
    assert not files_in(tmp_path)
    assert not Path("none").exists()


def test_what_jax_was_told_wins(tmp_path):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    run_sweep(ours, JAX_COMPILATION_CACHE_DIR=str(theirs))
    assert theirs.exists()
    assert not ours.exists()


def test_a_folder_that_cannot_be_written_to_does_no_harm(tmp_path, first):
    file = tmp_path / "file"
    file.write_text("")
    found = run_sweep(file / "below")
    assert found.hits == 0
    assert found.err.count("compilations are not kept: cannot write to") == 1
    assert found.regret == first[1][0].regret


def test_broken_files_do_no_harm_and_are_dropped_by_the_next_process(first):
    folder, earlier = first
    kept = files_in(folder)
    broken = next(path for path in kept if "run_chunk" in path.name)
    broken.chmod(0o644)
    broken.write_bytes(broken.read_bytes()[:100])
    young = run_sweep(folder)  # somebody may still be writing it: left alone, and nothing is said
    assert (young.hits, young.err) == (young.asked - 1, "")
    os.utime(broken, (1000, 1000))
    old = run_sweep(folder)
    assert (old.hits, old.err) == (old.asked - 1, "")
    assert is_whole(broken.read_bytes())  # written anew
    assert files_in(folder) == kept
    assert run_sweep(folder).hits == old.asked
    assert young.regret == old.regret == earlier[0].regret


@pytest.fixture
def unset(monkeypatch):
    """jax as a user has it who has set nothing."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    compilations.usable_folder.cache_clear()
    monkeypatch.setattr(compilations, "PERSISTENT_CACHE", compilations.PersistentCache())
    yield monkeypatch
    jax.config.update("jax_compilation_cache_dir", before)
    compilations.usable_folder.cache_clear()


def test_a_full_disk_is_said_and_not_used(tmp_path, unset, capsys):
    unset.setenv(compilations.VARIABLE, str(tmp_path))
    unset.setattr(compilations.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    for _ in range(2):
        with compilations.persistent_cache():
            assert jax.config.jax_compilation_cache_dir is None
    assert capsys.readouterr().err.count("less than 64 MB are free") == 1


def test_scopes_nest_and_an_error_ends_them(tmp_path, unset):
    unset.setenv(compilations.VARIABLE, str(tmp_path))

    @compilations.persistent_cache()
    def failing():
        with compilations.persistent_cache():
            pass
        assert jax.config.jax_compilation_cache_dir.startswith(str(tmp_path))
        raise RuntimeError

    with pytest.raises(RuntimeError):
        failing()
    assert jax.config.jax_compilation_cache_dir is None


def test_a_folder_that_the_user_sets_meanwhile_stays(tmp_path, unset):
    unset.setenv(compilations.VARIABLE, str(tmp_path / "ours"))
    with compilations.persistent_cache():
        jax.config.update("jax_compilation_cache_dir", str(tmp_path / "theirs"))
    assert jax.config.jax_compilation_cache_dir == str(tmp_path / "theirs")


def test_the_command_line_keeps_for_good(tmp_path, unset):
    unset.setenv(compilations.VARIABLE, "none")
    compilations.start_jax(tmp_path)
    with compilations.persistent_cache():
        pass
    assert jax.config.jax_compilation_cache_dir.startswith(str(tmp_path))


def test_the_folder_is_pruned_from_the_oldest(tmp_path, monkeypatch):
    monkeypatch.setattr(compilations, "CACHE_BYTES", 25)
    for age, name in enumerate(("new", "middle", "old")):
        file = tmp_path / name / "entry-cache"
        file.parent.mkdir()
        file.write_bytes(b"x" * 10)
        os.utime(file, (time.time() - age,) * 2)
    compilations.tidy(tmp_path)
    assert {file.parent.name for file in files_in(tmp_path)} == {"middle", "new"}


@pytest.mark.parametrize("home", ["", "/elsewhere"])
def test_where_it_is(monkeypatch, home):
    monkeypatch.setenv("XDG_CACHE_HOME", home)
    monkeypatch.delenv(compilations.VARIABLE, raising=False)
    expected = Path(home) if home else Path.home() / ".cache"
    assert compilations.chosen_cache() == expected / "jaxbandit"
    monkeypatch.setenv(compilations.VARIABLE, "here")
    assert compilations.chosen_cache() == Path("here")
