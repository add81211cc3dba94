"""One self-contained page of everything there is: instances with their pictures, learners with their
parameters, experiments with their figures, and the public names. It is generated, never written.
"""

from __future__ import annotations

import html
import inspect
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jaxbandit.experiment import load_experiment
from jaxbandit.experiment.catalogue import experiments_folder
from jaxbandit.experiment.report import STYLE, image
from jaxbandit.explaining.describing import describe, names
from jaxbandit.explaining.docstrings import as_html, entries, paragraphs
from jaxbandit.explaining.examples import small_instance
from jaxbandit.files import write_atomically
from jaxbandit.plotting.files import read_about

SECTIONS = ("experiments", "instances", "learners", "feedback", "API")
MOST_FIGURES = 4
"""Of one experiment."""


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
    if target.exists() and not overwrite:
        raise FileExistsError(f"gallery: {target} exists; give another name, or --overwrite")
    if results is not None and not Path(results).is_dir():
        raise ValueError(
            f"results: {results}; accepted: a folder of folders written by jaxbandit run"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, gallery_page(None if results is None else Path(results)).encode())
    return target


def gallery_page(results: Path | None = None) -> str:
    """The page as text."""
    import jaxbandit

    listed = {
        "experiments": sorted(names("experiment"), key=lambda name: name != "prophet"),
        "instances": sorted(names("instance"), key=_use),
        "learners": names("learner"),
        "feedback": names("feedback"),
        "API": list(jaxbandit.__all__),
    }
    kinds = {"experiments": "experiment", "instances": "instance", "learners": "learner"}
    body = [f"<h1>jaxbandit {html.escape(jaxbandit.__version__)}</h1>", "<nav>"]
    for section, entries_of in listed.items():
        links = " · ".join(
            f'<a href="#{kinds.get(section, section)}-{html.escape(name)}">{html.escape(name)}</a>'
            for name in entries_of
        )
        body.append(f'<p><a href="#{section}"><b>{section}</b></a>: {links}</p>')
    body.append("</nav>")
    parts = {
        "experiments": _experiments(listed["experiments"], results),
        "instances": _instances(listed["instances"]),
        "learners": _described("learner"),
        "feedback": _described("feedback"),
        "API": _api(),
    }
    for section, lines in parts.items():
        body += [f'<h2 id="{section}">{section}</h2>', *lines]
    head = f'<meta charset="utf-8"><title>jaxbandit</title>\n<style>\n{STYLE}\n</style>'
    inside = "\n".join(body)
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{inside}\n</body>\n</html>\n'


def _use(name: str) -> tuple[bool, bool]:
    """Prophet problems come first, the families of lower bounds last."""
    return name.startswith("hard-"), not name.startswith("prophet")


def _instances(listed: Sequence[str]) -> Iterator[str]:
    from jaxbandit.plotting import plot_instance

    for name in listed:
        mdp, parameters = small_instance(name)
        shown = ", ".join(f"{key}={value}" for key, value in parameters.items())
        buffer = io.BytesIO()
        plot_instance(mdp, title=f"{name}: {mdp!r}").figure.savefig(buffer, format="png", dpi=110)
        yield from _entries(name, "instance")
        yield image(name, buffer.getvalue())
        yield f'<p class="note">here: {html.escape(shown)}</p>'


def _described(kind: str) -> Iterator[str]:
    for name in names(kind):
        yield from _entries(name, kind)


def _entries(name: str, kind: str) -> Iterator[str]:
    yield f'<h3 id="{kind}-{html.escape(name)}">{html.escape(name)}</h3>'
    for entry in describe(name, kind).entries:
        yield entry.body()


def _experiments(listed: Sequence[str], results: Path | None) -> Iterator[str]:
    for name in listed:
        yield from _entries(name, "experiment")
        pictures = figures_of(name, results)
        for file in pictures[:MOST_FIGURES]:
            caption = read_about(file.read_bytes()).get("Description", "")
            meaning = load_experiment(name).outputs.get(file.name, file.stem)
            told = html.escape(f"{meaning}. {caption}" if caption else meaning)
            yield f"<figure>{image(file.stem, file.read_bytes())}<figcaption>{told}</figcaption></figure>"
        if not pictures and load_experiment(name).figures is not None:
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


def _api() -> Iterator[str]:
    import jaxbandit

    for name in jaxbandit.__all__:
        thing: Any = getattr(jaxbandit, name)
        first = paragraphs(inspect.getdoc(thing) or "")[0]
        yield f'<h3 id="API-{html.escape(name)}">jaxbandit.{html.escape(name)}</h3>'
        if inspect.isfunction(thing) or hasattr(thing, "__wrapped__"):
            yield f"<p><code>{html.escape(f'{name}{inspect.signature(thing)}')}</code></p>"
        yield f"<p>{as_html(first)}</p>"
        told = entries(thing) if callable(thing) else {}
        if told:
            rows = "".join(
                f"<tr><td><code>{html.escape(key)}</code></td><td>{as_html(text)}</td></tr>"
                for key, text in told.items()
            )
            yield f"<table>{rows}</table>"
