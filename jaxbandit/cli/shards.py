"""Shards of an experiment on disk: where ``run --shard i/n`` leaves them and what ``merge`` makes of them.

    DIR/shards/<label>.<i>-of-<n>.nc      one file per sweep and shard; machines write nothing else
    DIR/checkpoints/<label>.<i>-of-<n>/   their checkpoints, whose finished lanes ``run --resume`` takes over
    DIR/<label>.nc                        all of them together, as a single run would have left it

A sweep that depends on earlier results can only run when those are merged, so it has shards of its own
in a second round: run the shards, merge, run the shards again (what is merged is read), merge.
"""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path

from jaxbandit.files import read_file, regular_files, write_atomically
from jaxbandit.results import load, save
from jaxbandit.sweeps.shards import check_shard, merge

FOLDER = "shards"
_NAME = re.compile(r"(?P<label>.+)\.(?P<index>\d+)-of-(?P<count>\d+)\.nc")


def parse_shard(text: str) -> tuple[int, int]:
    """ "3/20" as (3, 20).

    Example:
        >>> parse_shard("3/20")
        (3, 20)
        >>> parse_shard("20/3")
        Traceback (most recent call last):
        ...
        ValueError: shard: (20, 3); accepted: (i, n), whole numbers with 1 <= i <= n
    """
    found = re.fullmatch(r"\s*(\d+)\s*/\s*(\d+)\s*", str(text))
    if found is None:
        raise ValueError(f"shard: {text!r}; accepted: i/n, such as 3/20")
    return check_shard((int(found[1]), int(found[2])))


def shard_path(folder: str | os.PathLike[str], label: str, shard: tuple[int, int]) -> Path:
    """Where the results of a sweep's shard go.

    Example:
        >>> shard_path("results/prophet", "I1", (3, 20)).as_posix()
        'results/prophet/shards/I1.03-of-20.nc'
    """
    index, count = check_shard(shard)
    return Path(folder) / FOLDER / f"{label}.{index:0{len(str(count))}}-of-{count}.nc"


def find_shards(folder: str | os.PathLike[str]) -> dict[str, list[Path]]:
    """The shards in a folder by the label of their sweep, in order."""
    found: dict[str, list[Path]] = {}
    for file in regular_files(Path(folder) / FOLDER, "*.nc"):
        named = _NAME.fullmatch(file.name)
        if named is not None:
            found.setdefault(named["label"], []).append(file)
    return found


def gather_checkpoints(folder: str | os.PathLike[str], label: str) -> None:
    """Copies what the shards of a sweep have finished into the checkpoint of the whole, which then has only the rest to run.

    Files are named after their lanes, so that those of different shards never meet.
    """
    checkpoints = Path(folder) / "checkpoints"
    for file in regular_files(checkpoints, f"{glob.escape(label)}.*-of-*/done-*.jbk"):
        target = checkpoints / label / file.name
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            write_atomically(target, read_file(file))


def merge_folder(folder: str | os.PathLike[str], *, overwrite: bool = False) -> dict[str, Path]:
    """Merges the shards of every sweep in a folder and writes ``DIR/<label>.nc``; the files by label.

    Nothing is written unless every sweep has all its shards.

    Example:
        >>> merge_folder("nowhere")
        Traceback (most recent call last):
        ...
        ValueError: folder: nowhere holds no shards; accepted: a folder in which run --shard i/n wrote some
    """
    folder = Path(folder)
    shards = find_shards(folder)
    if not shards:
        raise ValueError(
            f"folder: {folder} holds no shards; accepted: a folder in which run --shard i/n wrote some"
        )
    targets = {label: folder / f"{label}.nc" for label in shards}
    there = [path.name for path in targets.values() if path.exists()]
    if there and not overwrite:
        raise FileExistsError(
            f"folder: {folder} holds {', '.join(there)} already; --overwrite replaces them"
        )
    whole = {}
    for label, files in shards.items():
        try:
            whole[label] = merge([load(file) for file in files])
        except ValueError as error:
            raise ValueError(f"{label}: {error}") from error
    return {label: save(whole[label], path, overwrite=True) for label, path in targets.items()}
