"""Key S saves any screen in two new files and changes no other file."""

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
from iopstui.ui.core import clipboard
from iopstui.ui.core.clipboard import render_pictures, save_pictures
from iopstui.ui.dialogs.questions import Choice

WIDE = (160, 45)
FILES = {".svg": "<svg/>\n", ".txt": "a µ\n"}


async def take_picture(app: IopstuiApp, pilot: Pilot[int]) -> None:
    await pilot.press("S")
    await settle(pilot)
    if isinstance(app.screen, Choice):
        await pilot.press(*"picture", "enter")
    await app.workers.wait_for_complete()
    await settle(pilot)


async def test_the_key_saves_the_screen_and_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        lines = [line.rstrip() for line in screen_text(app).rstrip().split("\n")]
        await take_picture(app, pilot)
        svg, txt = sorted(tmp_path.iterdir())
        assert re.fullmatch(r"iopstui-\d{8}-\d{6}\.svg", svg.name) and txt.stem == svg.stem
        assert shows(app, f"Screen saved: {svg.name} and .txt in /")
    assert txt.read_text().splitlines() == lines
    drawn = " ".join(ElementTree.fromstring(svg.read_text()).itertext())
    assert "mixed-4k" in drawn.replace("\xa0", " ")
    assert "url(" not in svg.read_text().replace("url(#", ""), "it loads nothing"


async def test_an_open_dialog_is_in_the_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        await pilot.press("o")
        await settle(pilot)
        await take_picture(app, pilot)
    [txt] = tmp_path.glob("*.txt")
    assert "Queue map" in txt.read_text()


async def test_the_key_is_a_letter_in_a_text_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await pilot.press("colon")
        await settle(pilot)
        await take_picture(app, pilot)
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


async def test_an_unwritable_directory_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: object) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        monkeypatch.setattr(clipboard.os, "open", refused)
        await take_picture(app, pilot)
        assert shows(app, "Cannot save the screen in the current directory: Permission denied")


async def test_a_deleted_directory_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await running(app, pilot)
        await take_picture(app, pilot)
        assert shows(app, "Cannot save the screen in the current directory: No such file")


def test_existing_files_are_not_overwritten(tmp_path: Path) -> None:
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


def test_neither_of_two_files_is_left_if_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = clipboard._write

    def full(path: Path, text: str, written: list[Path]) -> None:
        real(path, text, written)
        if path.suffix == ".txt":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(clipboard, "_write", full)
    with pytest.raises(OSError, match="No space left"):
        save_pictures(tmp_path, "x", FILES)
    assert list(tmp_path.iterdir()) == []


def test_the_file_mode_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        [path, _] = save_pictures(tmp_path, "x", FILES)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_saving_gives_up_after_many_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clipboard, "MAX_PICTURES", 2)
    save_pictures(tmp_path, "x", FILES)
    save_pictures(tmp_path, "x", FILES)
    with pytest.raises(FileExistsError, match="exist already"):
        save_pictures(tmp_path, "x", FILES)
