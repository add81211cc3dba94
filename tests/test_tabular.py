"""Tables: every format is read back by something that is not its writer."""

import csv
import io
import re
from xml.etree import ElementTree

import pytest

from jaxbandit.tabular import FORMATS, Table, write_table

HEAD = ["learner", "final regret"]
ROWS = [["UCB-VI, c_0 = 5 %", "1,500"], ['a "b" & c', "-3 ± 2"], ["x|y", ""]]


def test_csv_is_read_back():
    assert list(csv.reader(io.StringIO(write_table(HEAD, ROWS, "csv")))) == [HEAD, *ROWS]


def test_markdown_is_read_back():
    lines = write_table(HEAD, ROWS, "markdown", right=[1]).split("\n")
    assert len({len(line) for line in lines}) == 1
    cells = [
        [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in lines
    ]
    assert [cells[0], *cells[2:]] == [HEAD, *ROWS]
    assert re.fullmatch(r"\|-+\|-+:\|", lines[1])


def test_latex_escapes_what_latex_would_read():
    text = write_table(HEAD, ROWS, "latex", right=[1])
    assert text.startswith("\\begin{tabular}{lr}\n  \\toprule\n  learner")
    assert text.endswith("\\bottomrule\n\\end{tabular}")
    assert text.count("\\\\") == 4
    assert re.search(r"UCB-VI, c\\_0 = 5 \\% +& +1,500 \\\\", text)
    assert 'a "b" \\& c' in text
    assert "$\\pm$" in text


def test_text_aligns_to_either_side():
    assert write_table(["a", "b"], [["1", "10"], ["333", "2"]], right=[1]) == (
        "a     b\n1    10\n333   2"
    )


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_without_rows_has_its_head(format):
    assert "learner" in write_table(HEAD, [], format)


def test_errors_name_what_is_accepted():
    with pytest.raises(ValueError, match="format: 'html'; accepted: text, markdown, latex, csv"):
        write_table(HEAD, ROWS, "html")
    with pytest.raises(ValueError, match="has 1 cells; accepted: 2"):
        write_table(HEAD, [["alone"]])
    with pytest.raises(
        ValueError, match="format: 'pdf'; accepted: text, markdown, latex, csv, html"
    ):
        Table(HEAD, ROWS).to("pdf")


def test_html_is_read_back():
    table = Table(HEAD, [*ROWS, ["<b>&", "1"]], right=(1,), note="a < b")
    read = ElementTree.fromstring(f"<div>{table._repr_html_()}</div>")
    assert [[cell.text or "" for cell in row] for row in read.iter("tr")] == [
        HEAD,
        *ROWS,
        ["<b>&", "1"],
    ]
    assert read.find("p").text == "a < b"
    assert str(table).endswith("\na < b")
