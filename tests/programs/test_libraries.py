"""What is a library, and by which version it is known."""

import functools
import importlib.metadata
import json
import sys
import sysconfig

import jax
import numpy as np

from jaxbandit.programs import libraries


def test_libraries_are_known_by_their_place():
    assert libraries.is_library("json", json.__file__)
    assert libraries.is_library("numpy.linalg")
    assert libraries.is_library("builtins")
    assert not libraries.is_library("jaxbandit.theory")
    assert libraries.is_library("jaxbandit.xla.barriers")
    assert not libraries.is_library("__main__")
    # a module of the user's that has the name of one in the standard library
    assert not libraries.is_library("queue", "/home/somebody/project/queue.py")


def test_versions():
    assert libraries.version_of("numpy.linalg") == np.__version__
    assert libraries.version_of("json") == "python 3"
    assert libraries.version_of("nowhere_to_be_found") == "unknown"
    # by another name than the module's
    assert libraries.version_of("dateutil") == importlib.metadata.version("python-dateutil")


def installed(folder, value, monkeypatch):
    """A package of the user's in a folder of libraries, as pip leaves it there; its version."""
    place = folder / "site-packages"
    (place / "mine_own-1.0.dist-info").mkdir(parents=True, exist_ok=True)
    for name, text in {
        "METADATA": "Metadata-Version: 2.1\nName: mine-own\nVersion: 1.0\n",
        "direct_url.json": '{"url": "file:///mine"}',
        "RECORD": f"mine_own/__init__.py,sha256={value},9\nmine_own-1.0.dist-info/RECORD,,\n",
    }.items():
        (place / "mine_own-1.0.dist-info" / name).write_text(text)
    (place / "mine_own").mkdir(exist_ok=True)
    (place / "mine_own" / "__init__.py").write_text(f"C = {value!r}\n")
    monkeypatch.syspath_prepend(str(place))
    libraries.version_of.cache_clear()
    return libraries.version_of("mine_own")


def test_what_is_installed_from_a_folder_is_known_by_its_files(tmp_path, monkeypatch):
    """`pip install .` after an edit leaves the version as it was."""
    one, two = (installed(tmp_path, value, monkeypatch) for value in ("a", "b"))
    assert one.startswith("1.0 ")
    assert two.startswith("1.0 ")
    assert one != two
    assert libraries.is_library("mine_own", str(tmp_path / "site-packages/mine_own/__init__.py"))
    libraries.version_of.cache_clear()


def test_what_was_put_among_the_libraries_is_looked_into(tmp_path):
    assert not libraries.is_library("lone", str(tmp_path / "site-packages" / "lone.py"))
    near = sysconfig.get_path("stdlib") + "-mine/x.py"
    assert not libraries.is_library("x", near)


def test_functions_of_libraries_by_what_they_are():
    def g(x):
        return x

    forward, backward = (
        libraries.library_function(d(g).__code__) for d in (jax.jacfwd, jax.jacrev)
    )
    assert forward[:2] == backward[:2] == ("jax", jax.__version__)
    assert forward != backward
    top, version, name, line = libraries.library_function(functools.wraps(g).func.__code__)
    assert (top, version, name, line) == ("", "python 3", "update_wrapper", 0)


def test_compiled_modules_of_the_user_are_known_by_their_file(tmp_path, monkeypatch):
    assert libraries.compiled_file("numpy._core._multiarray_umath") is None
    assert libraries.compiled_file("json") is None
    module = type(sys)("mine_compiled")
    module.__file__ = str(tmp_path / "mine_compiled.so")
    monkeypatch.setitem(sys.modules, "mine_compiled", module)
    found = []
    for content in (b"one", b"two"):
        (tmp_path / "mine_compiled.so").write_bytes(content)
        found.append(libraries.compiled_file("mine_compiled"))
    assert None not in found
    assert found[0] != found[1]
