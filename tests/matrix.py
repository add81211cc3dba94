"""The test matrix: environments for several versions of Python and jax, a quick part of the suite in each.

    python tests/matrix.py [--folder .matrix] [--row 3.11/0.7.0 --row 3.13/newest] [--smoke] [--fresh]

Environments are made in the folder (about 1 GB each) and used again next time. In each of them run
the tests listed in `QUICK`, and the program `SMOKE` (a sweep on both engines against counting by
hand, saved, loaded and drawn) with x64 on and off and with both ways of drawing random bits (with --smoke, this alone). Prints
a markdown table; the exit code says whether everything that installs is green.
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
ROWS = [f"{python}/{jax}" for python in PYTHONS for jax in JAXES]
QUICK = [
    "tests/test_checks.py", "tests/test_specs.py", "tests/mdp", "tests/test_planning.py", "tests/test_record.py",
    "tests/results/test_io.py", "tests/sweeps/test_checkpoint.py", "tests/sweeps/test_identity.py",
    "tests/sweeps/test_surroundings.py", "tests/xla",
]  # fmt: skip
"""What stands on Python and jax: bits, identity of programs, checkpoints, files. About two minutes on two cores."""
NEEDED = ["pytest>=8", "pytest-xdist>=3.5", "hypothesis>=6.100", "gymnasium>=1.0"]
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
learners = {"ExpRef": jb.make_learner("expref"), "UCB-VI": jb.make_learner("ucbvi"), "fixed": jb.make_learner("fixed", policy=np.ones((4, 3), np.int32))}
for engine in ("auto", "episodes"):
    ds = jb.sweep(learners, {"I1": mdp}, 300, 2, record=jb.record.linear(5), engine=engine, progress=False)
    regret = ds["regret"].values
    assert np.isfinite(regret).all() and (regret >= 0).all() and (np.diff(regret) >= 0).all()
    each = float(jb.regret(mdp, np.ones((4, 3), np.int32)))
    np.testing.assert_allclose(ds["regret"].sel(learner="fixed"), each * ds["episode"].values * np.ones((1, 2, 1)), rtol=1e-5)
assert jb.load(jb.save(ds, pathlib.Path(tempfile.mkdtemp()) / "run.nc")).identical(ds)
jb.plot_regret(ds)
"""


def interpreter(version: str) -> str | None:
    """The Python of that version: on the path, or installed by pyenv."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = sorted(map(str, root.glob(f"{version}.*/bin/python")))
    candidates += filter(None, [shutil.which(f"python{version}")])
    for program in candidates:
        asked = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
        if asked.returncode == 0 and f" {version}." in asked.stdout:
            return program
    return None


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
    wanted = [f"jax{JAXES[jax]}", f"jaxlib{JAXES[jax]}", "-e", str(ROOT), *NEEDED]
    made = subprocess.run(
        [program, "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        (place / "install.log").write_text(made.stderr)
        return "does not install"
    (place / "complete").touch()
    return program


def versions(program: Path) -> list[str]:
    """Python and jax as they are."""
    code = "import sys, jax; print(sys.version.split()[0], jax.__version__)"
    return subprocess.run(
        [program, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()


def run(program: Path, arguments: list[str], log: Path, extra: dict[str, str]) -> tuple[bool, str]:
    """Whether a program ends well, and its last line; nothing of the caller's settings reaches it."""
    clean = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [program, *arguments],
        cwd=ROOT,
        env=clean | extra,
        capture_output=True,
        text=True,
        check=False,
    )
    text = done.stdout + done.stderr
    log.write_text(text)
    return done.returncode == 0, (text.strip().splitlines() or [""])[-1].strip("= ")


def check(folder: Path, row: str, fresh: bool, workers: int, smoke: bool) -> list[str]:
    """One row of the table."""
    python, jax = row.split("/")
    program = environment(folder, python, jax, fresh)
    if isinstance(program, str):
        return [python, jax, program, *[""] * len(SETTINGS)]
    started = time.monotonic()
    logs = program.parent.parent
    cells = []
    for name, extra in SETTINGS.items():
        good, last = run(program, ["-c", SMOKE], logs / f"smoke {name}.log", extra)
        cells.append("runs" if good else f"FAILS: {last[:60]}")
    if smoke:
        return [*versions(program), "not run", *cells]
    tests = ["-m", "pytest", "-n", str(workers), *QUICK]
    good, last = run(program, tests, logs / "tests.log", {})
    told = f"{'green' if good else 'RED'}: {last} ({time.monotonic() - started:.0f} s in all)"
    return [*versions(program), told, *cells]


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, default=ROOT / ".matrix")
    parser.add_argument("--row", action="append", choices=ROWS, help="Python/jax; default: all")
    parser.add_argument("--workers", type=int, default=2, help="processes of pytest")
    parser.add_argument("--smoke", action="store_true", help="leave the tests out")
    parser.add_argument("--fresh", action="store_true", help="make the environments anew")
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    print("| Python | jax | quick tests | " + " | ".join(SETTINGS) + " |")
    print("|---|---|---|" + "---|" * len(SETTINGS), flush=True)
    fine = True
    for row in given.row or ROWS:
        cells = check(folder, row, given.fresh, given.workers, given.smoke)
        fine &= not any("RED" in cell or "FAILS" in cell for cell in cells)
        print(f"| {' | '.join(cells)} |", flush=True)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
