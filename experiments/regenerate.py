"""Everything committed that depends on the numbers of engines and learners, made again by one command.

    python -m jaxbandit.experiments.regenerate [STEP ...] [--out results/regenerated] [--dry-run]

Runs the experiments behind `experiments/README.md` at the sizes that it states, copies the figures that `experiments/figures`
has, writes the reference data and stores the notebooks: hours on two cores. The same command continues where it was
interrupted. Tables are files ``*.md`` in the results' folders; their numbers, presets (``jaxbandit run tuning --full``), the
coverage of intervals and speed go into the READMEs by hand.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "experiments" / "figures"
RUNS = {
    "prophet": "prophet --full",
    "small": "prophet",
    "applications": "applications",
    "constants": "constants --seeds 64",
    "published": "published",
    "ladder": "ladder",
    "riverswim": "ladder --instance riverswim",
    "claims-map": "claims-map",
    "sharing": "sharing",
    "scaling": "scaling",
    "price-of-horizon": "price-of-horizon",
    "lower-bounds": "lower-bounds",
    "exploration": "exploration",
}
"""Step -> the words after ``jaxbandit run``."""
RENAMED = {("riverswim", "ladder_own.png"): "ladder_riverswim.png"}
"""Figures whose name in `FIGURES` is another one than in the results."""
REFERENCES = {"prophet": "prophet-full.nc", "small": "prophet.nc"}
"""Step -> the reference that is made of its results."""


def commands(step: str, out: Path) -> list[list[str]]:
    """What a step runs, as words.

    Example:
        >>> [words[1:] for words in commands("scaling", Path("results"))]
        [['-m', 'jaxbandit.cli', 'run', 'scaling', '--out', 'results/scaling', '--resume']]
    """
    if step == "notebooks":
        return [[sys.executable, str(ROOT / "tests" / "store_notebooks.py")]]
    folder = out / step
    run = [sys.executable, "-m", "jaxbandit.cli", "run", *RUNS[step].split()]
    found = [[*run, "--out", str(folder), "--resume"]]
    if step in REFERENCES:
        data = ROOT / "jaxbandit" / "results" / "data" / REFERENCES[step]
        words = [sys.executable, "-m", "jaxbandit.experiments.references", str(folder), str(data)]
        found.append(words)
    return found


def copy_figures(step: str, folder: Path, figures: Path = FIGURES) -> list[str]:
    """Copies the pictures of a step that are committed; returns their names."""
    copied = []
    for picture in sorted(folder.glob("*.png")):
        name = RENAMED.get((step, picture.name), picture.name)
        if step != "small" and (figures / name).exists():
            shutil.copyfile(picture, figures / name)
            copied.append(name)
    return copied


def main(given: Sequence[str] | None = None) -> None:
    """Runs the steps, in order; stops at the first that fails."""
    steps = [*RUNS, "notebooks"]
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument(
        "steps", nargs="*", metavar="STEP", help=f"all by default: {', '.join(steps)}"
    )
    parser.add_argument("--out", type=Path, default=Path("results/regenerated"), help="for results")
    parser.add_argument("--dry-run", action="store_true", help="only print the commands")
    options = parser.parse_args(given)
    unknown = [step for step in options.steps if step not in steps]
    if unknown:
        parser.error(f"STEP: {unknown[0]!r}; accepted: {', '.join(steps)}")
    for step in options.steps or steps:
        for words in commands(step, options.out):
            print("$", shlex.join(words), flush=True)
            if not options.dry_run:
                subprocess.run(words, check=True)
        if not options.dry_run:
            for name in copy_figures(step, options.out / step):
                print(f"copied: {FIGURES / name}", flush=True)


if __name__ == "__main__":
    main()
