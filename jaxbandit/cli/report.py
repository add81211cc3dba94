"""Self-contained HTML pages, without scripts: of results (`make_report`), and of everything there is (`make_gallery`).

`make_report` takes a folder of an experiment (as ``jaxbandit run`` leaves it: figures and tables
are taken as they are) or a single file of results (its regret is plotted and tabulated).
"""

from __future__ import annotations

import base64
import html
import inspect
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxbandit import checks
from jaxbandit.cli.commands import refuse_existing
from jaxbandit.description import (
    Entry,
    Parameter,
    describe,
    entries,
    names,
    paragraphs,
    small_instance,
)
from jaxbandit.experiment import experiments_folder, final_table, load_experiment
from jaxbandit.files import read_file, regular_files, write_atomically
from jaxbandit.plotting.figures import read_about
from jaxbandit.results.axes import RUNS, check_axes, described
from jaxbandit.tabular import Table

if TYPE_CHECKING:
    from xarray import Dataset

LARGEST = 2**26
"""Bytes of a figure or a table that are put into the page."""
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; }
body { max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.3rem; margin-top: 2.2rem; border-bottom: 1px solid #ccc; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 0.3rem; } figure { margin: 0.6rem 0 1.4rem; }
img { max-width: 100%; display: block; margin: 0 auto; }
figcaption { color: #595959; font-size: 0.85rem; margin-top: 0.4rem; }
nav { font-size: 0.9rem; line-height: 1.6; }
table { border-collapse: collapse; font-size: 0.88rem; margin: 0.8rem 0; }
th, td { border: 1px solid #ccc; padding: 0.2rem 0.6rem; text-align: left; vertical-align: top; }
th { background: #f2f2f2; }
pre { overflow-x: auto; background: #f7f7f7; padding: 0.8rem; font-size: 0.82rem; }
.note { color: #595959; font-size: 0.9rem; } details { margin: 0.5rem 0; }
""".strip()

MOST_FIGURES = 4
"""Of one experiment."""


def make_report(
    results: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
) -> Path:
    """Writes the page and returns its path; by default report.html in the folder, or FILE.html
    beside a file.

    Example:
        >>> make_report("nowhere")
        Traceback (most recent call last):
        ...
        ValueError: results: nowhere does not exist; accepted: a folder or a .nc file written by jaxbandit run
    """
    source = Path(results)
    datasets = read_results(source)
    beside = source / "report.html" if source.is_dir() else source.with_suffix(".html")
    target = beside if out is None else Path(out)
    refuse_existing("out", [target], overwrite)
    figures, tables = [], {}
    if source.is_dir():
        figures = read_figures(source)
        for file in regular_files(source, "*.md", "*.txt"):
            tables[file.name] = read_file(file, limit=LARGEST).decode("utf-8", "replace")
    figures = figures or [_picture(label, dataset) for label, dataset in datasets.items()]
    tables = tables or {label: final_table({label: dataset}) for label, dataset in datasets.items()}
    title = source.resolve().name if source.is_dir() else source.stem
    target.parent.mkdir(parents=True, exist_ok=True)
    content = page(title, figures, tables, datasets).encode("utf-8")
    try:
        write_atomically(target, content, overwrite=overwrite)
    except FileExistsError:  # another process was faster
        refuse_existing("out", [target], overwrite)
    return target


class Picture(NamedTuple):
    """A figure of the page."""

    name: str
    data: bytes
    """A PNG."""
    title: str = ""
    caption: str = ""

    def html(self) -> str:
        """The heading, the picture and its caption."""
        title = self.title or self.name.replace("_", " ")
        caption = f"{self.name}: {self.caption}" if self.caption else self.name
        heading = html.escape(title[:1].upper() + title[1:])
        return f"<h3>{heading}</h3>\n{_figure(self.name, self.data, caption)}"


def _figure(name: str, data: bytes, caption: str) -> str:
    return f"<figure>{image(name, data)}<figcaption>{html.escape(caption)}</figcaption></figure>"


def read_figures(folder: Path) -> list[Picture]:
    """The figures of a folder: those of its experiment in their order, then the others by name."""
    found = []
    for file in regular_files(folder, "*.png"):
        data = read_file(file, limit=LARGEST)
        about = read_about(data)
        number = re.match(r"figure (\d+) of ", about.get("Comment", ""))
        picture = Picture(file.stem, data, about.get("Title", ""), about.get("Description", ""))
        found.append((int(number[1]) if number else 10**6, picture))
    return [picture for _, picture in sorted(found, key=lambda each: each[0])]


def read_results(source: Path) -> dict[str, Dataset]:
    """The datasets of a folder or of a file, by label; a folder may hold tables alone."""
    accepted = "a folder or a .nc file written by jaxbandit run"
    if not source.exists():
        raise ValueError(f"results: {source} does not exist; accepted: {accepted}")
    if not source.is_dir():
        return {source.stem: _read(source)}
    files = regular_files(source, "*.nc")
    if not files and not list(source.glob("*.md")):
        raise ValueError(f"results: {source} holds no .nc files; accepted: {accepted}")
    return {file.stem: _read(file) for file in files}


def _read(file: Path) -> Dataset:
    """The results of a sweep; anything else is refused, before somebody draws it."""
    from jaxbandit.results import load

    checks.printable("results", file.stem)
    dataset = load(file)
    try:
        if "regret" not in dataset:
            raise ValueError("no regret")
        if missing := set(RUNS) - {"parameter", *dataset["regret"].dims}:
            raise ValueError(f"no {sorted(missing)[0]}")
        check_axes(dataset)
    except ValueError as error:
        accepted = "a .nc file written by jaxbandit run"
        text = f"results: {file} does not have what a sweep gives ({error}); accepted: {accepted}"
        raise ValueError(text) from None
    for name in ("config", "versions"):
        described(dataset, name)
    return dataset


def page(
    title: str,
    figures: Sequence[Picture],
    tables: Mapping[str, str],
    datasets: Mapping[str, Dataset],
) -> str:
    """The page as text.

    Example:
        >>> "<h1>results &amp; more</h1>" in page("results & more", [], {"a.md": "| x |\\n|---|\\n| 1 |"}, {})
        True
    """
    body = [f"<h1>{html.escape(title)}</h1>"]
    versions: dict[str, dict[str, None]] = {}
    if datasets:
        dates = sorted(str(each.attrs.get("created", "unknown")) for each in datasets.values())
        period = " to ".join(dict.fromkeys([dates[0], dates[-1]]))
        body.append(f'<p class="note">Results of {html.escape(period)}.</p>')
    for dataset in datasets.values():  # normally of the same versions
        for name, version in described(dataset, "versions").items():
            versions.setdefault(name, {})[str(version)] = None
    sections = {
        "Figures": [figure.html() for figure in figures],
        "Tables": [
            f"<h3>{html.escape(Path(name).stem)}</h3>\n{text_to_html(text)}"
            for name, text in tables.items()
        ],
        "Configuration": [_configuration(*each) for each in datasets.items()],
        "Versions": [_facts(("software", "version"), versions)] if datasets else [],
    }
    for heading, parts in sections.items():
        body += [f"<h2>{heading}</h2>", *parts] if parts else []
    return _document(title, body)


def _document(title: str, body: Sequence[str]) -> str:
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title>\n<style>\n{STYLE}\n</style>'
    inside = "\n".join(body)
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{inside}\n</body>\n</html>\n'


def text_to_html(text: str) -> str:
    """Paragraphs and tables of markdown, or aligned text as it is.

    Example:
        >>> text_to_html("| a |\\n|---|\\n| < |")
        "<table><tr><th style='text-align:left'>a</th></tr><tr><td style='text-align:left'>&lt;</td></tr></table>"
    """
    if "\n|--" not in text:
        return f"<pre>{html.escape(text)}</pre>"
    parts = []
    for block in text.strip().split("\n\n"):
        lines = block.split("\n")
        if block.startswith("|"):
            parts.append(Table(_cells(lines[0]), list(map(_cells, lines[2:]))).to("html"))
        else:
            parts.append(f"<p>{html.escape(' '.join(lines))}</p>")
    return "\n".join(parts)


def _cells(line: str) -> list[str]:
    inside = line.strip().removeprefix("|").removesuffix("|")
    return [re.sub(r"\\([|<\[])", r"\1", cell.strip()) for cell in re.split(r"(?<!\\)\|", inside)]


def image(name: str, data: bytes) -> str:
    """A PNG inside the page."""
    encoded = base64.b64encode(data).decode("ascii")
    return f'<img alt="{html.escape(name)}" src="data:image/png;base64,{encoded}">'


def _picture(label: str, dataset: Dataset) -> Picture:
    """The regret."""
    from jaxbandit.plotting import plot_regret

    drawn = plot_regret(dataset, inset=True)
    return Picture(label, _png(drawn, 150), f"regret of {label}", drawn.caption)


def _png(drawn: Any, dpi: int) -> bytes:
    buffer = io.BytesIO()
    drawn.figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def _configuration(label: str, dataset: Dataset) -> str:
    config = described(dataset, "config")
    names = ("num_episodes", "num_seeds", "seed", "devices")
    sizes = {name: config[name] for name in names if isinstance(config.get(name), int)}
    rows = {f"{axis}s": list(map(str, dataset[axis].values)) for axis in ("learner", "instance")}
    rows["sizes"] = [f"{name} {size:,}" for name, size in sizes.items()]
    return (
        f"<h3>{html.escape(label)}</h3>\n{_facts(('setting', 'value'), rows)}\n<details><summary>everything</summary>\n"
        f"<pre>{html.escape(json.dumps(config, indent=1))}</pre></details>"
    )


def _facts(head: tuple[str, str], rows: Mapping[str, Iterable[str]]) -> str:
    """A table of names and what they are."""
    return Table(head, [(name, ", ".join(values)) for name, values in rows.items()]).to("html")


def make_gallery(
    out: str | os.PathLike[str],
    results: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
) -> Path:
    """Writes the page and returns its path.

    Args:
        out: the file, which ends in .html.
        results: a folder of results (results/NAME/*.png, as ``jaxbandit run`` leaves them) whose
            figures are shown; without it, those that come with the sources, if they are there.
        overwrite: replace the file if it exists.

    Example:
        >>> make_gallery("gallery.txt")
        Traceback (most recent call last):
        ...
        ValueError: gallery: gallery.txt; accepted: a file name that ends in .html
    """
    target = Path(out)
    if target.suffix not in (".html", ".htm"):
        raise ValueError(f"gallery: {target}; accepted: a file name that ends in .html")
    refuse_existing("gallery", [target], overwrite)
    folder = None if results is None else Path(results)
    if folder is not None and not folder.is_dir():
        accepted = "a folder of folders written by jaxbandit run"
        raise ValueError(f"results: {folder}; accepted: {accepted}")
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, gallery_page(folder).encode())
    return target


def gallery_page(results: Path | None = None) -> str:
    """The page as text."""
    import jaxbandit

    listed = {
        "experiment": sorted(names("experiment"), key=lambda name: name != "prophet"),
        "instance": sorted(names("instance"), key=_use),
        "learner": names("learner"),
        "feedback": names("feedback"),
        "API": list(jaxbandit.__all__),
    }
    body = [f"<h1>jaxbandit {html.escape(jaxbandit.__version__)}</h1>", "<nav>"]
    parts = []
    for kind, found in listed.items():
        title = kind if kind in ("feedback", "API") else f"{kind}s"
        links = []
        parts.append(f'<h2 id="{title}">{title}</h2>')
        for name in found:
            shown, place = html.escape(name), f"{kind}-{html.escape(name)}"
            links.append(f'<a href="#{place}">{shown}</a>')
            parts.append(f'<h3 id="{place}">{shown}</h3>')
            parts += [_public(name)] if kind == "API" else _described(name, kind, results)
        body.append(f'<p><a href="#{title}"><b>{title}</b></a>: {" · ".join(links)}</p>')
    return _document("jaxbandit", [*body, "</nav>", *parts])


def _use(name: str) -> tuple[bool, bool]:
    """Prophet problems come first, the families of lower bounds last."""
    return name.startswith("hard-"), not name.startswith("prophet")


def _described(name: str, kind: str, results: Path | None) -> Iterator[str]:
    """What a name means, and its picture."""
    for entry in describe(name, kind).entries:
        yield entry.body()
    if kind == "instance":
        from jaxbandit.plotting import plot_instance

        mdp, parameters = small_instance(name)
        drawn = plot_instance(mdp, title=f"{name}: {mdp!r}")
        yield image(name, _png(drawn, 110))
        shown = ", ".join(f"{key}={value}" for key, value in parameters.items())
        yield f'<p class="note">here: {html.escape(shown)}</p>'
    elif kind == "experiment":
        experiment, pictures = load_experiment(name), figures_of(name, results)
        for file in pictures[:MOST_FIGURES]:
            data = file.read_bytes()
            meaning = experiment.outputs.get(file.name, file.stem)
            caption = read_about(data).get("Description", "")
            yield _figure(file.stem, data, f"{meaning}. {caption}" if caption else meaning)
        if not pictures and experiment.figures is not None:
            yield f'<p class="note">no figure here yet: jaxbandit run {html.escape(name)}</p>'


def figures_of(name: str, results: Path | None) -> list[Path]:
    """The figures of an experiment: of the results, else those that come with the sources.

    Example:
        >>> figures_of("prophet", Path("nowhere"))
        []
    """
    if results is not None:
        return sorted((results / name).glob("*.png"))
    folder = experiments_folder() / "figures"
    listed = [folder / file for file in load_experiment(name).outputs]
    return [file for file in listed if file.suffix == ".png" and file.exists()]


def _public(name: str) -> str:
    """A public name of the package: first paragraph, signature, arguments."""
    import jaxbandit

    thing: Any = getattr(jaxbandit, name)
    is_function = inspect.isfunction(thing) or hasattr(thing, "__wrapped__")
    call = f"{name}{inspect.signature(thing)}" if is_function else f"jaxbandit.{name}"
    meanings = entries(thing) if callable(thing) else {}
    rows = tuple(Parameter(each, "", text) for each, text in meanings.items())
    summary = paragraphs(inspect.getdoc(thing) or "")[0]
    return Entry(name, "API", summary, call, parameters=rows).body()
