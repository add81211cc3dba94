"""Every notebook runs top to bottom in a fresh kernel, at a small size, without warnings; what is
stored in it are text and small pictures, made by `store_notebooks.py`."""

import base64
import builtins
import os
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
    return "".join(
        output.get("text", "") + output.get("evalue", "") for output in cell.get("outputs", [])
    )


def test_there_are_seven():
    assert [path.name[:2] for path in NOTEBOOKS] == ["00", "01", "02", "03", "04", "05", "06"]


def test_stored_with_small_pictures_and_nothing_else(path):
    notebook = read(path)
    assert notebook.metadata.kernelspec.name == "python3"
    outputs = [each for cell in notebook.cells for each in cell.get("outputs", [])]
    pictures = [each.data["image/png"] for each in outputs if "image/png" in each.get("data", {})]
    assert pictures, "no figure is stored: python tests/store_notebooks.py"
    assert max(len(base64.b64decode(picture)) for picture in pictures) < 100_000
    assert path.stat().st_size < 600_000
    for output in outputs:
        assert output.output_type != "error"
        assert output.get("name") != "stderr"
        text = "".join([output.get("text", ""), *map(str, output.get("data", {}).values())])
        if "image/png" not in output.get("data", {}):
            assert not any(place in text for place in ("/tmp/", "/home/", "/root/", os.getcwd()))
    assert all(cell.id for cell in notebook.cells)


def test_first_cell_installs_only_where_the_package_is_missing(path):
    first, knob = [cell for cell in read(path).cells if cell.cell_type == "code"][:2]
    assert first.metadata.jupyter.source_hidden  # one folded line
    tried, otherwise = first.source.split("except ImportError:")
    assert tried.endswith("try:\n    import jaxbandit as jb\n")
    assert "%pip install --quiet {sources[0]} {keep}" in otherwise
    assert "JAXBANDIT_NOTEBOOK_SIZE" in knob.source


def test_no_package_index_is_asked_for_the_name(path, monkeypatch, tmp_path):
    """Without a wheel or a checkout the first cell stops; with a wheel it installs that file."""
    first = next(cell for cell in read(path).cells if cell.cell_type == "code")
    asked = first.source.replace(
        "%pip install --quiet {sources[0]} {keep}", "installed(sources[0])"
    )
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    loaded, usual = [], builtins.__import__

    def missing(name, *rest, **more):
        if name == "jaxbandit" and not loaded:
            raise ImportError(name)
        return usual(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(SystemExit, match="put its wheel beside this notebook"):
        exec(asked, {"installed": loaded.append})
    Path("jaxbandit-0.1.0-py3-none-any.whl").touch()
    exec(asked, {"installed": loaded.append})
    assert [str(file) for file in loaded] == ["jaxbandit-0.1.0-py3-none-any.whl"]


def test_runs_in_a_fresh_kernel(path, monkeypatch, tmp_path):
    monkeypatch.setenv("JAXBANDIT_NOTEBOOK_SIZE", SMALL)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(CACHE))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    monkeypatch.delenv("MPLBACKEND", raising=False)  # so that figures are inline, as in a notebook
    notebook = read(path)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # those of the kernel's machinery; the notebook's own are looked for below
        NotebookClient(
            notebook,
            timeout=300,
            kernel_name="python3",
            resources={"metadata": {"path": str(tmp_path)}},
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
