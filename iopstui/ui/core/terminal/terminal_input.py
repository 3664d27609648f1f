"""Keys as the terminal sends them: read early, decoded, and handled in their order.

Textual passes a key to the widget that has the focus when the key arrives. If ":rwmixread=70"
arrives in one packet, the text would go to the screen below, because ":" has not opened the input
yet; and a letter after Backspace would be handled first, because bindings are looked up last.

Input (keys, pastes, answers) may be split into pieces anywhere. Textual's parser knows the
sequences, but treats an unknown one as typed keys, and merges an Escape with a key that follows at
once. So the stream is cut into sequences first."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

from textual import constants, events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._xterm_parser import XTermParser
from textual.app import App, ScreenStackError
from textual.command import CommandPalette
from textual.geometry import Size
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import WorkerState

KEY_TIMEOUT_S = 2.0
"""Time limit for handling a key; after that, the next key is handled."""
REMOVAL_TIMEOUT_S = 0.25
"""Time limit for waiting for a widget that may have been removed."""
INTERRUPT = "ctrl+c"
ALT_KEYS = {"b": "ctrl+left", "f": "ctrl+right"}
"""Some terminals send Alt with an arrow as Escape and one of these letters: the keys for an input
field."""


@runtime_checkable
class AnsweringScreen(Protocol):
    """A screen that checks typed text; ``answered`` is not set while it does."""

    answered: asyncio.Event


class KeysInOrder(App[int]):
    """An application that handles keys and pastes one by one."""

    _queued_keys: deque[events.Event]
    _handling = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._queued_keys = deque()

    @property
    def typing(self) -> bool:
        """Whether a key is being handled or waiting."""
        return self._handling

    @property
    def _is_over(self) -> bool:
        """Whether no screen is left."""
        return self._exit or not self._screen_stacks[self._current_mode]

    async def on_event(self, event: events.Event) -> None:
        """Queue keys and pastes until the previous one is handled; limit sizes."""
        if isinstance(event, events.InputEvent | events.Paste) and self._is_over:
            return
        if isinstance(event, events.Resize):
            event = _limited(event)
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
            return
        if isinstance(event, events.Key) and event.key == INTERRUPT:
            # Ctrl+C discards the keys typed before it, as in a terminal
            self._queued_keys.clear()
            await super().on_event(event)
            return
        self._queued_keys.append(event)
        if not self._handling:
            await self._handle_next()

    async def _handle_next(self) -> None:
        self._handling = bool(self._queued_keys) and not self._is_over
        if not self._handling:
            return
        event = self._queued_keys.popleft()
        if isinstance(event, MetaKey):
            event = self._first_of_two(event)
        self._handling_task = asyncio.create_task(self._continue_when_handled())
        await super().on_event(event)

    def _first_of_two(self, event: MetaKey) -> events.Event:
        """The first of two keys that arrived as one; the second is queued."""
        if isinstance(self.focused, Input) and event.follows in ALT_KEYS:
            return events.Key(ALT_KEYS[event.follows], None)
        self._queued_keys.appendleft(_key(event.follows))
        return events.Key("escape", "\x1b")

    async def _continue_when_handled(self) -> None:
        with contextlib.suppress(asyncio.TimeoutError, ScreenStackError):
            await asyncio.wait_for(self._wait_until_handled(), KEY_TIMEOUT_S)
        self.call_later(self._handle_next)

    async def _wait_until_handled(self) -> None:
        """Wait until all nodes from the focus to the application have handled their messages,
        without a change of screen or focus."""
        before: object = None
        while True:
            for node in (self.focused or self.screen).ancestors_with_self:
                await _wait_until_idle(node)
            await self._wait_for_palette()
            if isinstance(self.screen, AnsweringScreen):
                await self.screen.answered.wait()
            now = (len(self.screen_stack), self.screen, self.focused)
            if now == before:
                return
            before = now

    async def _wait_for_palette(self) -> None:
        """Wait until the palette's search has ended, because Enter uses its results."""
        screen: Screen[Any] = self.screen
        if not isinstance(screen, CommandPalette):
            return
        for worker in list(self.workers):
            running = worker.state in (WorkerState.PENDING, WorkerState.RUNNING)
            if running and isinstance(worker.node, Widget) and worker.node is screen:
                with contextlib.suppress(Exception):
                    await worker.wait()


async def _wait_until_idle(node: MessagePump) -> None:
    idle = asyncio.Event()
    if node.call_later(idle.set):
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(idle.wait(), REMOVAL_TIMEOUT_S)


def _limited(event: events.Resize) -> events.Resize:
    size = limit_size(event.size)
    return event if size == event.size else events.Resize(size, size)


def _key(character: str) -> events.Event:
    keys = [event for event in KeyParser().feed(character) if isinstance(event, events.Key)]
    return keys[0] if keys else events.Key(character, character)


ESC = "\x1b"
PASTE, PASTE_ENDS = "\x1b[200~", "\x1b[201~"
MOUSE = "\x1b[M"
"""The beginning of an old kind of mouse report, which another program left enabled. Three bytes
follow, none of which is a control character except NUL. They are not text: decoding could merge
them with later input."""
SEQUENCE_TIMEOUT_S, PASTE_TIMEOUT_S = 1.0, 5.0
"""How long to wait for the rest of a sequence, which may come over a slow line."""
LONGEST_PASTE, LONGEST_STRING = 1 << 16, 1 << 12
MAX_COLUMNS, MAX_ROWS = 1000, 400
"""Limits for the size, larger than any terminal, because each cell needs memory."""
_STRING_ENDS = re.compile(r"\x07|\x1b\\")
_CSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_PARTIAL_CSI = re.compile(r"\x1b\[[0-?]{0,256}[ -/]{0,16}")
_RESIZE = re.compile(r"\x1b\[48;(\d{1,6});(\d{1,6});(\d{1,6});(\d{1,6})t", re.ASCII)
"""A report of a terminal's size in cells and in pixels (rows first), which terminals send if
enabled."""
_MOUSE_BYTES = re.compile(rb"\x1b\[M(?:[^\x01-\x1f]{3}|[^\x01-\x1f]{0,2}(?=[\x01-\x1f]))")
_PARTIAL_MOUSE_BYTES = re.compile(rb"\x1b\[M[^\x01-\x1f]{0,2}\Z")
_MOUSE_TEXT = re.compile(r"\x1b\[M[^\x01-\x1f]{0,3}")
_UNDECODABLE = "\ufffd"
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class KeyParser(XTermParser):
    """Textual's parser without its cache, which keeps up to 1024 parsers for the whole process."""

    _parse_extended_key = XTermParser._parse_extended_key.__wrapped__  # type: ignore[assignment]


class MetaKey(events.Key):
    """Escape and ``character`` together: Alt with a key, or two keys in one packet."""

    def __init__(self, character: str) -> None:
        super().__init__("escape", None)
        self.follows = character


def limit_size(size: Size) -> Size:
    return Size(min(size.width, MAX_COLUMNS), min(size.height, MAX_ROWS))


class TerminalInput:
    """Turns input into messages. ``feed`` gets text as it arrives. ``tick`` is called regularly,
    because an Escape that nothing follows is a key."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._parser = KeyParser()
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._partial_report = b""
        self._pending = ""
        self._fed_s = 0.0
        self._now = now

    def feed_bytes(self, data: bytes) -> Iterator[Message]:
        """``feed`` for the bytes of a terminal."""
        self._fed_s = self._now()
        data = _MOUSE_BYTES.sub(b"", self._partial_report + data)
        partial = _PARTIAL_MOUSE_BYTES.search(data)
        end = partial.start() if partial else len(data)
        self._partial_report = data[end:]
        return self.feed(self._decode(data[:end]))

    def feed(self, text: str) -> Iterator[Message]:
        """The messages that are complete now."""
        if not text:
            return
        self._fed_s = self._now()
        text, self._pending = self._pending + text, ""
        at = 0
        while at < len(text):
            escape = text.find(ESC, at)
            if escape != at:
                end = escape if escape >= 0 else len(text)
                decoded = text[at:end].replace(_UNDECODABLE, "")
                if decoded:  # the parser takes an empty text for the end of input
                    yield from self._parser.feed(decoded)
                at = end
                continue
            length = _length(text, at)
            if not length:
                self._keep_pending(text[at:])
                return
            yield from self._sequence(text[at : at + length])
            at += length

    def _keep_pending(self, text: str) -> None:
        # keep only the start of a long paste, and the possible start of its end sequence
        if len(text) > LONGEST_PASTE:
            text = text[:LONGEST_PASTE] + text[LONGEST_PASTE:][1 - len(PASTE_ENDS) :]
        self._pending = text

    @property
    def has_pending(self) -> bool:
        """Whether an incomplete sequence waits for its rest; only then ``tick`` has work."""
        return bool(self._pending or self._partial_report)

    def tick(self) -> Iterator[Message]:
        """Handle an incomplete sequence whose rest did not arrive in time."""
        pending, idle_s = self._pending, self._now() - self._fed_s
        if idle_s >= SEQUENCE_TIMEOUT_S:
            self._partial_report = b""
        if not pending or idle_s < _timeout_s(pending):
            return
        self._pending = ""
        if pending.startswith(PASTE):
            yield _paste(pending[len(PASTE) :])
        # a longer text is not an Escape key, but a sequence whose rest was lost
        elif len(pending) <= 2:
            yield events.Key("escape", ESC)
            for character in pending[1:]:
                yield from self._parser.feed(character)

    def _sequence(self, text: str) -> Iterator[Message]:
        if text == ESC:
            yield events.Key("escape", ESC)
        elif text.startswith(PASTE):
            yield _paste(text[len(PASTE) : -len(PASTE_ENDS)])
        elif text[1] not in "[O]P" or len(text) == 2:
            yield MetaKey(text[1])
        elif text[1] in "[O" and not text.startswith(MOUSE) and not _is_invalid_size(text):
            messages = list(self._parser.feed(text))
            yield from messages
            if not messages:
                # the parser waits for the end of an unknown sequence: begin with a new one
                self._parser = KeyParser()
                if len(text) == len(ESC + "[]") and text not in ANSI_SEQUENCES_KEYS:
                    yield events.Key("escape", ESC)
                    yield from self._parser.feed(text[1:])


def _is_invalid_size(text: str) -> bool:
    """Whether this reports a size that no terminal has."""
    if not (text.startswith("\x1b[48;") and text.endswith("t")):
        return False
    size = _RESIZE.fullmatch(text)
    rows, columns, *pixels = map(int, size.groups()) if size else (0, 0)
    return not (0 < rows <= MAX_ROWS and 0 < columns <= MAX_COLUMNS and all(pixels))


def _length(text: str, at: int) -> int:
    """Length of the sequence at ``at``; 0 if it is incomplete."""
    kind = text[at + 1 : at + 2]
    if kind == "[":
        return _length_of_csi(text, at)
    if kind == "O":
        return 3 if len(text) >= at + 3 else 0
    if kind in ("]", "P"):
        return _length_of_string(text, at)
    # one Escape after another is a key of its own
    return 0 if not kind else 1 if kind == ESC else 2


def _length_of_string(text: str, at: int) -> int:
    """Length of an answer that is text (a colour, a name), which another program has requested."""
    if text.startswith("\x1b]", at):
        third = text[at + 2 : at + 3]
        if not third.isdecimal():
            return 2 if third else 0
    end = _STRING_ENDS.search(text, at + 2)
    if end is None:
        return 0 if len(text) - at < LONGEST_STRING else 2
    return end.end() - at


def _length_of_csi(text: str, at: int) -> int:
    if text.startswith(PASTE, at):
        end = text.find(PASTE_ENDS, at)
        return end + len(PASTE_ENDS) - at if end >= 0 else 0
    sequence = _CSI.match(text, at)
    if sequence is None:
        partial = _PARTIAL_CSI.match(text, at)
        length = partial.end() - at if partial else 2
        return 0 if at + length == len(text) else length
    if sequence[0] == MOUSE:
        report = _MOUSE_TEXT.match(text, at)
        # a truncated report ends where the next sequence begins
        length = len(report[0]) if report else len(MOUSE)
        return 0 if length < len(MOUSE) + 3 and at + length == len(text) else length
    return len(sequence[0])


def _timeout_s(pending: str) -> float:
    if pending == ESC:
        return float(constants.ESCAPE_DELAY)
    return PASTE_TIMEOUT_S if pending.startswith(PASTE) else SEQUENCE_TIMEOUT_S


def _paste(text: str) -> events.Paste:
    return events.Paste(_CONTROLS.sub("", text.replace("\r", "\n")))
