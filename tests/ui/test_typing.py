"""No key is lost or reordered, no matter how the terminal's bytes are split into packets."""

from __future__ import annotations

import asyncio
import codecs
import time
from collections.abc import Iterable, Sequence

import pytest
import ui_fakes as fakes
from hypothesis import given
from hypothesis import strategies as st
from test_app import WIDE, make, running, settle
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.messages import TerminalSupportsSynchronizedOutput
from textual.pilot import Pilot
from textual.widgets import Input

from iopstui.fio import inspect
from iopstui.ui.app import IopstuiApp
from iopstui.ui.core.terminal.terminal_input import MAX_COLUMNS, MAX_ROWS, MetaKey, TerminalInput
from iopstui.ui.dashboard.screen import Dashboard
from iopstui.ui.dialogs.questions import Prompt
from iopstui.ui.dialogs.text import TextScreen

SMALL = (80, 24)
SCRIPT = (
    ":rwmixread=7x\x7f1\x7f0\r"  # Backspace between characters
    "b\x1b[B\r"  # the next block size
    "]r" "r"  # iodepth twice; run it; stop it
    "jseqq\x1b[D\x1b[C\x7fr\r" "r"  # a job by its name, mistyped; stop it
    ":\x1b[200~iodepth=µ\x1b[201~\x1b[D1\x1b" "m\r"  # a paste, an arrow, given up; a mark
).encode()  # fmt: skip
DONE = [
    ("run", "mixed-4k", {"rwmixread": "70", "bs": "8k", "iodepth": "64"}), ("stop",),
    ("run", "seqread-1m", {}), ("stop",),
    ("mark", "mark 1"),
]  # fmt: skip


async def still(app: IopstuiApp, pilot: Pilot[int]) -> None:
    """Wait until all typed keys are handled."""
    await pilot.pause()
    while app.typing:
        await asyncio.sleep(0)
    await pilot.pause()


async def type_chunks(
    app: IopstuiApp, pilot: Pilot[int], chunks: Iterable[bytes], one_by_one: bool
) -> None:
    """Feed the app as the driver's thread does."""
    arriving, decode = TerminalInput(), codecs.getincrementaldecoder("utf-8")().decode
    for chunk in chunks:
        for message in arriving.feed(decode(chunk)):
            app.post_message(message)
        if one_by_one:
            await still(app, pilot)
    await still(app, pilot)


def split_script(script: bytes, length: int, first: int | None = None) -> list[bytes]:
    """Split into chunks of equal length, except the first and the last."""
    cuts = range(first or length, len(script), length)
    return [script[a:b] for a, b in zip([0, *cuts], [*cuts, len(script)], strict=True)]


# whole, byte by byte, and in long chunks; test_input_may_be_split_anywhere cuts at any other place
SPLITS = [
    (True, [SCRIPT]),
    (False, split_script(SCRIPT, 1)),
    (True, split_script(SCRIPT, 1)),
    (True, split_script(SCRIPT, 3)),
    *((True, split_script(SCRIPT, 7, first)) for first in (2, 5)),
]
SHARES = 2


@pytest.fixture
def unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """fio is slow and accepts everything."""
    monkeypatch.setattr(inspect, "check_option", lambda *option: time.sleep(0.02))


# several tests, so that several CPUs share the work
@pytest.mark.usefixtures("unasked")
@pytest.mark.parametrize("first", range(SHARES))
async def test_a_key_sequence_works_in_all_splits(first: int) -> None:
    app = make()
    async with app.run_test(size=SMALL) as pilot:
        fake = await running(app, pilot)
        await pilot.press("r")
        for one_by_one, chunks in SPLITS[first::SHARES]:
            fake.calls.clear()
            app.view._marks = 0
            await type_chunks(app, pilot, chunks, one_by_one)
            assert fake.calls == DONE, chunks
            assert isinstance(app.screen, Dashboard)
            app.jobs.choose("mixed-4k", {})


async def test_text_after_the_key_that_opens_a_prompt_is_in_the_prompt() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await type_chunks(app, pilot, [b":rwmixread=70"], False)
        assert isinstance(app.screen, Prompt)
        assert app.screen.query_one(Input).value == "rwmixread=70"
        # in some terminals, Alt with an arrow moves by words
        await type_chunks(app, pilot, [b"\x1bbx"], False)
        assert app.screen.query_one(Input).value == "rwmixread=x70"


async def test_enter_runs_the_command_typed_in_the_palette() -> None:
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await type_chunks(app, pilot, [b"\x10messages\r"], False)
        assert isinstance(app.screen, TextScreen)


async def test_a_slow_key_handler_does_not_delay_q(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(self: IopstuiApp) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(IopstuiApp, "_wait_until_handled", never)
    monkeypatch.setattr("iopstui.ui.core.terminal.terminal_input.KEY_TIMEOUT_S", 0.0)
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await type_chunks(app, pilot, [b"VVq"], False)
    assert ("close",) in app.fake.calls  # type: ignore[attr-defined]


async def test_ctrl_c_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(self: IopstuiApp) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(IopstuiApp, "_wait_until_handled", never)
    app = make()
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        for message in TerminalInput().feed("m" * 100 + "\x03"):
            app.post_message(message)
        while not app._exit:
            await asyncio.sleep(0)
    marks = [call for call in app.fake.calls if call[0] == "mark"]  # type: ignore[attr-defined]
    assert len(marks) <= 1


def messages(chunks: Sequence[str]) -> list[str]:
    """Describe the messages that result from the chunks."""
    arriving = TerminalInput(lambda: 0.0)
    return [describe(message) for chunk in chunks for message in arriving.feed(chunk)]


def describe(message: Message) -> str:
    if isinstance(message, MetaKey):
        return f"escape {message.follows}"
    if isinstance(message, events.Key):
        return message.key
    if isinstance(message, events.Paste):
        return f"paste {message.text!r}"
    return type(message).__name__


PIECES = st.sampled_from(
    ["a", "[", "]", "O", "ä", "\r", "\x7f", "\x1b", "\x1b[A", "\x1bOB", "\x1b[1;5C", "\x1b[3~",
     "\x1b[?2026;2$y", "\x1b[114;;114u", "\x1b[200~x\x1b[31my\r\nq\x1b[201~", "\x1b[?62;9;c",
     "\x1b]11;rgb:0/0/0\x07", "\x1bP1$r0m\x1b\\",
     "\x1b[I", "\x1b[<35;1;1M", "\x1b[M !!", "\x1b[[A", "\x1b["]
)  # fmt: skip


@given(st.lists(PIECES, max_size=8).map("".join), st.data())
def test_input_may_be_split_anywhere(stream: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert messages(chunks) == messages([stream])


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        ("\x1br", ["escape r"]),
        ("\x1b\x1b[A", ["escape", "up"]),
        ("\x1b[]", ["escape", "left_square_bracket", "right_square_bracket"]),
        ("\x1b[?62;9;cq", ["q"]),
        ("\x1b[200~q\x1b[0mq\r\x1b[201~r", ["paste 'q[0mq\\n'", "r"]),
        ("\x1b[M qqr", ["r"]),
        ("\x1b[1;9\x1b[A", ["up"]),
        ("\x1b]m", ["escape ]", "m"]),
        ("\x1b]11;rgb:qq/qq/qq\x07r\x1bP>|q(1)\x1b\\m", ["r", "m"]),
    ],
)
def test_sequences(stream: str, expected: list[str]) -> None:
    assert messages([stream]) == expected


def test_a_paste_longer_than_any_field_ends_at_its_end_marker() -> None:
    texts = messages(["\x1b[200~", *["q" * 9999] * 20, "\x1b[20", "1~r"])
    assert len(texts) == 2 and texts[1] == "r"


def test_an_incomplete_sequence_is_delivered_in_time() -> None:
    now = [0.0]
    for sequence, early, late, expected in (
        ("\x1b", 0.05, 0.2, ["escape"]),
        ("\x1b[", 0.5, 1.5, ["escape", "left_square_bracket"]),
        ("\x1b[1;", 0.5, 1.5, []),
        ("\x1b[200~words", 3.0, 9.0, ["paste 'words'"]),
    ):
        arriving = TerminalInput(lambda: now[0])
        now[0] = 0.0
        assert list(arriving.feed(sequence)) == []
        now[0] = early
        assert list(arriving.tick()) == []
        now[0] = late
        assert [describe(message) for message in arriving.tick()] == expected
        assert messages([]) == [] and list(arriving.tick()) == []
        assert [describe(message) for message in arriving.feed("q")] == ["q"]


def test_a_terminal_s_answer_is_no_key() -> None:
    answers = list(TerminalInput().feed("\x1b[?2026;2$y"))
    assert [type(message) for message in answers] == [TerminalSupportsSynchronizedOutput]


def test_no_split_loses_a_part_of_the_script() -> None:
    assert all(b"".join(chunks) == SCRIPT and all(chunks) for _, chunks in SPLITS)


def test_the_fakes_have_what_the_script_needs() -> None:
    assert {"mixed-4k", "seqread-1m"} <= {job.name for job in fakes.JOBS}


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([b"\x1b[M qqr"], ["r"]),
        ([b"\x1b[M q", b"qr"], ["r"]),
        # beyond column 95 a byte is no text; decoded, two may be one character
        ([b"\x1b[M \xc3\x84r"], ["r"]),
        ([b"\x1b[M \xc3\x84\x1b[M!\xe2\x82r"], ["r"]),
        ([b"\x1b[M \xff", b"\xffr"], ["r"]),
        # beyond column 223 xterm sends NUL
        ([b"\x1b[M \x00\x00r"], ["r"]),
        # cut off: the next sequence begins before the third byte
        ([b"\x1b[M !\x1b[M !!r"], ["r"]),
        ([b"\x1b[M\x1b[A"], ["up"]),
        ([b"\x1b", b"[", b"M", b" ", b"\x1b", b"[M !!r"], ["r"]),
        ([b"\x1b[M !\x03"], ["ctrl+c"]),
    ],
)
def test_bytes_of_an_old_mouse_report_are_no_keys(
    chunks: Sequence[bytes], expected: list[str]
) -> None:
    arriving = TerminalInput(lambda: 0.0)
    assert [describe(m) for chunk in chunks for m in arriving.feed_bytes(chunk)] == expected
    text = TerminalInput(lambda: 0.0)
    pieces = [chunk.decode("latin-1") for chunk in chunks]
    assert [describe(m) for piece in pieces for m in text.feed(piece)] == expected


def test_an_old_mouse_report_that_never_ends_is_dropped() -> None:
    now = [0.0]
    arriving = TerminalInput(lambda: now[0])
    assert list(arriving.feed_bytes(b"\x1b[M !")) == [] and arriving.has_pending
    now[0] = 2.0
    assert list(arriving.tick()) == [] and not arriving.has_pending
    assert [describe(message) for message in arriving.feed_bytes(b"q")] == ["q"]


@pytest.mark.parametrize("size", [
    "20000;20000;1;1", "40;20000;1;1", "0;80;1;1", "24;0;1;1", "24;80;0;0", "24;80;9;0",
    "9999999999;80;1;1", "24:1;80;1;1",
])  # fmt: skip
def test_sizes_that_no_terminal_has_are_ignored(size: str) -> None:
    assert messages([f"\x1b[48;{size}tq"]) == ["q"]
    assert messages(["\x1b[48;24;80;480;640tq"]) == ["Resize", "q"]


async def test_a_screen_is_not_larger_than_any_terminal() -> None:
    app = make(fakes.FakeController())
    async with app.run_test(size=(80, 24)) as pilot:
        app.post_message(events.Resize(Size(65535, 65535), Size(65535, 65535)))
        await pilot.pause()
        assert app.size == Size(MAX_COLUMNS, MAX_ROWS)
