"""A report as Markdown, or as one self-contained HTML page without network access or scripts.

The page is well-formed XML too. Its Content-Security-Policy forbids whatever could load something.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from iopstui import __version__
from iopstui.report import markup
from iopstui.report.content import comparison, story_blocks
from iopstui.report.drawing.charts import Scales
from iopstui.report.markup import Block, Text
from iopstui.report.story import Story
from iopstui.report.wording import recording as words
from iopstui.text import printable

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def markdown(stories: Sequence[Story]) -> str:
    """One recording after the other; of several, what they have in common stands first."""
    blocks = [*comparison(stories, None)] if len(stories) > 1 else []
    blocks += [block for story in stories for block in story_blocks(story, None)]
    return markdown_of(blocks, _names(stories))


def markdown_of(content: Iterable[Block], made_from: str) -> str:
    """The text of these blocks."""
    blocks = [*content, _origin(made_from)]
    return "\n".join(markup.markdown(blocks))


def html_page(stories: Sequence[Story]) -> str:
    """The page of one recording, or of several side by side on the same scales."""
    title = "iopstui: " + " / ".join(words.heading(story) for story in stories)
    scales = Scales(stories)
    # of more than two each has the whole width
    sides = "two" if len(stories) == 2 else "one"
    body = [*markup.html(comparison(stories, scales))] if len(stories) > 1 else []
    body.append(f'<div class="sides {sides}">')
    for story in stories:
        body += ["<section>", *markup.html(story_blocks(story, scales)), "</section>"]
    return html_of(title, [*body, "</div>"], _names(stories))


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


def _names(stories: Sequence[Story]) -> str:
    return ", ".join(printable(story.path.name) for story in stories)


def _origin(made_from: str) -> Text:
    return Text(f"Made by iopstui {__version__} from {made_from}.", "dim")
