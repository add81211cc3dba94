"""Builds the documentation as static pages: the READMEs, the notebooks and an API reference from docstrings.

pip install ".[docs]" && python .github/docs.py [FOLDER]      # FOLDER: site

Open FOLDER/index.html in a browser; nothing is fetched from elsewhere.
"""

import html
import re
import shutil
import sys
from pathlib import Path

import markdown2
import pdoc
from nbconvert import HTMLExporter

import jaxbandit

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    "README.md", "jaxbandit/README.md", "experiments/README.md", "experiments/bench/README.md",
    "notebooks/README.md", "tests/README.md", ".github/CONTRIBUTING.md",
]  # fmt: skip
MODULES = [
    f"jaxbandit.{name}"
    for name in [
        "feedback",
        "instances",
        "learner",
        "learners",
        "learners.bandits",
        "learners.phased_bandits",
        "metrics",
        "planning",
        "plotting",
        "record",
        "results",
        "stats",
        "studies",
        "testing",
        "theory",
    ]
]
FORWARD = re.compile(
    r"""<span class="n\w?">ForwardRef</span><span class="p">\(</span><span class="s1">'([^']*)'</span><span class="p">\)</span>"""
)
"""The type of a field of a NamedTuple, as Python keeps it."""
STYLE = """
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; color: #222 }
nav { border-bottom: 1px solid #ddd; padding-bottom: .5rem; margin-bottom: 1.5rem } nav a { margin-right: 1rem }
pre { background: #f6f8fa; padding: .8rem; overflow-x: auto } code { font-size: .9em } img { max-width: 100% }
table { border-collapse: collapse; display: block; overflow-x: auto } td, th { border: 1px solid #ddd; padding: .3rem .6rem }
"""


def target(name: str) -> str:
    """Where a README's page is: README.md -> index.html, experiments/README.md -> experiments/index.html."""
    page = name.replace(".github/CONTRIBUTING.md", "contributing/README.md")
    return page.replace("README.md", "index.html")


def page(name: str, titles: dict[str, str]) -> str:
    """A README as a page; links between READMEs lead to their pages, links to code to the API."""
    text = (ROOT / name).read_text(encoding="utf-8")
    body = markdown2.markdown(text, extras=["tables", "fenced-code-blocks", "header-ids"])
    up = "../" * target(name).count("/")
    body = re.sub(r'href="([^"#]*)README\.md', r'href="\1index.html', body)
    body = body.replace(".github/CONTRIBUTING.md", "contributing/index.html")
    links = "".join(f'<a href="{up}{target(n)}">{html.escape(t)}</a>' for n, t in titles.items())
    links += f'<a href="{up}api/jaxbandit.html">API</a>'
    head = f"<meta charset='utf-8'><meta name='viewport' content='width=device-width'><title>{titles[name]}</title>"
    return f"<!doctype html>{head}<style>{STYLE}</style><nav>{links}</nav>{body}"


def build(folder: Path) -> None:
    """Writes all pages into the folder, replacing what an earlier build left."""
    shutil.rmtree(folder, ignore_errors=True)
    titles = {name: re.search(r"^# (.*)", (ROOT / name).read_text(), re.M)[1] for name in PAGES}
    for name in PAGES:
        out = folder / target(name)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(page(name, titles), encoding="utf-8")
    shutil.copytree(ROOT / "experiments" / "figures", folder / "experiments" / "figures")
    exporter = HTMLExporter()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        text, _ = exporter.from_filename(str(path))
        (folder / "notebooks" / f"{path.stem}.html").write_text(text, encoding="utf-8")
    pdoc.render.configure(docformat="google", search=True)
    for name in jaxbandit.__all__:  # loaded on first use, which pdoc does not wait for
        setattr(jaxbandit, name, getattr(jaxbandit, name))
    pdoc.pdoc("jaxbandit", *MODULES, output_directory=folder / "api")
    for path in (folder / "api").rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        path.write_text(FORWARD.sub(r'<span class="n">\1</span>', text), encoding="utf-8")


if __name__ == "__main__":
    build(Path(sys.argv[1] if len(sys.argv) > 1 else "site"))
