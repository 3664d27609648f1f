"""Key S: the screen in two new files, whatever stands on it, and nothing else is touched."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from xml.etree import ElementTree

import pytest
from test_app import make, running, screen_text, settle, shows
from textual.pilot import Pilot
from textual.widgets import Input

from iopstui.ui.app import IopstuiApp
from iopstui.ui.core import picture
from iopstui.ui.core.picture import render_pictures, save_pictures

WIDE = (160, 45)
FILES = {".svg": "<svg/>\n", ".txt": "a µ\n"}


async def taken(app: IopstuiApp, pilot: Pilot[int]) -> None:
    await pilot.press("S")
    await app.workers.wait_for_complete()
    await settle(pilot)


async def test_the_key_writes_what_is_seen_and_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        seen = [line.rstrip() for line in screen_text(app).rstrip().split("\n")]
        await taken(app, pilot)
        svg, txt = sorted(tmp_path.iterdir())
        assert re.fullmatch(r"iopstui-\d{8}-\d{6}\.svg", svg.name) and txt.stem == svg.stem
        assert shows(app, f"Screen saved: {svg.name} and .txt in /")
    assert txt.read_text().splitlines() == seen
    drawn = " ".join(ElementTree.fromstring(svg.read_text()).itertext())
    assert "mixed-4k" in drawn.replace("\xa0", " ")
    assert "url(" not in svg.read_text().replace("url(#", ""), "it loads nothing"


async def test_what_is_open_over_the_dashboard_is_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        await pilot.press("question_mark")
        await settle(pilot)
        await taken(app, pilot)
    [txt] = tmp_path.glob("*.txt")
    assert "run the job, or stop the running one" in txt.read_text()


async def test_where_something_is_typed_the_key_is_a_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("colon")
        await settle(pilot)
        await taken(app, pilot)
        assert app.screen.query_one(Input).value == "S"
    assert list(tmp_path.iterdir()) == []


async def test_a_light_theme_has_a_light_picture() -> None:
    app = make(theme="light")
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        light = render_pictures(app)[".svg"]
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        dark = render_pictures(app)[".svg"]
    assert 'fill="#fbfbfa"' in light and 'fill="#fbfbfa"' not in dark


async def test_a_directory_that_can_t_be_written_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        monkeypatch.setattr(picture.os, "open", refused)
        await taken(app, pilot)
        assert shows(app, "Cannot save the screen in the current directory: Permission denied")


async def test_a_directory_that_is_gone_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        await taken(app, pilot)
        assert shows(app, "Cannot save the screen in the current directory: No such file")


def test_nothing_that_is_there_is_overwritten(tmp_path: Path) -> None:
    first = save_pictures(tmp_path, "x", FILES)
    (tmp_path / "x-2.txt").write_text("mine")
    second = save_pictures(tmp_path, "x", FILES)
    assert [path.name for path in first] == ["x.svg", "x.txt"]
    assert [path.name for path in second] == ["x-3.svg", "x-3.txt"]
    assert not (tmp_path / "x-2.svg").exists(), "both or none"
    assert (tmp_path / "x-2.txt").read_text() == "mine"
    assert first[1].read_text(encoding="utf-8") == "a µ\n"


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "x.svg").symlink_to(tmp_path / "elsewhere")
    assert [path.name for path in save_pictures(tmp_path, "x", FILES)] == ["x-2.svg", "x-2.txt"]
    assert not (tmp_path / "elsewhere").exists()


def test_of_two_files_neither_is_left_if_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = picture._write

    def full(path: Path, text: str, made: list[Path]) -> None:
        real(path, text, made)
        if path.suffix == ".txt":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(picture, "_write", full)
    with pytest.raises(OSError, match="No space left"):
        save_pictures(tmp_path, "x", FILES)
    assert list(tmp_path.iterdir()) == []


def test_others_read_it_as_the_user_lets_them(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        [path, _] = save_pictures(tmp_path, "x", FILES)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_there_is_an_end_of_trying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "MAX_PICTURES", 2)
    save_pictures(tmp_path, "x", FILES)
    save_pictures(tmp_path, "x", FILES)
    with pytest.raises(FileExistsError, match="exist already"):
        save_pictures(tmp_path, "x", FILES)
