"""The pages of results and of everything: they parse, hold everything, and need nothing from outside."""

import base64
import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser

import matplotlib.image
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

import jaxbandit as jb
from jaxbandit.cli.report import (
    figures_of,
    gallery_page,
    make_gallery,
    make_report,
    page,
    read_figures,
    text_to_html,
)
from jaxbandit.description import names
from jaxbandit.experiment import markdown_table

VOID = {"meta", "img", "br", "hr"}
TINY_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Checker(HTMLParser):
    """Collects text, pictures, ids and links; every element is closed, and nothing is loaded from elsewhere."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.pictures, self.ids, self.links = [], [], {}, [], []
        self.feed(text)
        assert self.open == []
        assert all(src.startswith("data:image/png;base64,") for src in self.pictures.values())

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "img":
            self.pictures[given["alt"]] = given["src"]
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        assert tag not in ("script", "link", "iframe")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def dataset():
    regret = np.ones((2, 1, 3, 1)) * np.arange(1.0, 6.0)
    config = {"num_episodes": 50, "num_seeds": 3, "seed": 7, "learners": {"A & B": "<tag>"}}
    return xr.Dataset(
        {"regret": (("learner", "instance", "seed", "episode"), regret)},
        coords={
            "learner": ["A & B", "UCB-VI"],
            "instance": ["I1"],
            "episode": np.arange(10, 60, 10),
        },
        attrs={
            "config": json.dumps(config),
            "versions": json.dumps({"jax": "9.9", "python": "3.14"}),
            "created": "2031-02-03T04:05:06+00:00",
        },
    )


def check_self_contained(text):
    checker = Checker(text)
    assert checker.links == []
    assert "http" not in text
    return checker


def test_report_of_a_folder_takes_its_figures_and_tables(tmp_path):
    jb.save(dataset(), tmp_path / "sweep.nc")
    (tmp_path / "figure.png").write_bytes(TINY_PNG)
    (tmp_path / "table.md").write_text(
        markdown_table(["a", "b"], [["1", "x < y"]]), encoding="utf-8"
    )
    path = make_report(tmp_path)
    assert path == tmp_path / "report.html"
    checker = check_self_contained(path.read_text(encoding="utf-8"))
    words = " ".join(checker.text)
    assert base64.b64decode(checker.pictures["figure"].split(",")[1]) == TINY_PNG
    for wanted in ("x < y", "A & B, UCB-VI", "num_episodes 50", "9.9", "2031-02-03", '"<tag>"'):
        assert wanted in words
    with pytest.raises(FileExistsError, match="--overwrite"):
        make_report(tmp_path)
    assert make_report(tmp_path, overwrite=True) == path


def test_own_figures_come_first_with_headings_and_captions(tmp_path):
    """What a figure shows is in its file, so that later plots do not push it away."""
    drawn = jb.plot_regret(dataset())
    drawn.save(tmp_path / "z.png", about={"Title": "second", "Comment": "figure 2 of mine"})
    drawn.save(tmp_path / "y.png", about={"Title": "the figure", "Comment": "figure 1 of mine"})
    drawn.save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"no picture")
    assert [p.name for p in read_figures(tmp_path)] == ["y", "z", "a", "b"]
    (tmp_path / "b.png").unlink()
    jb.save(dataset(), tmp_path / "sweep.nc")
    words = make_report(tmp_path).read_text(encoding="utf-8")
    assert (
        words.index("<h3>The figure</h3>")
        < words.index("<h3>Second</h3>")
        < words.index("<h3>A</h3>")
    )
    assert words.count(f"<figcaption>y: {drawn.caption}") == 1


def test_report_of_a_single_file_draws_and_tabulates(tmp_path):
    jb.save(dataset(), tmp_path / "sweep.nc")
    path = make_report(tmp_path / "sweep.nc", tmp_path / "deep" / "page.html")
    checker = check_self_contained(path.read_text(encoding="utf-8"))
    assert len(checker.pictures) == 1
    assert "regret after 50 episodes" in " ".join(checker.text)


def test_report_refuses_what_is_not_results(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        make_report(tmp_path / "nothing")
    with pytest.raises(ValueError, match=r"holds no \.nc files"):
        make_report(tmp_path)
    (tmp_path / "bad.nc").write_text("text")
    with pytest.raises(ValueError, match="not readable"):
        make_report(tmp_path / "bad.nc")


def test_text_that_is_no_table_stays_as_it_is():
    assert text_to_html("a  b\n1  2") == "<pre>a  b\n1  2</pre>"
    mixed = text_to_html("A note\non two lines.\n\n| a |\n|---|\n| 1 |")
    assert mixed.startswith("<p>A note on two lines.</p>\n<table>")
    Checker(page("title", [], {"x.md": mixed}, {}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda ds: ds.drop_vars("regret"), r"what a sweep gives \(no regret\)"),
        (lambda ds: ds.drop_vars("learner"), r"what a sweep gives \(ds: learners without names"),
        (
            lambda ds: ds.assign_coords(learner=[1, 2]),
            r"what a sweep gives \(ds: learner 1; accepted: names",
        ),
        (
            lambda ds: ds.assign_coords(learner=["A", "A"]),
            r"what a sweep gives \(ds: learner 'A' twice",
        ),
        (lambda ds: ds.isel(seed=slice(0, 0)), r"what a sweep gives \(ds: no seed"),
        (lambda ds: ds.assign_attrs(config="[]"), r"config: '\[\]'; accepted: what a sweep writes"),
        (lambda ds: ds.assign_attrs(config="[" * 10**5), r"config: .*accepted: what a sweep"),
        (lambda ds: ds.assign_attrs(versions=3), r"versions: '3'; accepted: what a sweep writes"),
    ],
)
def test_what_is_no_sweep_is_refused_before_it_is_drawn(tmp_path, change, message):
    file = jb.save(change(dataset()), tmp_path / "run.nc")
    with pytest.raises(ValueError, match=message):
        make_report(file)
    assert [path.name for path in tmp_path.iterdir()] == ["run.nc"]


def test_only_regular_files_inside_the_folder_get_into_the_page(tmp_path, capsys):
    """A folder from somewhere else: links to files outside, pipes and devices."""
    folder, secret = tmp_path / "results", tmp_path / "secret"
    folder.mkdir()
    secret.write_text("the secret")
    jb.save(dataset(), folder / "whole.nc")
    (folder / "mine.md").write_text("| a |\n|---|\n| in |")
    for name in ("a.md", "a.txt", "a.png", "a.nc"):
        (folder / name).symlink_to(secret)
    (folder / "b.png").symlink_to("/dev/zero")
    for name in ("c.png", "c.nc", "c.txt"):
        os.mkfifo(folder / name)
    text = make_report(folder).read_text()
    assert "whole" in text
    assert "the secret" not in text
    assert base64.b64encode(b"the secret").decode()[:10] not in text
    assert capsys.readouterr().err.count("is not read: not a regular file") == 8
    target = folder / "outside.html"
    (folder / "report.html").unlink()
    (folder / "report.html").symlink_to(target)
    with pytest.raises(FileExistsError, match=r"report\.html exists"):
        make_report(folder)
    assert not target.exists()


QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="module")
def gallery():
    return gallery_page()


def test_everything_is_on_the_page(monkeypatch):
    """The pictures themselves are drawn in `tests/plotting/test_states.py`."""
    tiny = Figure((1, 1))
    drawn = type("Drawn", (), {"figure": tiny})
    monkeypatch.setattr("jaxbandit.plotting.plot_instance", lambda *a, **b: drawn, raising=False)
    checker = Checker(gallery_page())
    assert set(names("instance")) <= set(checker.pictures)
    for kind in ("instance", "learner", "experiment", "feedback"):
        assert {f"{kind}-{name}" for name in names(kind)} <= set(checker.ids)
    assert {f"API-{name}" for name in jb.__all__} <= set(checker.ids)
    assert all(link[1:] in checker.ids for link in checker.links)
    assert "prophet_practical" in checker.pictures  # the figures of the sources


def test_files_and_mistakes(tmp_path, monkeypatch):
    monkeypatch.setattr("jaxbandit.cli.report.gallery_page", lambda results: "the page")
    target = make_gallery(tmp_path / "new" / "g.html")
    assert target.read_text(encoding="utf-8") == "the page"
    with pytest.raises(FileExistsError, match="exists"):
        make_gallery(target)
    with pytest.raises(ValueError, match=r"ends in \.html"):
        make_gallery(tmp_path / "g.txt")
    with pytest.raises(ValueError, match=r"results: .*nowhere"):
        make_gallery(tmp_path / "h.html", tmp_path / "nowhere")
    (tmp_path / "prophet").mkdir()
    (tmp_path / "prophet" / "mine.png").touch()
    assert [file.name for file in figures_of("prophet", tmp_path)] == ["mine.png"]


@pytest.mark.slow
def test_a_browser_draws_every_picture(tmp_path, gallery):
    """In a headless Chromium: the gallery is laid out, and its pictures are decoded (none is empty)."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    assert browser is not None, "needs a Chromium (Debian's package chromium)"
    check = (
        "<script>window.onload = () => { document.title = 'drawn ' + "
        "[...document.images].filter(i => i.naturalWidth > 50).length + ' of ' + "
        "document.images.length + ', high ' + document.body.scrollHeight; }</script>"
    )
    file = tmp_path / "g.html"
    file.write_text(gallery.replace("</head>", f"{check}</head>"), encoding="utf-8")
    words = [browser, *QUIET, f"--user-data-dir={tmp_path / 'profile'}"]
    show = subprocess.run(
        [*words, "--dump-dom", file.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    drawn, pictures, high = map(
        int, re.search(r"drawn (\d+) of (\d+), high (\d+)", show.stdout).groups()
    )
    assert drawn == pictures >= len(names("instance"))
    assert high > 5000
    picture = tmp_path / "gallery.png"
    window = ["--window-size=1000,2000", f"--screenshot={picture}"]
    subprocess.run([*words, *window, file.as_uri()], capture_output=True, timeout=120, check=True)
    pixels = matplotlib.image.imread(picture)[..., :3]
    # not a blank gallery: white paper, black text, and the colours of the first instance's picture
    assert pixels.shape[:2] == (2000, 1000)
    assert len(np.unique(np.round(pixels[::4, ::4].reshape(-1, 3), 1), axis=0)) > 20
