"""What the parts of the application (ui/*_keys.py) know of each other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from textual.app import App

from iopstui.ui.messages import Controller, ShippedJob
from iopstui.ui.screens.dashboard import Dashboard
from iopstui.ui.state import LiveState
from iopstui.ui.style import Charset

Command = tuple[str, str, Callable[[], Any]]
"""Of the command palette: title, words, what it does."""


class AppPart(App[int]):
    """Keys and what they do; the whole is ui/app.py, which comes of all parts."""

    charset: Charset
    state: LiveState
    controller: Controller | None
    dashboard: Dashboard | None
    overrides: dict[str, str]
    """fio options that were turned."""
    jobs: Sequence[ShippedJob]

    @abstractmethod
    def _say(self, level: str, text: str) -> None:
        """A message of the screen's own."""

    @abstractmethod
    def _refresh_hints(self) -> None:
        """The footer's keys."""

    @property
    @abstractmethod
    def job(self) -> str:
        """The job that r runs."""

    @abstractmethod
    def _turned(self, option: str, words: str) -> None:
        """The next run differs from the running one by ``words``, which tell ``option``: it is
        started anew."""

    @abstractmethod
    def forget_pending(self) -> None:
        """A knob that was turned just now no longer starts the job anew."""

    @property
    @abstractmethod
    def experimenting(self) -> bool:
        """True while an experiment runs."""

    @abstractmethod
    def experiment_holds(self) -> bool:
        """True, and said, while an experiment must not be disturbed."""

    @abstractmethod
    def action_stop_experiment(self) -> None:
        """x"""
