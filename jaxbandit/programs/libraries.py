"""What is installed, and so known by its name and version, and what is the user's and so looked into."""

from __future__ import annotations

import functools
import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import sys
import sysconfig
import types
from collections.abc import Mapping
from pathlib import Path

PACKAGE = __name__.split(".")[0]
_INSTALLED = {"site-packages", "dist-packages"}
_LIBRARIES = tuple(
    Path(path).resolve()
    for path in {
        sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
    }
)
UNKNOWN = "unknown"


@functools.lru_cache(maxsize=4096)
def is_library(module: str | None, file: str | None = None) -> bool:
    """Whether something is installed and so known by its version; this package itself is looked into.

    Example:
        >>> is_library("numpy"), is_library("jaxbandit.learners.ucbvi"), is_library("json")
        (True, False, True)
    """
    top = (module or "").split(".")[0]
    if top == PACKAGE:
        return (module or "").startswith(
            f"{PACKAGE}.xla"
        )  # how programs are compiled, not what they do
    if top == "__main__" and file is None:  # a prompt, a notebook or a script
        return False
    if file is None:
        file = getattr(sys.modules.get(module or ""), "__file__", None)
    if file is None or file.startswith("<"):  # in the interpreter itself, or typed at a prompt
        return top in sys.stdlib_module_names
    return _installed_as(file) is not None


@functools.lru_cache(maxsize=4096)
def _installed_as(file: str) -> str | None:
    """The library that a file belongs to, "" for the standard one; None for other files, and for what somebody put among
    the libraries without saying what it is."""
    path = Path(file).resolve()
    places = [j for j, part in enumerate(path.parts[:-1]) if part in _INSTALLED]
    if places:  # of this interpreter's environment, or of those that it builds upon
        top = path.parts[places[-1] + 1].split(".")[0]
        return top if version_of(top) != UNKNOWN else None
    return "" if any(map(path.is_relative_to, _LIBRARIES)) else None


def library_function(code: types.CodeType) -> tuple[str | int, ...]:
    """What a function of a library is known by: whatever it says of itself, it may have been made to look like another."""
    top = _installed_as(code.co_filename) or ""
    # Versions of Python have the same function on other lines.
    return (top, version_of(top or "builtins"), code.co_qualname, code.co_firstlineno if top else 0)


def is_installed(module: str) -> bool:
    """Whether a module, imported or not, is a library's; it is not imported for that."""
    top = module.split(".", maxsplit=1)[0]
    if top in sys.modules or top == PACKAGE:
        return is_library(module if top == PACKAGE else top)
    spec = importlib.util.find_spec(top)
    return spec is not None and is_library(top, spec.origin or next(iter(spec.submodule_search_locations or []), None))  # fmt: skip


@functools.lru_cache(maxsize=1024)
def version_of(module: str | None) -> str:
    """The version of the library that a module belongs to, whatever the name that it is installed by.

    What was installed from a folder or a repository may change without another version: its files count, too.
    """
    top = (module or "").split(".")[0]
    found = _distribution(top)
    if found is None:
        return f"python {sys.version_info.major}" if top in sys.stdlib_module_names else UNKNOWN
    if top == PACKAGE or found.read_text("direct_url.json") is None:
        return found.version
    lines = (found.read_text("RECORD") or "").splitlines()
    own = sorted(line for line in lines if ".dist-info/" not in line and "sha256=" in line)
    return f"{found.version} {hashlib.sha256(repr(own).encode()).hexdigest()[:16]}"


def _distribution(top: str) -> importlib.metadata.Distribution | None:
    try:
        return importlib.metadata.distribution(top)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        names = () if top in sys.stdlib_module_names else _distributions().get(top, ())
    return importlib.metadata.distribution(next(iter(names))) if names else None


@functools.lru_cache(maxsize=1)
def _distributions() -> Mapping[str, list[str]]:
    """The names that modules are installed by, where they differ: yaml is PyYAML."""
    return importlib.metadata.packages_distributions()


def compiled_file(module: str | None) -> str | None:
    """The digest of the file that a compiled module of the user's was loaded from; None for other modules."""
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    if not file or not file.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
        return None
    return None if is_library(module) else hashlib.sha256(Path(file).read_bytes()).hexdigest()
