"""The test matrix, run by hand: environments for several versions of Python and jax, a quick part of the suite in each.

    python tests/matrix.py [--folder .matrix] [--only 3.11 --only 0.7.0] [--fresh]

Environments are made in the folder (about 1 GB each) and used again next time. In each of them run
the tests listed in `QUICK`, and the program `SMOKE` (a sweep on both engines, saved, loaded and drawn)
with x64 on and off and with both ways of drawing random bits. Prints a markdown table.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
JAXES = {"0.7.0": "==0.7.0", "0.7.2": "==0.7.2", "0.10": "==0.10.*", "newest": ""}
QUICK = [
    "tests/test_checks.py", "tests/test_layers.py", "tests/test_mdp.py", "tests/test_tables.py",
    "tests/test_planning.py", "tests/test_record.py", "tests/test_registry.py", "tests/test_results.py",
    "tests/test_theory.py", "tests/instances", "tests/stats", "tests/sweeps/test_axes.py",
    "tests/engines/test_law.py", "tests/test_cli.py",
]  # fmt: skip
SETTINGS = {
    "plain": {},
    "x64": {"JAX_ENABLE_X64": "1"},
    "old random bits": {"JAX_THREEFRY_PARTITIONABLE": "0"},
}
SMOKE = """
import pathlib, tempfile
import numpy as np
import jaxbandit as jb
mdp = jb.make_instance("prophet-uniform", horizon=4, capacity=2, num_values=3)
learners = {"ExpRef": jb.make_learner("expref"), "UCB-VI": jb.make_learner("ucbvi")}
ds = jb.sweep(learners, {"I1": mdp}, num_episodes=300, num_seeds=2, record=jb.record.linear(5), progress=False)
regret = ds["regret"].values
assert np.isfinite(regret).all() and (regret >= 0).all() and (np.diff(regret) >= 0).all()
assert jb.load(jb.save(ds, pathlib.Path(tempfile.mkdtemp()) / "run.nc")).identical(ds)
jb.plot_regret(ds)
"""


def interpreter(version: str) -> str | None:
    """The Python of that version: on the path, or installed by pyenv."""
    found = shutil.which(f"python{version}")
    if (
        found
        and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0
    ):
        return found
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = sorted(root.glob(f"{version}.*/bin/python"))
    return str(candidates[-1]) if candidates else None


def environment(folder: Path, python: str, jax: str, fresh: bool) -> Path | str:
    """The Python of an environment with this package and that jax; or why there is none."""
    place = folder / f"python{python}-jax{jax}"
    program = place / "bin" / "python"
    if (place / "complete").exists() and not fresh:
        return program
    found = interpreter(python)
    if found is None:
        return "no interpreter"
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run([found, "-m", "venv", str(place)], check=True)
    wanted = [f"jax{JAXES[jax]}", f"jaxlib{JAXES[jax]}", "pytest", "hypothesis", "-e", str(ROOT)]
    made = subprocess.run(
        [program, "-m", "pip", "install", "-q", *wanted],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        (place / "install.log").write_text(made.stderr)
        return "does not install"
    (place / "complete").touch()
    return program


def versions(program: Path) -> str:
    """Python and jax as they are."""
    code = "import sys, jax; print(sys.version.split()[0], jax.__version__)"
    return subprocess.run([program, "-c", code], capture_output=True, text=True, check=True).stdout


def run(program: Path, arguments: list[str], log: Path, extra: dict[str, str]) -> tuple[bool, str]:
    """Whether a program ends well, and its last line; nothing of the caller's settings reaches it."""
    clean = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "JAX_PLATFORMS": "cpu",
        **extra,
    }
    done = subprocess.run(
        [program, *arguments], cwd=ROOT, env=clean, capture_output=True, text=True, check=False
    )
    text = done.stdout + done.stderr
    log.write_text(text)
    return done.returncode == 0, (text.strip().splitlines() or [""])[-1].strip("= ")


def check(folder: Path, python: str, jax: str, fresh: bool) -> list[str]:
    """One row of the table."""
    program = environment(folder, python, jax, fresh)
    if isinstance(program, str):
        return [python, jax, program, *[""] * len(SETTINGS)]
    started = time.time()
    logs = program.parent.parent
    cells = []
    for name, extra in SETTINGS.items():
        good, last = run(program, ["-c", SMOKE], logs / f"smoke {name}.log", extra)
        cells.append("runs" if good else f"fails: {last[:60]}")
    good, last = run(program, ["-m", "pytest", "-q", *QUICK], logs / "tests.log", {})
    seconds = f" in {time.time() - started:.0f} s"
    return [*versions(program).split(), f"{'green' if good else 'RED'}: {last}{seconds}", *cells]


def main() -> int:
    """Prints the table; the exit code says whether everything that installs is green."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, default=ROOT / ".matrix")
    parser.add_argument("--only", action="append", choices=[*PYTHONS, *JAXES])
    parser.add_argument("--fresh", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    pythons = [v for v in PYTHONS if v in (given.only or [])] or list(PYTHONS)
    jaxes = [v for v in JAXES if v in (given.only or [])] or list(JAXES)
    print("| Python | jax | tests | " + " | ".join(SETTINGS) + " |")
    print("|---|---|---|" + "---|" * len(SETTINGS), flush=True)
    fine = True
    for python in pythons:
        for jax in jaxes:
            row = check(given.folder.resolve(), python, jax, given.fresh)
            fine &= "RED" not in row[2] and not any("fails" in cell for cell in row)
            print(f"| {' | '.join(row)} |", flush=True)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
