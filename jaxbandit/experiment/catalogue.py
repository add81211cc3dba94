"""Experiments by name: every file of the folder `experiments/` with a value ``EXPERIMENT`` is one.

``price_of_horizon.py`` is called "price-of-horizon". Nothing here starts jax before an experiment
is loaded.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from jaxbandit.checks import did_you_mean
from jaxbandit.experiment.contract import Experiment, summary_of

PACKAGE = "jaxbandit.experiments"


def catalogue() -> dict[str, str]:
    """The names of all experiments with their one-line descriptions, read without importing them.

    Example:
        >>> catalogue()["prophet"]
        "The paper's regret figure: prophet inequalities I1 and I2, three learners (Section 5)."
    """
    found = {}
    for file in sorted(experiments_folder().glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        if any(_assigns(node, "EXPERIMENT") for node in tree.body):
            found[file.stem.replace("_", "-")] = summary_of(ast.get_docstring(tree))
    return found


def experiments_folder() -> Path:
    """Where the experiments' files are."""
    spec = importlib.util.find_spec(PACKAGE)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(next(iter(spec.submodule_search_locations)))


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
    if name.endswith(".py"):
        module = _import_file(Path(name))
    else:
        known = list(catalogue())
        if name not in known:
            raise ValueError(
                f"unknown experiment {name!r}; {did_you_mean(name, known)}accepted: {', '.join(known)}, or a file that ends in .py"
            )
        module = importlib.import_module(f"{PACKAGE}.{name.replace('-', '_')}")
    experiment = getattr(module, "EXPERIMENT", None)
    if not isinstance(experiment, Experiment):
        raise ValueError(
            f"{name}: EXPERIMENT is {type(experiment).__name__}; accepted: a module-level value "
            "EXPERIMENT = Experiment(...), see jaxbandit.experiment.contract"
        )
    return experiment


def load_learners(path: str | Path) -> dict[str, Any]:
    """The learners of a user's file: its value ``LEARNERS``, name -> learner.

    Example:
        >>> load_learners("nowhere.py")
        Traceback (most recent call last):
        ...
        ValueError: nowhere.py: no such file; accepted: a Python file
    """
    from jaxbandit.learner import Learner

    found = getattr(_import_file(Path(path)), "LEARNERS", None)
    good = (
        isinstance(found, Mapping) and found and all(isinstance(x, Learner) for x in found.values())
    )
    if not good:
        raise ValueError(
            f"learners: LEARNERS of {path} is {type(found).__name__}; accepted: a module-level value "
            'LEARNERS = {"name": learner, ...}, see jaxbandit new learner NAME'
        )
    return dict(found)  # type: ignore[arg-type]


@cache
def load_instance(text: str) -> Any:
    """An instance by name, with parameters after it, or from a file.

    An .npz file holds the arguments of `jaxbandit.from_arrays`: P, R, horizon and, if needed, start and terminal. A Python
    file registers an instance (`jaxbandit new instance NAME`).

    Example:
        >>> load_instance("riverswim num_states=4 horizon=10")
        MDP(H=10, k=4, A=2, general)
        >>> load_instance("nowhere.npz")
        Traceback (most recent call last):
        ...
        ValueError: nowhere.npz: no such file; accepted: a file of arrays P, R and horizon
    """
    import jaxbandit as jb

    path = Path(text)
    if path.suffix == ".npz":
        if not path.is_file():
            raise ValueError(f"{path}: no such file; accepted: a file of arrays P, R and horizon")
        with np.load(path, allow_pickle=False) as arrays:
            given = {name: arrays[name] for name in arrays.files}
        missing = {"P", "R", "horizon"} - set(given)
        other = set(given) - {"P", "R", "horizon", "start", "terminal"}
        if missing or other:
            raise ValueError(
                f"{path}: arrays {', '.join(given)}; accepted: P, R, horizon, and start, terminal"
            )
        return jb.from_arrays(**given)
    if path.suffix == ".py":
        known = set(jb.INSTANCES.names())
        _import_file(path)
        added = sorted(set(jb.INSTANCES.names()) - known)
        if len(added) != 1:
            raise ValueError(
                f"{path}: registers {', '.join(added) or 'no instance'}; accepted: one "
                'jb.register_instance("name", constructor)'
            )
        return jb.make_instance(added[0])
    name, *words = text.split() or [""]
    parameters = {}
    for word in words:
        key, _, value = word.partition("=")
        try:
            parameters[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parameters[key] = value
    return jb.make_instance(name, **parameters)


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ValueError(f"{path}: no such file; accepted: a Python file")
    path = path.resolve()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path}: not a Python file; accepted: a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    folder = str(path.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as `python FILE.py` does, so that it finds its neighbours
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise ValueError(f"{path}, line {error.lineno}: {error.msg}") from error
    except Exception as error:
        if isinstance(error, (ValueError, OSError)):  # the command line adds the line
            raise
        inside = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == path]
        line = f", line {inside[-1].lineno}" if inside else ""
        raise ValueError(f"{path}{line}: {type(error).__name__}: {error}") from error
    return module
