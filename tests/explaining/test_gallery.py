"""The page of everything: it parses, holds every name and picture, and needs nothing from outside."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import matplotlib.image
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.explaining.describing import names
from jaxbandit.explaining.gallery import figures_of, gallery_page, make_gallery

QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
VOID = {"meta", "img", "br", "hr"}


class Checker(HTMLParser):
    """Every element is closed, and nothing is loaded from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.pictures, self.ids, self.links = [], {}, [], []

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


@pytest.fixture(scope="module")
def page():
    return gallery_page()


def test_everything_is_on_the_page(page):
    checker = Checker()
    checker.feed(page)
    assert not checker.open
    assert set(names("instance")) <= set(checker.pictures)
    for kind in ("instance", "learner", "experiment", "feedback"):
        assert {f"{kind}-{name}" for name in names(kind)} <= set(checker.ids)
    assert all(link[1:] in checker.ids for link in checker.links)
    assert all(src.startswith("data:image/png;base64,") for src in checker.pictures.values())
    for name in jb.__all__:
        assert f"API-{name}" in checker.ids
    assert "prophet_practical" in checker.pictures  # the figures of the sources


def test_files_and_mistakes(tmp_path, page, monkeypatch):
    monkeypatch.setattr("jaxbandit.explaining.gallery.gallery_page", lambda results: page)
    target = make_gallery(tmp_path / "new" / "g.html")
    assert target.read_text(encoding="utf-8") == page
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
def test_a_browser_draws_every_picture(tmp_path, page):
    """In a headless Chromium: the page is laid out, and its pictures are decoded (none is empty)."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    assert browser is not None, "needs a Chromium (Debian's package chromium)"
    check = (
        "<script>window.onload = () => { document.title = 'drawn ' + "
        "[...document.images].filter(i => i.naturalWidth > 50).length + ' of ' + "
        "document.images.length + ', high ' + document.body.scrollHeight; }</script>"
    )
    file = tmp_path / "g.html"
    file.write_text(page.replace("</head>", f"{check}</head>"), encoding="utf-8")
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
    picture = tmp_path / "page.png"
    window = ["--window-size=1000,2000", f"--screenshot={picture}"]
    subprocess.run([*words, *window, file.as_uri()], capture_output=True, timeout=120, check=True)
    pixels = matplotlib.image.imread(picture)[..., :3]
    # not a blank page: white paper, black text, and the colours of the first instance's picture
    assert pixels.shape[:2] == (2000, 1000)
    assert len(np.unique(np.round(pixels[::4, ::4].reshape(-1, 3), 1), axis=0)) > 20
