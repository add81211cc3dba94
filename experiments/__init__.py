"""Experiments of the paper and beyond, by name. Nothing here starts jax before an experiment is loaded.

Every file of this folder with a value ``EXPERIMENT`` is one; ``price_of_horizon.py`` is called
"price-of-horizon". The contract is in `jaxbandit.experiments.base`.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxbandit.experiments.base import Experiment

__all__ = ["catalogue", "load_experiment"]


def catalogue() -> dict[str, str]:
    """The names of all experiments with their one-line descriptions, read without importing them.

    Example:
        >>> catalogue()["prophet"]
        "The paper's regret figure: prophet inequalities I1 and I2, three learners (Section 5)."
    """
    found = {}
    for file in sorted(Path(__file__).parent.glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        if any(_assigns(node, "EXPERIMENT") for node in tree.body):
            found[file.stem.replace("_", "-")] = (ast.get_docstring(tree) or "").split("\n")[0]
    return found


def _assigns(node: ast.stmt, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def load_experiment(name: str) -> Experiment:
    """The experiment of that name, or of a user's own file (anything that ends in .py).

    Example:
        >>> load_experiment("prophets")
        Traceback (most recent call last):
        ...
        ValueError: unknown experiment 'prophets'; did you mean 'prophet'? accepted: ...
    """
    from jaxbandit.experiments.base import Experiment

    if name.endswith(".py"):
        module = _import_file(Path(name))
    else:
        known = list(catalogue())
        if name not in known:
            near = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
            hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
            raise ValueError(
                f"unknown experiment {name!r}; {hint}accepted: {', '.join(known)}, or a file that ends in .py"
            )
        module = importlib.import_module(f"jaxbandit.experiments.{name.replace('-', '_')}")
    experiment = getattr(module, "EXPERIMENT", None)
    if not isinstance(experiment, Experiment):
        raise ValueError(
            f"{name}: EXPERIMENT is {type(experiment).__name__}; accepted: a module-level value "
            "EXPERIMENT = Experiment(...), see jaxbandit.experiments.base"
        )
    return experiment


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ValueError(f"{path}: no such file; accepted: a Python file with a value EXPERIMENT")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as `python FILE.py` does, so that it finds its neighbours
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise ValueError(f"{path}, line {error.lineno}: {error.msg}") from error
    return module
