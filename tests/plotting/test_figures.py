"""Palette, numbers on axes, labels that do not overlap, files."""

import numpy as np
import pytest
from matplotlib.text import Text
from synthetic_sweep import clipped_texts

from jaxbandit.plotting import figures


def test_learners_of_the_paper_have_fixed_styles():
    alone = {name: figures.styles([name])[name] for name in ("ExpRef", "OrderedExpRef", "UCB-VI")}
    assert figures.styles(["Mine", "UCB-VI", "OrderedExpRef", "ExpRef"]).items() >= alone.items()
    assert len({style.color for style in alone.values()}) == 3
    assert len({str(style.line) for style in alone.values()}) == 3


def test_variants_and_others_are_told_apart():
    names = [f"UCB-VI, bonus_scale = {scale}" for scale in (0.1, 0.5, 1)] + [
        "UCB-VI",
        "a",
        "b",
        "c",
    ]
    given = figures.styles(names)
    assert len(set(map(str, given.values()))) == len(names)
    assert given["UCB-VI"] == figures.styles(["UCB-VI"])["UCB-VI"]
    assert list(given) == names


def test_numbers_on_axes():
    values = [0, 0.25, 900, 12_500, 500_000, 2_500_000, 3e9, -2000]
    assert [figures.compact(v) for v in values] == [
        "0", "0.25", "900", "12.5k", "0.5M", "2.5M", r"$3\times 10^{9}$", "-2k",
    ]  # fmt: skip


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
    ends = [
        figures.End(f"a learner with number {j}", 1000.0, 98.0 + j / 2, "black") for j in range(4)
    ]
    figures.label_ends(ax, ends)
    assert clipped_texts(figure) == []
    boxes = [Text.get_window_extent(text) for text in ax.texts]
    for j, box in enumerate(boxes):
        assert not any(box.y0 < other.y1 - 2 and other.y0 < box.y1 - 2 for other in boxes[:j])
    assert max(ax.get_xticks()) <= 1000


def test_labels_outside_the_axes_are_left_out():
    _, (ax,) = figures.new_figure((3, 2))
    figures.label_ends(
        ax, [figures.End("above", 1.0, 99.0, "black"), figures.End("nowhere", 1.0, np.nan, "black")]
    )
    assert not ax.texts


def test_files_in_three_formats_and_folders_made(tmp_path):
    figure, _ = figures.new_figure((2, 2))
    files = figures.save_figure(figure, tmp_path / "new" / "folder" / "name.v2")
    assert [file.name for file in files] == ["name.v2.png", "name.v2.svg", "name.v2.pdf"]
    heads = [file.read_bytes()[:5] for file in files]
    assert heads == [b"\x89PNG\r", b"<?xml", b"%PDF-"]
    assert sorted(file.name for file in files[0].parent.iterdir()) == sorted(
        file.name for file in files
    )


def test_suffix_or_formats_choose_the_format(tmp_path):
    figure, _ = figures.new_figure((2, 2))
    assert [f.name for f in figures.save_figure(figure, tmp_path / "a.svg")] == ["a.svg"]
    assert [f.name for f in figures.save_figure(figure, tmp_path / "b.png", ["pdf"])] == ["b.pdf"]
    drawn = figures.Drawn(figure, None, {})
    assert [f.name for f in figures.save_figure(drawn, str(tmp_path / "c"), ["png"])] == ["c.png"]
    assert [f.name for f in drawn.save(tmp_path / "d.pdf")] == ["d.pdf"]
    with pytest.raises(ValueError, match="formats: 'jpeg'; accepted: png, svg, pdf"):
        figures.save_figure(figure, tmp_path / "e", ["jpeg"])


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
    import matplotlib.pyplot as plt

    managed = plt.figure()
    try:
        assert figures.Drawn(managed, None, {})._repr_png_() is None
    finally:
        plt.close(managed)


def test_latex_is_refused_for_all_texts():
    import matplotlib
    from synthetic_sweep import synthetic_sweep

    import jaxbandit as jb

    with (
        matplotlib.rc_context({"text.usetex": True}),
        pytest.raises(ValueError, match=r"text\.usetex'\]: True; accepted: False"),
    ):
        jb.plot_regret(synthetic_sweep())
