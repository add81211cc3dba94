"""Functions as text: syntax without looks, names, imports inside, and what is a library."""

import os
import sys
import time
import types

import jaxbandit as jb
from jaxbandit.programs import sources


def made(text, name="made", file="<made>"):
    """The function ``f`` of a module with this text."""
    module = types.ModuleType(name)
    exec(compile(text, file, "exec"), vars(module))
    return module.f


def test_names_of_inner_functions_count():
    f = made("def f(x):\n    def g(y):\n        return outer.inner(y)\n    return g(x)\n")
    assert sources.names_in(f.__code__) >= {"outer", "inner"}


def test_imports_inside_are_found_and_libraries_stay_unloaded():
    f = made(
        "def f():\n"
        "    import json, wave\n"
        "    import jaxbandit.theory as t\n"
        "    from jaxbandit.theory import schedule\n"
        "    from jaxbandit import planning\n"
        "    import nowhere_to_be_found\n"
        "    def g():\n"
        "        from jaxbandit.record import linear\n"
    )
    sys.modules.pop("wave", None)
    found = dict(sources.imports_in(f))
    assert "wave" not in sys.modules
    assert found["wave"] == found["json"] == ("library", "python 3")
    assert found["jaxbandit.theory"].__name__ == "jaxbandit.theory"
    assert found["jaxbandit.theory.schedule"] is jb.theory.schedule
    assert found["jaxbandit.planning"].__name__ == "jaxbandit.planning"
    assert found["nowhere_to_be_found"] == ("not importable", "ModuleNotFoundError")
    assert found["jaxbandit.record.linear"] is jb.record.linear


def test_relative_imports_are_those_of_the_package():
    f = made("def f():\n    from .theory import schedule\n")
    f.__globals__["__package__"] = "jaxbandit"
    assert dict(sources.imports_in(f)) == {"jaxbandit.theory.schedule": jb.theory.schedule}


def test_a_file_edited_after_it_was_imported_is_not_what_runs(tmp_path):
    """The function does what the old text said; the new text must not be taken for it."""
    file = tmp_path / "helper.py"
    file.write_text("def f(x):\n    return x + 1\n")
    f = made(file.read_text(), file=str(file))
    fresh = sources.source_of(f)
    assert fresh[0] == "Module"
    file.write_text("def f(x):\n    return x + 2\n")
    os.utime(file, (time.time() + 5, time.time() + 5))  # some file systems count in seconds
    edited = sources.source_of(f)
    assert edited[0] == "code"
    assert edited != sources.source_of(made(file.read_text(), file=str(file)))


def test_what_wraps_another_function_is_itself(tmp_path):
    file = tmp_path / "wrapping.py"
    file.write_text(
        "import functools\n"
        "def g(x):\n    return x\n"
        "@functools.wraps(g)\n"
        "def f(x):\n    return g(x) + 1\n"
    )
    f = made(file.read_text(), file=str(file))
    assert "'f'" in repr(sources.source_of(f))


def test_a_file_that_an_older_one_replaced_is_not_what_runs(tmp_path):
    """As `mv` and `cp -p` do: the time of the new file says nothing."""
    file = tmp_path / "helper.py"
    file.write_text("def f(x):\n    return x + 1\n")
    f = made(file.read_text(), file=str(file))
    file.write_text("def f(x):\n    return x + 2\n")
    os.utime(file, (10**9, 10**9))
    assert sources.source_of(f)[0] == "code"


def test_lines_that_moved_since_are_found(tmp_path):
    file = tmp_path / "helper.py"
    text = "def g(x):\n    return x\ndef f(x):\n    return x + 1\n"
    file.write_text(text)
    f = made(text, file=str(file))
    before = sources.source_of(f)
    file.write_text("# one\n# two\n" + text)
    assert sources.source_of(f) == before


def test_a_text_that_is_not_the_files_is_not_read_as_it(tmp_path):
    file = tmp_path / "helper.py"
    file.write_text("def f(x):\n    return 0\n")
    f = made("def f(x):\n    return x + 1\n", file=str(file))
    assert sources.source_of(f)[0] == "code"


def test_names_whose_insides_are_not_named():
    f = made("def f(x):\n    def g():\n        return hand(mine)\n    return other.thing(x)\n")
    assert sources.bare_names_in(f.__code__) == {"hand", "mine"}
