"""However a learner reaches a number, an edit of the number is another program and a comment is not.

`reached.txt` has the modules, as users write them.
"""

import importlib
import sys
from pathlib import Path

import absl.flags  # noqa: F401  (these are not loaded twice)
import h5py  # noqa: F401
import jax
import jax.numpy as jnp
import pytest
import scipy.stats  # noqa: F401  (parts of numpy load once a process)

from jaxbandit.xla.programs import lower

_, *SECTIONS = Path(__file__).with_name("reached.txt").read_text().split("\n== ")
WAYS = {name: text for name, _, text in (section.partition("\n") for section in SECTIONS)}
SAME_NUMBER = {"library function in a class", "other wrapper of a library", "weak type"}
"""The edit changes no number of f(a)."""


def digest(folder, kind, number, layout=str):
    """Of `f` of the module with this number, from files of its own."""
    files = [part.partition("\n")[::2] for part in f"-- k\n{WAYS[kind]}".split("-- ")[1:]]
    for name, text in files:
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(layout(text.replace("#V#", str(number))))
    Path("number.txt").write_text(str(number))
    modules, path, argv = dict(sys.modules), list(sys.path), sys.argv
    for name, _ in files:
        sys.modules.pop(Path(name).name, None)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        module = importlib.import_module("k")
        argument = jax.ShapeDtypeStruct((2,) if kind == "vmapped helper" else (), jnp.float32)
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
            return lower(module.f, argument).digest
    except ModuleNotFoundError as error:
        pytest.skip(str(error))
    finally:
        if hasattr(sys.modules.get("k"), "file"):
            sys.modules["k"].file.close()
        sys.path[:], sys.argv = path, argv
        for name in set(sys.modules) - set(modules):  # libraries stay: they are not loaded twice
            file = getattr(sys.modules[name], "__file__", None)
            if file is None or Path(file).is_relative_to(folder):
                del sys.modules[name]
        sys.modules.update(modules)


def with_comments(text):
    return "# a comment\n\n" + text.replace("\n    return", "  # here\n\n    return  ")


@pytest.mark.parametrize("kind", WAYS)
def test_an_edit_is_another_program_and_a_comment_is_not(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = digest(tmp_path / "one", kind, 1)
    assert (digest(tmp_path / "two", kind, 2) == one) == (kind in SAME_NUMBER)
    assert digest(tmp_path / "three", kind, 1, with_comments) == one
