"""Pictures of the screen as SVG and as text, in new files."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME, TerminalTheme
from textual.app import App
from textual.color import Color

MAX_PICTURES = 99
_FONTS = re.compile(r"\s*@font-face \{[^}]*\}")


def render_pictures(app: App[Any]) -> dict[str, str]:
    """Pictures of the screen, by file suffix. The SVG loads nothing."""
    width, height = app.size
    console = Console(
        width=width, height=height, file=io.StringIO(), force_terminal=True,
        color_system="truecolor", record=True, legacy_windows=False, safe_box=False,
    )  # fmt: skip
    # as textual's own App.export_screenshot
    console.print(
        app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    )
    text = console.export_text(clear=False)
    colours = SVG_EXPORT_THEME if app.current_theme.dark else DEFAULT_TERMINAL_THEME
    if not app.current_theme.ansi:
        background = Color.parse(app.theme_variables["background"]).rgb
        foreground = Color.parse(app.theme_variables["foreground"]).rgb
        colours = TerminalTheme(background, foreground, [foreground] * 8)
    svg = console.export_svg(title="iopstui", theme=colours)
    lines = [line.rstrip() for line in text.splitlines()]
    return {".svg": _FONTS.sub("", svg), ".txt": "\n".join(lines).rstrip("\n") + "\n"}


def save_pictures(directory: Path, name: str, files: Mapping[str, str]) -> list[Path]:
    """Write ``files`` as ``name`` with their suffixes, or as ``name``-2 ... if one exists. Writes
    all or none, and never follows a link. Raises OSError."""
    for number in range(1, MAX_PICTURES + 1):
        stem = name if number == 1 else f"{name}-{number}"
        paths = [directory / f"{stem}{suffix}" for suffix in files]
        created: list[Path] = []
        try:
            for path, text in zip(paths, files.values(), strict=True):
                _write(path, text, created)
            return paths
        except FileExistsError:
            _remove(created)
        except OSError:
            _remove(created)
            raise
    raise FileExistsError(f"{name} to {name}-{MAX_PICTURES} exist already")


def _write(path: Path, text: str, created: list[Path]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(path, flags, 0o666)
    created.append(path)
    with open(fd, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)


def _remove(created: list[Path]) -> None:
    for path in created:
        path.unlink(missing_ok=True)
