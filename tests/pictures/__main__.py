"""Make the pictures of the documents from recordings, as the screen paints them.

.venv/bin/python tests/pictures             all of them (chosen.py)
.venv/bin/python tests/pictures FILE OUT    a moving one of any recording
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

# before the screen is imported: its designed colours need a terminal with all colours
os.environ |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "TZ": "UTC"}
os.environ.pop("NO_COLOR", None)

from chosen import PICTURES, STILLS, Picture, Still
from moving import Part, parts, svg
from rich.terminal_theme import TerminalTheme
from textual.color import Color
from textual.pilot import Pilot

from iopstui.recording.reader import recording_path
from iopstui.recording.replay import ReplaySession
from iopstui.ui.core.clipboard import render_pictures
from iopstui.ui.draw.style import UTF8
from iopstui.ui.draw.theme import DARK, OWN_THEMES
from iopstui.ui.replay import ReplayApp

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 120
SCREENS, SECONDS = 18, 1.2
LAST_STAYS = 4


def _terminal_theme() -> TerminalTheme:
    theme = OWN_THEMES[DARK]
    back, front = (
        Color.parse(colour).rgb for colour in (theme.background, theme.foreground) if colour
    )
    return TerminalTheme(back, front, [front] * 8)


THEME = _terminal_theme()


def rows(app: ReplayApp) -> list[list[Part]]:
    """The current rows of the screen."""
    strips = app.screen._compositor.render_strips()
    return [parts(list(strip), WIDTH, THEME) for strip in strips]


async def _at_rest(pilot: Pilot[int], before: float, session: ReplaySession) -> None:
    while session.at == before and session.at < session.end:
        await asyncio.sleep(0.005)
    for _ in range(3):
        await asyncio.sleep(0.02)
        await pilot.pause()


async def play(picture: Picture) -> list[list[list[Part]]]:
    """Screens of a recording at equal intervals, beginning with its first figures; the last one
    stays longer."""
    session = ReplaySession(recording_path(picture.recording))
    app, screens = ReplayApp(session, charset=UTF8, theme=DARK), []
    async with app.run_test(size=(WIDTH, picture.rows)) as pilot:
        session.pause(True)
        await pilot.pause(0.3)
        due = interval = 0.0
        while session.at < session.end:
            before = session.at
            session.step()
            await _at_rest(pilot, before, session)
            if not interval and app.state.frame is not None:
                # a job's preparation is not shown
                interval = (session.end - session.at) / SCREENS
                due = session.at + interval
            if interval and (session.at >= due or session.at >= session.end):
                screens.append(rows(app))
                due += interval
        if app.state.experiment is not None:
            # the job's result is shown at the end
            await pilot.press("w")
            await pilot.pause(0.3)
            screens += [rows(app)] * LAST_STAYS
        await pilot.press("q")
    session.close()
    return screens + screens[-1:] * LAST_STAYS


async def save_screen(still: Still) -> str:
    """The screen at one moment of a recording, as key S saves it."""
    session = ReplaySession(recording_path(still.recording))
    app = ReplayApp(session, charset=UTF8, theme=DARK)
    async with app.run_test(size=still.size) as pilot:
        session.pause(True)
        await pilot.pause(0.3)
        while session.at < still.at_s:
            before = session.at
            session.step()
            await _at_rest(pilot, before, session)
        await pilot.pause(0.3)
        text = render_pictures(app)[".svg"]
        await pilot.press("q")
    session.close()
    return text


def main(moving: Sequence[Picture], stills: Sequence[Still]) -> None:
    """Write the pictures; they are the same on any machine."""
    os.chdir(ROOT)
    time.tzset()
    for picture in moving:
        title = f"iopstui plays the recording {Path(picture.recording).stem}"
        _write(picture.out, svg(asyncio.run(play(picture)), WIDTH, SECONDS, THEME, title))
    for still_picture in stills:
        _write(still_picture.out, asyncio.run(save_screen(still_picture)))


def _write(out: str, text: str) -> None:
    (ROOT / out).write_text(text)
    print(f"written: {out}, {len(text) // 1024} KiB")


def parse_arguments(arguments: Sequence[str]) -> tuple[Sequence[Picture], Sequence[Still]]:
    """Parse the command line; SystemExit for help and for mistakes."""
    parser = argparse.ArgumentParser(
        prog="tests/pictures", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("file", nargs="?", metavar="FILE", help="a recording")
    parser.add_argument("out", nargs="?", metavar="OUT", help="the picture to be written (SVG)")
    options = parser.parse_args(arguments)
    if options.file is not None and options.out is None:
        parser.error("FILE needs an OUT")
    return ([Picture(options.file, options.out)], []) if options.file else (PICTURES, STILLS)


if __name__ == "__main__":
    main(*parse_arguments(sys.argv[1:]))
