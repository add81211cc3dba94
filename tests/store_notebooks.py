"""Runs the notebooks at their own size and stores what they print and draw; by hand, after a change:

    python tests/store_notebooks.py [01 04 ...]

Kept are text and one PNG for each figure; what goes to standard error (warnings, progress) is not.
"""

import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
KEPT = ("image/png", "text/plain", "text/html", "text/markdown")


def stored(output):
    """The output as it is kept, or None."""
    if output.output_type == "stream":
        return output if output.name == "stdout" else None
    data = {kind: output.data[kind] for kind in KEPT if kind in output.get("data", {})}
    if "image/png" in data:  # the picture says it all
        data = {"image/png": data["image/png"], "text/plain": data.get("text/plain", "")}
    output.data, output.metadata = data, {}
    return output if data else None


def main(wanted):
    """Runs those whose names begin so, or all."""
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(NOTEBOOKS.parent / ".jax_cache"))
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if wanted and not path.name.startswith(tuple(wanted)):
            continue
        start = time.perf_counter()
        notebook = nbformat.read(path, as_version=4)
        here = {"metadata": {"path": str(NOTEBOOKS)}}
        NotebookClient(notebook, timeout=1200, kernel_name="python3", resources=here).execute()
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # when it ran
            if cell.cell_type == "code":
                cell.outputs = [kept for each in cell.outputs if (kept := stored(each)) is not None]
        notebook.metadata.pop("widgets", None)
        notebook.metadata.language_info = {"name": "python"}
        nbformat.write(notebook, path)
        print(f"{path.name}: {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
