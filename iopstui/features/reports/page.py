"""A report as Markdown, or as one self-contained HTML page without network access or scripts.

The page is well-formed XML too. Its Content-Security-Policy forbids whatever could load something.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from iopstui import __version__
from iopstui.features.reports import markup
from iopstui.features.reports.content import comparison, report_blocks
from iopstui.features.reports.drawing.charts import Scales
from iopstui.features.reports.markup import Block, Text
from iopstui.features.reports.report_data import ReportData
from iopstui.features.reports.wording import recording as words
from iopstui.text import printable

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def markdown(reports: Sequence[ReportData]) -> str:
    """One recording after the other; of several, what they have in common stands first."""
    blocks = [*comparison(reports, None)] if len(reports) > 1 else []
    blocks += [block for data in reports for block in report_blocks(data, None)]
    return markdown_of(blocks, _names(reports))


def markdown_of(content: Iterable[Block], made_from: str) -> str:
    """The text of these blocks."""
    blocks = [*content, _origin(made_from)]
    return "\n".join(markup.markdown(blocks))


def html_page(reports: Sequence[ReportData]) -> str:
    """The page of one recording, or of several side by side on the same scales."""
    title = "iopstui: " + " / ".join(words.heading(data) for data in reports)
    scales = Scales(reports)
    # of more than two each has the whole width
    sides = "two" if len(reports) == 2 else "one"
    body = [*markup.html(comparison(reports, scales))] if len(reports) > 1 else []
    body.append(f'<div class="sides {sides}">')
    for data in reports:
        body += ["<section>", *markup.html(report_blocks(data, scales)), "</section>"]
    return html_of(title, [*body, "</div>"], _names(reports))


def html_of(title: str, body: Sequence[str], made_from: str) -> str:
    """A whole page with these lines in its body."""
    style = (files("iopstui") / "data" / "report.css").read_text("utf-8")
    lines = [
        "<!DOCTYPE html>", '<html lang="en">', "<head>", '<meta charset="utf-8"/>',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}"/>',
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
        f"<title>{escape(title)}</title>", f"<style>{style}</style>", "</head>", "<body>",
        *body, *markup.html([_origin(made_from)]), "</body>", "</html>",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _names(reports: Sequence[ReportData]) -> str:
    return ", ".join(printable(data.path.name) for data in reports)


def _origin(made_from: str) -> Text:
    return Text(f"Made by iopstui {__version__} from {made_from}.", "dim")
