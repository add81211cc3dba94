"""Packages are layers: none imports one above it, and each `__init__` documents its contents.

Long records are made with keywords.
"""

import ast
from pathlib import Path

import jaxbandit

LAYERS = [
    {"types", "checks"},
    {
        "errors",
        "files",
        "tabular",
        "registry",
        "specs",
        "status",
        "xla",
    },
    {"mdp", "feedback", "theory", "record", "distributed"},
    {"planning", "learner"},
    {"instances", "learners"},
    {"metrics", "kernels"},
    {"engines"},
    {"results"},
    {"sweeps", "testing"},
    {"stats", "inspect"},
    {"plotting"},
    {"studies"},
    {"experiment"},
    {"experiments"},
    {"description"},
    {"cli"},
]
HEIGHT = {room: height for height, rooms in enumerate(LAYERS) for room in rooms}
ROOT = Path(__file__).parent.parent


def files():
    for folder in ("jaxbandit", "experiments"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield path, (parts[1] if folder == "jaxbandit" else "experiments")


def imported(path, room):
    """Rooms that a file imports, with the line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"jaxbandit.{room}"]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            package, *rest = name.split(".")
            if package == "jaxbandit" and rest and rest[0] in HEIGHT:
                yield rest[0], node.lineno


def test_every_module_has_a_layer():
    rooms = {room for _, room in files()}
    assert rooms - set(HEIGHT) == {"__init__"}
    assert set(HEIGHT) <= rooms


def test_no_room_imports_upwards():
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {other}"
        for path, room in files()
        if room != "__init__"
        for other, line in imported(path, room)
        if other != room and HEIGHT[other] >= HEIGHT[room]
    ]
    assert not wrong


def test_every_room_says_what_lives_there():
    for path, _ in files():
        if path.name == "__init__.py" and path.parent.name != "jaxbandit":
            text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            assert text.count("\n") >= 2, path


def test_names_for_type_checkers_are_the_names_that_load():
    tree = ast.parse((ROOT / "jaxbandit" / "__init__.py").read_text(encoding="utf-8"))
    checked = next(
        node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
    )
    seen = {alias.asname or alias.name for node in checked.body for alias in node.names}
    assert set(jaxbandit.__all__) - set(jaxbandit.plotting.FIGURES) <= seen
    for name in seen:
        assert getattr(jaxbandit, name) is not None


def modules():
    """All module files but the ``__init__`` of packages."""
    for folder in (ROOT / "jaxbandit", ROOT / "experiments"):
        yield from (p for p in sorted(folder.rglob("*.py")) if not p.stem.startswith("__"))


def test_array_and_state_have_one_home():
    found = [
        (path.stem, target.id)
        for path in modules()
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        for target in getattr(node, "targets", ())
        if isinstance(target, ast.Name) and target.id in ("Array", "State")
    ]
    assert found == [("types", "Array"), ("types", "State")]


def test_every_test_file_says_what_it_is_about():
    """Those of a module, and those across modules: laws, lemmas, promises, what a user gives."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def test_errors_have_public_homes_and_are_caught_as_their_kind():
    errors = jaxbandit.errors
    assert issubclass(errors.SweepInterrupted, KeyboardInterrupt)
    assert issubclass(errors.CheckpointError, RuntimeError)
    assert issubclass(errors.LearnerError, ValueError)
    assert jaxbandit.SweepInterrupted is errors.SweepInterrupted
    assert jaxbandit.CheckpointError is errors.CheckpointError


def records():
    """Names of NamedTuples and dataclasses with more than four fields."""
    found = set()
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                words = [ast.unparse(part) for part in (*node.bases, *node.decorator_list)]
                fields = sum(isinstance(part, ast.AnnAssign) for part in node.body)
                if fields > 4 and any("NamedTuple" in w or "dataclass" in w for w in words):
                    found.add(node.name)
    return found


def test_long_records_are_made_with_keywords():
    """At most four arguments by position. A table of like records, one a line, is data and may be read by columns."""
    long = records() - {"Contestant"}
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.func.id}"
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in long
        and len(node.args) > 4
    ]
    assert wrong == []
