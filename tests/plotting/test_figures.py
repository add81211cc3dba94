"""Palette, numbers on axes, labels that do not overlap; files of all formats, and windows in scripts."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.text import Text
from synthetic_sweep import clipped_texts, synthetic_sweep

import jaxbandit as jb
from jaxbandit.plotting import figures


def test_learners_of_the_paper_have_fixed_styles():
    alone = {name: figures.styles([name])[name] for name in ("ExpRef", "OrderedExpRef", "UCB-VI")}
    assert figures.styles(["Mine", "UCB-VI", "OrderedExpRef", "ExpRef"]).items() >= alone.items()
    assert len({style.color for style in alone.values()}) == 3
    assert len({str(style.line) for style in alone.values()}) == 3


def test_variants_and_others_are_told_apart():
    names = [*(f"UCB-VI, bonus_scale = {scale}" for scale in (0.1, 0.5, 1)), "UCB-VI", *"abc"]
    given = figures.styles(names)
    assert len(set(map(str, given.values()))) == len(names)
    assert given["UCB-VI"] == figures.styles(["UCB-VI"])["UCB-VI"]
    assert list(given) == names


def test_labels_are_spread_in_order_and_no_more_than_needed():
    free = [10.0, 50.0, 90.0]
    assert figures._spread(free, 10, 0, 100) == free
    placed = figures._spread([50.0, 49.0, 51.0, 90.0], 10, 0, 100)
    np.testing.assert_allclose(placed, [50.0, 40.0, 60.0, 90.0])
    low = figures._spread([1.0, 2.0], 10, 0, 100)
    assert low[0] >= 5
    assert low[1] - low[0] >= 10 - 1e-9


@pytest.mark.parametrize("log", [False, True])
def test_labels_at_line_ends_fit_and_do_not_overlap(log):
    figure, (ax,) = figures.new_figure((3.3, 2.4))
    figures.number_axis(ax, "x", 10.0, 1000.0, log)
    figures.number_axis(ax, "y", 1.0, 100.0, log)
    end = figures.End("a learner with number 3", 1000.0, 98.0, "black")
    ends = [end._replace(y=98.0 + j / 2) for j in range(4)]
    figures.label_ends(ax, ends)
    assert clipped_texts(figure) == []
    boxes = [Text.get_window_extent(text) for text in ax.texts]
    for j, box in enumerate(boxes):
        assert not any(box.y0 < other.y1 - 2 and other.y0 < box.y1 - 2 for other in boxes[:j])
    assert max(ax.get_xticks()) <= 1000


def test_labels_outside_the_axes_are_left_out():
    _, (ax,) = figures.new_figure((3, 2))
    figures.label_ends(ax, [figures.End("no", 1.0, y, "black") for y in (99.0, np.nan)])
    assert not ax.texts


@pytest.fixture(scope="module")
def drawn():
    return jb.plot_regret(synthetic_sweep())


HEADS = {"png": b"\x89PNG\r", "svg": b"<?xml", "pdf": b"%PDF-"}


def test_suffix_or_formats_choose_the_format(drawn, tmp_path):
    """Without either three formats; folders are made."""
    files = drawn.save(tmp_path / "new" / "folder" / "name.v2")
    assert {file.name: file.read_bytes()[:5] for file in files} == {
        f"name.v2.{form}": head for form, head in HEADS.items()
    }
    assert sorted(files[0].parent.iterdir()) == sorted(files)
    for name, formats, expected in [
        ("a.svg", None, "a.svg"),
        ("b.png", ["pdf"], "b.pdf"),
        ("c", ["png"], "c.png"),
        ("k=0.5", ["png"], "k=0.5.png"),
    ]:
        for what in (drawn, drawn.figure):
            assert [f.name for f in figures.save_figure(what, str(tmp_path / name), formats)] == [expected]  # fmt: skip
    with pytest.raises(ValueError, match="formats: 'jpeg'; accepted: png, svg, pdf"):
        drawn.save(tmp_path / "e", ["jpeg"])
    for name in ("x.jpg", "x.csv", "x.PNGS"):
        with pytest.raises(ValueError, match="accepted: png, svg, pdf, eps, pgf, or no suffix"):
            drawn.save(tmp_path / name)


def test_files_are_reproducible_and_a_failed_write_leaves_the_old_one(tmp_path, monkeypatch):
    files = []
    for _ in range(2):
        figure, (ax,) = figures.new_figure((2, 2))
        ax.plot([1, 2], label="line")
        files.append([file.read_bytes() for file in figures.save_figure(figure, tmp_path / "a")])
    assert files[0] == files[1]

    def fails(path, **_):
        path.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(figure, "savefig", fails)
    with pytest.raises(OSError, match="disk full"):
        figures.save_figure(figure, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == files[0][0]
    assert len(list(tmp_path.iterdir())) == 3


def test_notebooks_show_own_figures_and_not_those_of_pyplot():
    figure, _ = figures.new_figure((2, 2))
    assert figures.Drawn(figure, None, {})._repr_png_()[:4] == b"\x89PNG"
    managed = plt.figure()
    try:
        assert figures.Drawn(managed, None, {})._repr_png_() is None
    finally:
        plt.close(managed)


def test_latex_is_refused_for_all_texts():
    with (
        plt.rc_context({"text.usetex": True}),
        pytest.raises(ValueError, match=r"text\.usetex'\]: True; accepted: False"),
    ):
        jb.plot_regret(synthetic_sweep())


def test_eps_has_bands_in_the_colour_they_have_on_white(drawn, tmp_path, recwarn):
    areas = drawn.axes.collections
    before = [(area.get_alpha(), np.array(area.get_facecolor())) for area in areas]
    (file,) = drawn.save(tmp_path / "x.eps")
    assert file.read_bytes().startswith(b"%!PS-Adobe")
    for area, (alpha, color) in zip(areas, before, strict=True):
        assert area.get_alpha() == alpha
        np.testing.assert_allclose(area.get_facecolor(), color)
    with figures._opaque(drawn.figure):
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
    figures.check_texts(drawn.figure)


def test_show_opens_a_window_or_says_why_not(drawn, monkeypatch):
    with pytest.raises(RuntimeError, match="no display"):
        drawn.show()
    shown, fresh = [], jb.plot_regret(synthetic_sweep())
    monkeypatch.setattr("matplotlib.get_backend", lambda: "tkagg")
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gcf().canvas.manager))
    fresh.show()
    assert shown[0].canvas.figure is fresh.figure
    plt.close("all")


def test_short_reprs(drawn):
    assert repr(drawn) == "Drawn(1 panel, 4.6 x 3.1 in: ExpRef, OrderedExpRef, UCB-VI)"
    panels = jb.plot_panels(synthetic_sweep(("I1", "I2")))
    assert repr(panels).startswith("Drawn(2 panels, ")
    assert len(repr(panels)) < 120
