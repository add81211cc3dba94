"""Figures on disk: png, svg, pdf, eps and pgf, whole or absent, the same bytes for the same figure."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit.checks import accept
from jaxbandit.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf", "eps", "pgf")
USUAL_FORMATS = ("png", "svg", "pdf")
"""Those of a path without a suffix; eps knows no transparency, and pgf needs LaTeX."""
FILE_SETTINGS: dict[Any, Any] = {"pdf.fonttype": 42, "svg.hashsalt": "jaxbandit"}
MATHEMATICS = re.compile(r"(?<!\\)\$[^$]*\$")
COMMANDS = re.compile(r"[\\{}#&~$]")
"""What LaTeX takes for more than a letter; matplotlib itself takes care of %, _ and ^."""


def save_figure(
    figure: Any,
    path: str | os.PathLike,
    formats: Sequence[str] | None = None,
    dpi: int = 200,
    about: Mapping[str, str] | None = None,
) -> list[pathlib.Path]:
    """Writes a figure to ``path`` in each format and returns the files; folders are made as needed.

    A path that ends in .png, .svg, .pdf, .eps or .pgf gives that format (unless ``formats`` says
    otherwise), a path without a suffix png, svg and pdf; any other suffix is refused. Each file is
    written aside and renamed, so a reader never sees half a file. Files carry no date: the same
    commands give the same files. A png, svg or pdf has the caption of a `Drawn` as its Description;
    ``about`` adds to it, such as {"Title": "Regret"}, in png files.

    Example:
        >>> import tempfile
        >>> from matplotlib.figure import Figure
        >>> figure = Figure((2, 2))
        >>> [file.name for file in save_figure(figure, tempfile.mkdtemp() + "/folder/name")]
        ['name.png', 'name.svg', 'name.pdf']
        >>> save_figure(figure, "name.jpg")
        Traceback (most recent call last):
        ...
        ValueError: path: name.jpg ends in '.jpg'; accepted: png, svg, pdf, eps, pgf, or no suffix
    """
    import matplotlib

    caption = getattr(figure, "caption", "")
    figure = figure.figure if hasattr(figure, "axes") and hasattr(figure, "data") else figure
    files = files_of(path, formats)
    if any(file.suffix == ".pgf" for file in files):
        _check_latex(str(matplotlib.rcParams["pgf.texsystem"]))
        check_texts(figure)
    written = []
    for file in files:
        form = file.suffix[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        described = {"Description": caption} if caption else {}
        facts: dict[str, Any] = {
            "png": {**described, **(about or {})},
            "svg": {"Date": None, **described},
            "pdf": {"CreationDate": None, **({"Subject": caption} if caption else {})},
            "eps": {"CreationDate": None},
        }
        content = io.BytesIO()
        opaque = _opaque(figure) if form == "eps" else contextlib.nullcontext()
        with matplotlib.rc_context(FILE_SETTINGS), opaque:
            figure.savefig(content, format=form, dpi=dpi, metadata=facts.get(form))
        try:
            write_atomically(file, content.getvalue())
        except OSError as error:
            raise OSError(error.errno, f"cannot write the figure to {file}: {error}") from error
        written.append(file)
    return written


def read_about(data: bytes) -> dict[str, str]:
    """What a png file says about itself: "Description", "Title" and the like, as `save_figure` wrote
    them; nothing if it is no png.

    Example:
        >>> read_about(b"no picture")
        {}
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            return {str(key): str(value) for key, value in getattr(image, "text", {}).items()}
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return {}


def files_of(path: str | os.PathLike, formats: Sequence[str] | None = None) -> list[pathlib.Path]:
    """The files that `save_figure` writes for a path.

    Example:
        >>> [str(file) for file in files_of("a/name.svg")]
        ['a/name.svg']
    """
    path = pathlib.Path(path)
    suffix = path.suffix[1:].lower()
    # "k=0.5" has a dot, too: only what looks like the name of a file type is taken for one
    if suffix in FORMATS:
        formats = [suffix] if formats is None else formats
        path = path.with_suffix("")
    elif suffix.isalpha():
        raise ValueError(
            f"path: {path.name} ends in {path.suffix!r}; accepted: {', '.join(FORMATS)}, or no suffix"
        )
    for form in formats or ():
        accept("formats", form, FORMATS)
    return [path.with_name(f"{path.name}.{form}") for form in formats or USUAL_FORMATS]


def check_texts(figure: Figure) -> None:
    """An error if LaTeX, through which a pgf file goes, would read a name as commands."""
    from matplotlib.text import Text

    figure.draw_without_rendering()  # ticks get their texts when they are drawn
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        found = COMMANDS.search(MATHEMATICS.sub("", text.get_text()))
        if found:
            raise ValueError(
                f"formats: 'pgf' is LaTeX, and {text.get_text()!r} in this figure has the character {found[0]!r}; "
                "accepted: names without \\ { } # & ~ $ (names= gives others), or another format"
            )


def _check_latex(program: str) -> None:
    if shutil.which(program) is None:
        raise ValueError(
            f"formats: 'pgf' needs LaTeX ({program}), which is not installed here; "
            f"accepted without it: {', '.join(form for form in FORMATS if form != 'pgf')}"
        )


@contextlib.contextmanager
def _opaque(figure: Figure) -> Iterator[None]:
    """Transparent areas in the colour that they have on white: PostScript knows no transparency."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgb

    changed: list[tuple[Any, Any, Any]] = []
    for area in figure.findobj(PolyCollection):
        share, colors = area.get_alpha(), np.asarray(area.get_facecolor())
        if share is not None and 0 <= share < 1 and len(colors):
            changed.append((area, share, colors))
            red, green, blue = (1 - share * (1 - part) for part in to_rgb(tuple(colors[0][:3])))
            area.set_alpha(None)
            area.set_facecolor((red, green, blue))
    try:
        yield
    finally:
        for area, share, colors in changed:
            area.set_facecolor(colors)
            area.set_alpha(share)
