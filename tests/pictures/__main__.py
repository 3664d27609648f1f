"""Makes the moving pictures of the documents anew, from recordings, on the screen itself.

.venv/bin/python tests/pictures             all of them (chosen.py)
.venv/bin/python tests/pictures FILE OUT    of any recording
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from chosen import PICTURES, Picture
from moving import Part, parts, svg
from rich.terminal_theme import SVG_EXPORT_THEME
from textual.pilot import Pilot

from iopstui.recording.reader import recording_path
from iopstui.recording.replay import ReplaySession
from iopstui.ui.draw.style import UTF8
from iopstui.ui.replay import ReplayApp

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 120
SCREENS, SECONDS = 18, 1.2
LAST_STAYS = 4


def rows(app: ReplayApp) -> list[list[Part]]:
    """What is on the screen now."""
    strips = app.screen._compositor.render_strips()
    return [parts(list(strip), WIDTH, SVG_EXPORT_THEME) for strip in strips]


async def _at_rest(pilot: Pilot[int], before: float, session: ReplaySession) -> None:
    while session.at == before and session.at < session.end:
        await asyncio.sleep(0.005)
    for _ in range(3):
        await asyncio.sleep(0.02)
        await pilot.pause()


async def played(picture: Picture) -> list[list[list[Part]]]:
    """So many screens of a recording, evenly from its first figures on; the last one stays
    longer."""
    session = ReplaySession(recording_path(picture.recording))
    app, found = ReplayApp(session, charset=UTF8), []
    async with app.run_test(size=(WIDTH, picture.rows)) as pilot:
        session.pause(True)
        await pilot.pause(0.3)
        due = every = 0.0
        while session.at < session.end:
            before = session.at
            session.step()
            await _at_rest(pilot, before, session)
            if not every and app.state.frame is not None:
                # a job's preparations are not seen
                every = (session.end - session.at) / SCREENS
                due = session.at + every
            if every and (session.at >= due or session.at >= session.end):
                found.append(rows(app))
                due += every
        if app.state.experiment is not None:
            # what came of it, in the end
            await pilot.press("w")
            await pilot.pause(0.3)
            found += [rows(app)] * LAST_STAYS
        await pilot.press("q")
    session.close()
    return found + found[-1:] * LAST_STAYS


def main(pictures: Sequence[Picture]) -> None:
    """Write them: the same wherever that is done."""
    os.chdir(ROOT)
    os.environ["TZ"] = "UTC"
    time.tzset()
    for one in pictures:
        title = f"iopstui plays the recording {Path(one.recording).stem}"
        text = svg(asyncio.run(played(one)), WIDTH, SECONDS, SVG_EXPORT_THEME, title)
        (ROOT / one.out).write_text(text)
        print(f"written: {one.out}, {len(text) // 1024} KiB")


def chosen(arguments: Sequence[str]) -> Sequence[Picture]:
    """What the command line asks for; SystemExit for help, or for one that is none of its."""
    parser = argparse.ArgumentParser(
        prog="tests/pictures", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("file", nargs="?", metavar="FILE", help="a recording")
    parser.add_argument("out", nargs="?", metavar="OUT", help="the picture to be written (SVG)")
    asked = parser.parse_args(arguments)
    if asked.file is not None and asked.out is None:
        parser.error("FILE needs an OUT")
    return [Picture(asked.file, asked.out)] if asked.file else PICTURES


if __name__ == "__main__":
    main(chosen(sys.argv[1:]))
