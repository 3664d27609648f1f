"""Screens as an SVG animation that uses only CSS: it loads nothing and runs no script.

A part of a row that is equal on successive screens is written once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from rich.color import ColorTriplet
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import TerminalTheme

CELL_W, CELL_H, FONT = 8.4, 17.0, 14
MARGIN = 10.0
PARTS = 4
"""Number of parts of a row: a change in one part does not repeat the others."""
GAP = 3
"""Up to this many blanks take less space than another text element."""
Run = tuple[int, str, str]
"""Column, text, CSS of its style."""
Part = tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """Part ``place`` (row, part of the row), equal from screen ``first`` to the one before
    ``after``."""

    place: tuple[int, int]
    first: int
    after: int
    part: Part


def parts(row: Sequence[Segment], width: int, theme: TerminalTheme) -> list[Part]:
    """A row of a screen, cut into ``PARTS``; blanks without a background are left out."""
    part_width = -(-width // PARTS)
    part_runs: list[list[Run]] = [[] for _ in range(PARTS)]
    column = 0
    for text, style, _ in row:
        css = css_of(style, theme)
        for char in text:
            if column < width and (char != " " or "background" in css):
                runs = part_runs[column // part_width]
                last = runs[-1] if runs else None
                gap = column - last[0] - len(last[1]) if last is not None else GAP + 1
                if last is not None and last[2] == css and gap <= GAP:
                    runs[-1] = (last[0], last[1] + " " * gap + char, css)
                else:
                    runs.append((column, char, css))
            column += 1
    return [tuple(runs_of_part) for runs_of_part in part_runs]


def css_of(style: Style | None, theme: TerminalTheme) -> str:
    """CSS of a style; starts with "background:" if it has a background."""
    if style is None:
        return ""
    rules = []
    has_colour = style.color is not None and not style.color.is_default
    colour = (
        style.color.get_truecolor(theme) if has_colour and style.color else theme.foreground_color
    )
    behind = theme.background_color
    if style.bgcolor is not None and not style.bgcolor.is_default:
        behind = style.bgcolor.get_truecolor(theme)
    if style.reverse:
        rules.append(f"background:{_hex(colour)};fill:{_hex(behind)}")
    elif tuple(behind) != tuple(theme.background_color):
        rules.append(f"background:{_hex(behind)};fill:{_hex(colour)}")
    elif has_colour:
        rules.append(f"fill:{_hex(colour)}")
    rules += ["font-weight:bold"] * bool(style.bold) + ["opacity:.6"] * bool(style.dim)
    return ";".join(rules)


def _hex(colour: ColorTriplet) -> str:
    return ColorTriplet(*colour).hex


def find_spans(screens: Sequence[Sequence[Sequence[Part]]]) -> list[Span]:
    """Every part of every row with the range of screens on which it is equal. All screens have
    the same number of rows."""
    spans: list[Span] = []
    for row in range(len(screens[0])):
        for at in range(PARTS):
            first = 0
            for screen in range(1, len(screens) + 1):
                part = screens[first][row][at]
                if screen < len(screens) and screens[screen][row][at] == part:
                    continue
                if part:
                    spans.append(Span((row, at), first, screen, part))
                first = screen
    return spans


def svg(
    screens: Sequence[Sequence[Sequence[Part]]],
    width: int,
    seconds: float,
    theme: TerminalTheme,
    title: str,
) -> str:
    """The animation: each screen for ``seconds``, over and over."""
    spans = find_spans(screens)
    classes = {css: f"c{n}" for n, css in enumerate(dict.fromkeys(_styles(spans)))}
    ranges = dict.fromkeys((span.first, span.after) for span in spans)
    moves = {
        screen_range: f"k{n}"
        for n, screen_range in enumerate(ranges)
        if screen_range != (0, len(screens))
    }
    wide = 2 * MARGIN + width * CELL_W
    high = 2 * MARGIN + len(screens[0]) * CELL_H
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:.0f} {high:.0f}"'
        f' role="img"><title>{escape(title)}</title><style>',
        f"text{{font:{FONT}px monospace;fill:{_hex(theme.foreground_color)};white-space:pre}}",
        *(f".{name}{{{css}}}" for css, name in classes.items() if css),
        *_animations(moves, len(screens), seconds),
        "</style>",
        f'<rect width="100%" height="100%" rx="6" fill="{_hex(theme.background_color)}"/>',
        *(_drawn(span, classes, moves) for span in spans),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _styles(spans: Sequence[Span]) -> Iterator[str]:
    yield from (css for span in spans for _, _, css in span.part)


def _animations(moves: dict[tuple[int, int], str], count: int, seconds: float) -> Iterator[str]:
    """Keyframes for each range of screens. Users who prefer reduced motion see the last screen."""
    for (first, after), name in moves.items():
        begin, end = 100 * first / count, 100 * after / count
        steps = [f"{begin:.4g}%{{visibility:visible}}"]
        steps = (["0%{visibility:hidden}"] if first else []) + steps
        steps += [f"{end:.4g}%,100%{{visibility:hidden}}"] if after < count else []
        final = "visible" if after == count else "hidden"
        yield (
            f".{name}{{visibility:{final};animation:{name} {count * seconds:g}s step-end infinite}}"
            f"@keyframes {name}{{{''.join(steps)}}}"
        )
    yield "@media (prefers-reduced-motion:reduce){g{animation:none!important}}"


def _drawn(span: Span, classes: dict[str, str], moves: dict[tuple[int, int], str]) -> str:
    move = moves.get((span.first, span.after))
    y = MARGIN + span.place[0] * CELL_H
    elements = []
    for column, text, css in span.part:
        x, length = MARGIN + column * CELL_W, len(text) * CELL_W
        if css.startswith("background:"):
            colour = css.split(";")[0].partition(":")[2]
            elements.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{length:.1f}" height="{CELL_H}"'
                f' fill="{colour}"/>'
            )
        elements.append(
            f'<text class="{classes[css]}" x="{x:.1f}" y="{y + 13:.1f}"'
            f' textLength="{length:.1f}">{escape(text)}</text>'
        )
    return f'<g class="{move}">{"".join(elements)}</g>' if move else "".join(elements)
