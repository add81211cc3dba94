"""Every notebook runs top to bottom in a fresh kernel, at a small size, without warnings; outputs are not stored."""

import warnings
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
CACHE = Path(__file__).parent.parent / ".jax_cache"
SMALL = "0.02"


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request):
    return request.param


def read(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def printed(cell):
    """All text that a cell wrote, and the names of its errors."""
    return "".join(output.get("text", "") + output.get("evalue", "") for output in cell.get("outputs", []))


def test_there_are_six():
    assert [path.name[:2] for path in NOTEBOOKS] == ["01", "02", "03", "04", "05", "06"]


def test_stored_without_outputs(path):
    notebook = read(path)
    assert notebook.metadata.kernelspec.name == "python3"
    for cell in notebook.cells:
        assert cell.id
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


def test_first_cell_installs_only_where_the_package_is_missing(path):
    first, knob = [cell.source for cell in read(path).cells if cell.cell_type == "code"][:2]
    assert first.startswith("try:\n    import jaxbandit")
    assert "%pip install" in first.split("except ImportError:")[1]
    assert "JAXBANDIT_NOTEBOOK_SIZE" in knob


def test_runs_in_a_fresh_kernel(path, monkeypatch, tmp_path):
    monkeypatch.setenv("JAXBANDIT_NOTEBOOK_SIZE", SMALL)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(CACHE))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    monkeypatch.delenv("MPLBACKEND", raising=False)  # so that figures are inline, as in a notebook
    notebook = read(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the kernel's machinery; the notebook's own are looked for below
        NotebookClient(
            notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
        ).execute()
    for cell in notebook.cells:
        assert "Warning" not in printed(cell), printed(cell)
    figures = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert figures, "no figure in the output"
