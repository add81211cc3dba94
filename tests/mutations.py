"""Promises that are broken on purpose: a test must fail.

    python tests/mutations.py [--only threshold --only seal]

Each mutation replaces one piece of source in a copy of the tree and runs the tests that guard the promise. Prints a
markdown table with the first test that failed; the exit code says whether every mutation was seen.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Mutation(NamedTuple):
    """One way to break a promise."""

    name: str
    promise: str
    file: str
    old: str
    new: str
    tests: str


MUTATIONS = [
    Mutation("strict threshold", "a prophet takes X iff X > threshold", "jaxbandit/instances/selection.py",
             "else offered > asked", "else offered >= asked", "tests/instances/test_selection.py"),
    Mutation("price", "a customer buys iff X >= price", "jaxbandit/instances/selection.py",
             "offered >= asked if", "offered > asked if", "tests/instances/test_selection.py"),
    Mutation("normalised", "the rewards of an episode are at most 1", "jaxbandit/instances/selection.py",
             "pay / (capacity * x.scale)", "pay / x.scale", "tests/instances/test_selection.py"),
    Mutation("optimal", "the optimal value is the best of all policies", "jaxbandit/planning.py",
             "value = jnp.max(q, axis=-1) if", "value = jnp.mean(q, axis=-1) if", "tests/test_planning.py"),
    Mutation("invalid policy", "an invalid policy is refused", "jaxbandit/checks.py",
             "np.abs(sums - 1) > 1e-5", "np.abs(sums - 1) > 1e-1", "tests/test_planning.py -k refused"),
    Mutation("points", "points of a recording are ceil(j T / count)", "jaxbandit/record.py",
             "-(-total * j // self.count)", "total * j // self.count", "tests/test_record.py"),
    Mutation("open end", "an excluded end of a range is refused", "jaxbandit/specs.py",
             "or (self.below and seen == self.high)", "", "tests/test_specs.py"),
    Mutation("taken name", "a registry refuses a name that is taken", "jaxbandit/registry.py",
             "if name in self.constructors:", "if False:", "tests/test_registry.py"),
    Mutation("seal", "a file with changed bytes is not read", "jaxbandit/results/io.py",
             "    if _seal_broken(content):", "    if False:", "tests/results/test_io.py"),
    Mutation("overwrite", "results are never overwritten in silence", "jaxbandit/results/io.py",
             "checks.choice(\"overwrite\", overwrite, (False, True))", "True", "tests/results/test_io.py"),
    Mutation("twins", "a shard cannot be merged twice", "jaxbandit/sweeps/shards.py",
             "if index in placed:", "if False:", "tests/sweeps/test_shards.py"),
    Mutation("checkpoint", "a damaged checkpoint is not used", "jaxbandit/sweeps/checkpoint.py",
             "if content[:start] != right:", "if False:", "tests/sweeps/test_checkpoint.py"),
    Mutation("finite", "a nan is never a result", "jaxbandit/sweeps/checkpoint.py",
             "not np.isfinite(array).all()", "False", "tests/sweeps/test_checkpoint.py"),
    Mutation("keys", "the key of a lane is the documented one", "jaxbandit/sweeps/lanes.py",
             "fold_in(fold_in((root[:1], root[1:]), names), numbers)", "fold_in(fold_in((root[:1], root[1:]), numbers), names)",
             "tests/sweeps/test_lanes.py -k keys"),
    Mutation("identity", "another constant is another program", "jaxbandit/xla/programs.py",
             "total = hashlib.sha256(text.encode())", "total = hashlib.sha256()", "tests/sweeps/test_identity.py"),
    Mutation("ties", "the first action wins a tie", "jaxbandit/learners/expref.py",
             "best = jnp.argmax(phi, axis=-1).astype(jnp.int32)",
             "best = (phi.shape[-1] - 1 - jnp.argmax(phi[:, ::-1], axis=-1)).astype(jnp.int32)", "tests/learners/test_expref_by_hand.py tests/learners/test_expref.py"),
    Mutation("elimination", "N keeps what is within C eps of the best", "jaxbandit/learners/expref.py",
             "keepdims=True) - slack[:, None])", "keepdims=True) - 2 * slack[:, None])", "tests/learners/test_expref_by_hand.py tests/learners/test_expref.py"),
    Mutation("bonus", "UCB-VI's bonus is scale sqrt(L / N)", "jaxbandit/learners/ucbvi.py",
             "constants.scale * jnp.sqrt(constants.log_term)", "constants.scale * constants.log_term", "tests/learners/test_ucbvi.py"),
    Mutation("schedule", "phases go on while eps > sqrt(H k A ln T / T)", "jaxbandit/theory.py",
             "np.sqrt(arms * log_t / num_episodes)", "np.sqrt(arms / num_episodes)", "tests/test_theory.py"),
    Mutation("thresholds", "C of the ordered problem has the factor H - i + 1", "jaxbandit/theory.py",
             "+ level * np.log(left + 1)", "", "tests/test_theory.py tests/test_lemmas.py"),
    Mutation("coverage", "an interval misses with its stated probability", "jaxbandit/stats/intervals.py",
             "stats.t.isf(error_rate / 2, freedom)", "stats.t.isf(error_rate, freedom)", "tests/stats/test_intervals.py"),
    Mutation("race", "a race shares its error rate among rivals", "jaxbandit/studies/tuning.py",
             "(tail < alpha / max(1, rivals))", "(tail < alpha)", "tests/studies"),
    Mutation("atomic", "a file is whole or absent", "jaxbandit/files.py",
             "if overwrite:\n            os.replace(unfinished, path)", "if overwrite:\n            path.write_bytes(content)", "tests/test_files.py tests/sweeps/test_faults.py"),
    Mutation("link", "a link in place of a checkpoint is not followed", "jaxbandit/files.py",
             'flags |= getattr(os, "O_NOFOLLOW", 0)', "pass", "tests/test_files.py tests/sweeps/test_checkpoint.py"),
]  # fmt: skip


def copy_of_the_tree(folder: Path) -> Path:
    """What the tests read, in a folder of its own; compilations are shared."""
    copy = folder / "tree"
    skipped = shutil.ignore_patterns(".git", ".jax_cache", ".venv", ".matrix", "__pycache__")
    for name in ("jaxbandit", "experiments", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=None if name == "jaxbandit" else skipped)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, copy)
    (copy / "jaxbandit" / "experiments").symlink_to(copy / "experiments")
    (ROOT / ".jax_cache").mkdir(exist_ok=True)
    (copy / ".jax_cache").symlink_to((ROOT / ".jax_cache").resolve())
    return copy


def check(mutation: Mutation, copy: Path) -> str:
    """The first test that failed; "NOT SEEN", or why it could not be tried."""
    file = copy / mutation.file
    source = file.read_text(encoding="utf-8")
    if source.count(mutation.old) != 1:
        return f"NOT TRIED: {source.count(mutation.old)} places in {mutation.file}"
    file.write_text(source.replace(mutation.old, mutation.new), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-p",
        "no:cacheprovider",
        *mutation.tests.split(),
    ]
    done = subprocess.run(command, cwd=copy, env={**os.environ, "PYTHONPATH": str(copy)},
                          capture_output=True, text=True, check=False)  # fmt: skip
    file.write_text(source, encoding="utf-8")
    if done.returncode == 1:
        failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", done.stdout, re.MULTILINE)
        return failed[0] if failed else "NOT TRIED: pytest names no test"
    return "NOT SEEN" if done.returncode == 0 else f"NOT TRIED: pytest ended with {done.returncode}"


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Break promises on purpose and see a test fail.")
    parser.add_argument("--only", action="append", choices=[each.name for each in MUTATIONS])
    only = parser.parse_args().only
    print("| mutation | promise | test that fails |\n|---|---|---|", flush=True)
    seen = True
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_of_the_tree(Path(folder))
        for mutation in MUTATIONS:
            if only is None or mutation.name in only:
                failed = check(mutation, copy)
                seen &= not failed.startswith("NOT")
                print(f"| {mutation.name} | {mutation.promise} | {failed} |", flush=True)
    return 0 if seen else 1


if __name__ == "__main__":
    sys.exit(main())
