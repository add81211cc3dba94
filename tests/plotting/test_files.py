"""Suffixes that are refused, eps without transparency, pgf only with LaTeX, windows in scripts."""

import numpy as np
import pytest
from synthetic_sweep import synthetic_sweep

import jaxbandit as jb
from jaxbandit.plotting import figures as files


@pytest.fixture(scope="module")
def drawn():
    return jb.plot_regret(synthetic_sweep())


@pytest.mark.parametrize("name", ["x.jpg", "x.csv", "x.PNGS"])
def test_unknown_suffixes_are_refused(drawn, name, tmp_path):
    with pytest.raises(ValueError, match="accepted: png, svg, pdf, eps, pgf, or no suffix"):
        drawn.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_dots_in_names_are_no_suffixes():
    assert [file.name for file in files.files_of("k=0.5", ["png"])] == ["k=0.5.png"]
    assert [file.name for file in files.files_of("a.v2")] == ["a.v2.png", "a.v2.svg", "a.v2.pdf"]


def test_eps_has_bands_in_the_colour_they_have_on_white(drawn, tmp_path, recwarn):
    areas = drawn.axes.collections
    before = [(area.get_alpha(), np.array(area.get_facecolor())) for area in areas]
    (file,) = drawn.save(tmp_path / "x.eps")
    assert file.read_bytes().startswith(b"%!PS-Adobe")
    for area, (alpha, color) in zip(areas, before, strict=True):
        assert area.get_alpha() == alpha
        np.testing.assert_allclose(area.get_facecolor(), color)
    with files._opaque(drawn.figure):
        assert all(area.get_alpha() in (None, 1, 0.75) for area in areas)


def test_pgf_needs_latex(drawn, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda program: None)
    with pytest.raises(ValueError, match="'pgf' needs LaTeX"):
        drawn.save(tmp_path / "x.pgf")


@pytest.mark.parametrize("name", [r"\input{/etc/passwd}", "cost $5", "a & b", "#1"])
def test_pgf_refuses_names_that_latex_would_run(name, monkeypatch, tmp_path):
    """LaTeX is asked for the size of every text, so a name that is a command would be run."""
    monkeypatch.setattr("shutil.which", lambda program: "/usr/bin/latex")
    ds = synthetic_sweep().assign_coords(learner=[name, "OrderedExpRef", "UCB-VI"])
    for figure in (jb.plot_regret(ds), jb.plot_final(ds)):  # at the end of a curve, at a tick
        with pytest.raises(ValueError, match=r"'pgf' is LaTeX, and .* in this figure has the"):
            figure.save(tmp_path / "x.pgf")
    assert not list(tmp_path.iterdir())


def test_pgf_takes_what_we_write_ourselves(drawn):
    files.check_texts(drawn.figure)


def test_show_opens_a_window_or_says_why_not(drawn, monkeypatch):
    with pytest.raises(RuntimeError, match="no display"):
        drawn.show()
    from matplotlib import pyplot

    shown = []
    fresh = jb.plot_regret(synthetic_sweep())
    monkeypatch.setattr("matplotlib.get_backend", lambda: "tkagg")
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(pyplot.gcf().canvas.manager))
    fresh.show()
    assert shown[0].canvas.figure is fresh.figure
    pyplot.close("all")


def test_short_reprs(drawn):
    assert repr(drawn) == "Drawn(1 panel, 4.6 x 3.1 in: ExpRef, OrderedExpRef, UCB-VI)"
    panels = jb.plot_panels(synthetic_sweep(("I1", "I2")))
    assert repr(panels).startswith("Drawn(2 panels, ")
    assert len(repr(panels)) < 120
