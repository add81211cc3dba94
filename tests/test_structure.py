"""The house: a test file for every module, in the same folder, that leaves the private names of others alone; short modules."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LONGEST = 320
PUBLIC = {"_replace", "_fields", "_asdict", "_make", "_repr_html_"}
"""Names of NamedTuple and of notebooks, public in spite of their underscore."""


def modules():
    """Module files by where their tests belong, such as "sweeps/test_loop"."""
    found = {}
    for folder in (ROOT / "jaxbandit", ROOT / "experiments"):
        base = folder if folder.name == "jaxbandit" else ROOT
        for path in sorted(folder.rglob("*.py")):
            if not path.stem.startswith("__"):
                place = path.relative_to(base).with_name(f"test_{path.stem}")
                found[place.as_posix()] = path
    return found


def files_of_tests():
    folder = ROOT / "tests"
    return {
        path.relative_to(folder).with_suffix("").as_posix(): path
        for path in sorted(folder.rglob("test_*.py"))
    }


def test_every_module_has_a_test_file_of_its_name():
    assert sorted(set(modules()) - set(files_of_tests())) == []


def test_every_test_file_says_what_it_is_about():
    """Those of a module, and those across modules: laws, lemmas, promises, what a user gives."""
    for place, path in files_of_tests().items():
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), place


def private_names(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jaxbandit"):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if name.startswith("_") and not name.startswith("__") and name not in PUBLIC:
                yield name, node.lineno


@pytest.mark.parametrize("place", sorted(files_of_tests()))
def test_private_names_are_read_by_the_tests_of_their_module_alone(place):
    texts = {where: path.read_text(encoding="utf-8") for where, path in modules().items()}
    own = texts.get(place, "")
    others = "".join(texts.values())
    wrong = [
        f"{name} in line {line}"
        for name, line in private_names(files_of_tests()[place])
        if name in others and name not in own
    ]
    assert wrong == []


def test_modules_are_short():
    long = {
        path.relative_to(ROOT).as_posix(): lines
        for path in modules().values()
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST
    }
    assert long == {}
