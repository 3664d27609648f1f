"""Handles keys one after another, so that each sees the effects of the one before.

Textual hands a key to the widget that has the focus when it arrives. If ":rwmixread=70" arrives in
one packet, the text would go to the screen below, before ":" has opened the input; a letter after
Backspace would be handled first, because bindings are looked up last."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Any, Protocol, runtime_checkable

from textual import events
from textual.app import App, ScreenStackError
from textual.command import CommandPalette
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import WorkerState

from iopstui.ui.core.terminal.terminal_input import KeyParser, MetaKey, limit_size

KEY_TIMEOUT_S = 2.0
"""Time limit for handling a key; then the next key follows."""
REMOVAL_TIMEOUT_S = 0.25
"""Time limit for a widget that was removed meanwhile."""
INTERRUPT = "ctrl+c"
ALT_KEYS = {"b": "ctrl+left", "f": "ctrl+right"}
"""The keys that some terminals send for Alt with an arrow, in an input field."""


@runtime_checkable
class AnsweringScreen(Protocol):
    """A screen that waits for an answer to typed text; until then ``answered`` is not set."""

    answered: asyncio.Event


class KeysInOrder(App[int]):
    """Takes keys and pastes one by one."""

    _queued_keys: deque[events.Event]
    _handling = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._queued_keys = deque()

    @property
    def typing(self) -> bool:
        """True while a key is handled or waiting."""
        return self._handling

    @property
    def _is_over(self) -> bool:
        """True if no screen is left."""
        return self._exit or not self._screen_stacks[self._current_mode]

    async def on_event(self, event: events.Event) -> None:
        """Queue keys and pastes until the one before is handled; limit sizes."""
        if isinstance(event, events.InputEvent | events.Paste) and self._is_over:
            return
        if isinstance(event, events.Resize):
            event = _limited(event)
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
            return
        if isinstance(event, events.Key) and event.key == INTERRUPT:
            # as in a terminal, Ctrl+C discards what was typed before
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
        """The first of two keys that arrived as one."""
        if isinstance(self.focused, Input) and event.follows in ALT_KEYS:
            return events.Key(ALT_KEYS[event.follows], None)
        self._queued_keys.appendleft(_key(event.follows))
        return events.Key("escape", "\x1b")

    async def _continue_when_handled(self) -> None:
        with contextlib.suppress(asyncio.TimeoutError, ScreenStackError):
            await asyncio.wait_for(self._wait_until_handled(), KEY_TIMEOUT_S)
        self.call_later(self._handle_next)

    async def _wait_until_handled(self) -> None:
        """Wait until screen and focus stay the same while all nodes from the focus to the
        application have handled their messages."""
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
        """Wait until the palette has searched, because Enter takes its results."""
        screen: Screen[Any] = self.screen
        if not isinstance(screen, CommandPalette):
            return
        for worker in list(self.workers):
            running = worker.state in (WorkerState.PENDING, WorkerState.RUNNING)
            if running and isinstance(worker.node, Widget) and worker.node is screen:
                with contextlib.suppress(Exception):
                    await worker.wait()


async def _wait_until_idle(node: MessagePump) -> None:
    """Wait until ``node`` has handled all its current messages."""
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
