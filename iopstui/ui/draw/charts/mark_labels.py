"""The labels of a chart's marks, over its plot, in one or more rows used in turn.

A label that does not fit is shortened to its change ("rq_affinity 2", "1 → 2"), then to its value
("QD 32": "32"), a sentence to its first words, and at last to an arrow. Words are never cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.cells import cell_len

from iopstui.ui.draw.rows import Line, Row
from iopstui.ui.draw.style import MARK, Charset

ARROW = "▾"


def mark_label_rows(
    marks: Sequence[tuple[int, str]], axis: int, columns: int, width: int, rows: int,
    charset: Charset, means: Mapping[int, str],
) -> list[Row]:  # fmt: skip
    """``rows`` lines of ``width`` cells; a mark is (column, label) in a plot of ``columns`` columns
    that starts at ``axis``. Marks are ordered by column; ``means`` are the figures measured after a
    mark, by column."""
    lines = [Line(width, charset).fill_to(axis) for _ in range(rows)]
    for index, (column, label) in enumerate(marks):
        # rows are used in turn: a label may extend to the next mark of its row
        following = marks[index + rows][0] if index + rows < len(marks) else columns
        turn_lines = [lines[(index + n) % rows] for n in range(rows)]
        last = index + rows >= len(marks)
        for start, text in _label_texts(axis + column, label, last, means.get(column, "")):
            before = start < axis + column
            end, gap = axis + (columns if before else following), 2 if before else 0
            fits = (
                o for o in turn_lines if o.used + gap <= start and start + cell_len(text) <= end
            )
            line = next(fits, None)
            if line is not None:
                line.fill_to(start).add(text, MARK)
                break
    return [line.build() for line in lines]


def _label_texts(start: int, label: str, last: bool, mean: str) -> Iterator[tuple[int, str]]:
    """Texts to try, the most informative first; the last label may be left of its arrow."""
    texts: list[str] = []
    for text in (label, *_shorter_values(label)):
        texts += (f"{text}: {mean}", text) if mean else (text,)
    for text in dict.fromkeys(texts):
        yield start, ARROW + text
        if last:
            yield start - cell_len(text), text + ARROW
    yield start, ARROW


def _shorter_values(text: str) -> list[str]:
    """The values of changed options; for other text, its first words."""
    parts = [part.replace("=", " ").split() for part in text.split(",")]
    if all(len(part) <= 2 or "→" in part or "->" in part for part in parts):
        values = " ".join(part[-1] for part in parts if part)
        changed = len(parts) == 1 and len(parts[0]) > 3
        return [f"{parts[0][0]} {values}", " ".join(parts[0][1:]), values] if changed else [values]
    first = text.split()
    return [" ".join(first[:count]) + "…" for count in (5, 3, 2, 1) if count < len(first)]
