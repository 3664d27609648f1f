"""Dialogs: a box over the dashboard, which stays visible and live underneath.

A dialog gets every key. Keys that it does not know do nothing, and never reach the screen below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from iopstui.text import printable
from iopstui.ui.core.key import HELP, PAGES, Key, press
from iopstui.ui.draw.style import DIM, KEY, Charset

Result = TypeVar("Result")
Hint = tuple[str, str, str]
"""A key, what it does, and the action of a click on it ("": no action)."""

CLOSE_HINT: Hint = ("Esc", "Close", "screen.leave")
HEADER_ROWS = 3
"""Rows of the dashboard that stay visible above a dialog: its title and the job."""
ROOMY_HEIGHT, NARROW_WIDTH = 30, 90
NARROW_BOX, TITLE_COLUMNS = 40, 6
"""Columns of a narrow dialog, and those of its upper border that the title can't have."""
FRAME_ROWS = 3
"""Rows of a dialog's box besides its body: the border and the keys."""
LIST_KEYS: tuple[BindingType, ...] = (
    Binding("q", "leave", "Close", show=False),
    Binding("question_mark", HELP, "Help", show=False),
    Binding("S", "app." + press("picture"), "Picture", show=False),
    Binding("y", "app." + press("copy"), "Copy", show=False),
)
"""Bindings of dialogs without text input."""
SCROLL_KEYS: tuple[BindingType, ...] = (
    Binding("down", "scroll(1)", show=False),
    Binding("up", "scroll(-1)", show=False),
    Binding("pageup", "page(-1)", show=False),
    Binding("home", "scroll(-1000000)", show=False),
    Binding("end", "scroll(1000000)", show=False),
)
"""Bindings of dialogs with more rows than fit. Page down is bound separately, because some dialogs
also bind Space to it."""


@dataclass(frozen=True, slots=True)
class PageTabs:
    """The pages that one key opens: their titles, the index of the open one, and a function that
    opens one."""

    name: str
    titles: Sequence[str]
    index: int
    open: Callable[[int], None]

    def text(self, heading: str) -> str:
        """All titles. The open one is in brackets, and ``heading`` follows if it differs."""
        titles = [
            f"[{title}]" if index == self.index else title
            for index, title in enumerate(self.titles)
        ]
        more = "" if heading == self.titles[self.index] else f" · {heading}"
        return f"{self.name} › {'  '.join(titles)}{more}"


LEADS_OUT = ("Esc", "?", "q")
"""Keys that a line of keys always has."""


class KeyLine(Static):
    """The last line of a dialog: its keys, which can be clicked. In a narrow one the last of them
    are left out, but never the keys that lead out of it."""

    def __init__(self, hints: Iterable[Hint], charset: Charset) -> None:
        super().__init__(classes="modal-keys")
        self._charset = charset
        self.first_hints: tuple[Hint, ...] = ()
        """The hints that are shown before all others."""
        self._hints: tuple[Hint, ...] = ()
        self._note = self.text = ""
        self.show(hints)

    def show(self, hints: Iterable[Hint], note: str = "") -> None:
        """Show these keys, with a ``note`` in front."""
        self._hints, self._note = (*self.first_hints, *hints), note
        self._draw(self._hints)

    def on_resize(self) -> None:
        self._draw(self._hints)

    def _draw(self, hints: Sequence[Hint]) -> None:
        line = Text(no_wrap=True, overflow="ellipsis")
        if self._note:
            line.append(self._charset.text(self._note) + "   ", KEY)
        for key, does, action in hints:
            click = Style(meta={"@click": action}) if action else Style()
            line.append(self._charset.text(key), KEY + click)
            line.append(f" {self._charset.text(does)}", DIM + click)
            line.append("  ")
        line.rstrip()
        may_go = [hint for hint in hints[1:] if not {*hint[0].split()} & {*LEADS_OUT}]
        if may_go and self.size.width and line.cell_len > self.size.width:
            self._draw([hint for hint in hints if hint is not may_go[-1]])
            return
        self.text = line.plain
        self.update(line)


class Modal(ModalScreen[Result]):
    """A centred box with a title on its border; Esc closes it.

    ``size_class`` is a class in the style sheet: "narrow", "small", "wide", "tall" or "broad"."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Close", show=False),
        Binding("f1", HELP, "Help", show=False),
        Binding("tab", "tab(1)", "Next page", show=False),
        Binding("shift+tab", "tab(-1)", "Page before", show=False),
    ]
    size_class = "small"
    about = ""
    """The purpose of this dialog, for the help."""

    def __init__(
        self,
        title: str,
        charset: Charset,
        hints: Sequence[Hint] = (CLOSE_HINT,),
        opened_by: Key | None = None,
    ) -> None:
        super().__init__()
        self.heading, self.note = title, ""
        self.body_height = 1
        self.charset = charset
        self.keys = KeyLine(hints, charset)
        self._hints = tuple(hints)
        self.tabs: PageTabs | None = None
        self.is_leaving = False
        """Whether the dialog is closing: it is still attached, but its widgets may be gone."""
        if opened_by is not None:
            # the key that opened the dialog also closes it
            self._bindings.bind(opened_by.names, "leave", "Close", show=False)
        if opened_by in PAGES.values():
            for action, other in PAGES.items():
                if other != opened_by:
                    self._bindings.bind(other.names, f"app.page({action!r})", show=False)

    def compose(self) -> ComposeResult:
        """The box: ``content``, then the keys."""
        with Vertical(classes=f"modal-box {self.size_class} {self.charset.name}"):
            yield from self.content()
            yield self.keys

    def content(self) -> ComposeResult:
        raise NotImplementedError

    def with_tabs(self, tabs: PageTabs) -> Modal[Result]:
        """Make the dialog one page of several. Call this before it is pushed."""
        self.tabs = tabs
        numbers = range(1, len(tabs.titles) + 1)
        for number in numbers:
            self._bindings.bind(str(number), f"tab({number - 1 - tabs.index})", show=False)
        self.keys.first_hints = ((f"Tab 1-{numbers[-1]}", "Pages", "screen.tab(1)"),)
        self.show_hints()
        return self

    def show_hints(self, note: str = "", clears: bool = False) -> None:
        """Show the dialog's keys after ``note``. ``clears``: Esc first clears the typed text."""
        clear = (CLOSE_HINT[0], "Clear", "")
        hints = (clear if clears and hint[0] == clear[0] else hint for hint in self._hints)
        self.keys.show(tuple(hints), note)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let Tab move the focus if there are no other pages."""
        return self.tabs is not None if action == "tab" else True

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        self.is_leaving = True
        return super().dismiss(result)

    def action_tab(self, by: int) -> None:
        """Open a page in place of this one: the next one, or that which is ``by`` titles away."""
        if self.tabs is not None and by:
            self.dismiss(None)
            self.tabs.open((self.tabs.index + by) % len(self.tabs.titles))

    @property
    def box(self) -> Vertical:
        return self.query_one(".modal-box", Vertical)

    @property
    def copied_title(self) -> str:
        """The title; on a page with tabs the name of the page and of the tab: "Who › Cgroups"."""
        tabs = self.tabs
        return self.heading if tabs is None else f"{tabs.name} › {tabs.titles[tabs.index]}"

    def set_title(self, title: str, note: str = "") -> None:
        self.heading, self.note = title, note
        below = [screen.heading for screen in self.app.screen_stack if isinstance(screen, Modal)]
        trail = below[: below.index(self.heading)] if self.heading in below else below
        text = self.tabs.text(title) if self.tabs is not None else title
        whole = self.clean(" › ".join([*trail, text]))
        self.box.border_title = Text(whole)
        if self.size_class == "narrow":
            self.box.styles.max_width = max(NARROW_BOX, cell_len(whole) + TITLE_COLUMNS)
        self.box.border_subtitle = Text(self.clean(note))

    def clean(self, text: str) -> str:
        """``text`` with only characters that this terminal can show."""
        return self.charset.text(printable(text))

    def _on_mount(self, event: events.Mount) -> None:
        self.set_title(self.heading, self.note)
        self._fit()
        self.call_after_refresh(self._fit)

    def on_resize(self, event: events.Resize) -> None:
        """Keep the dashboard's header visible on low terminals."""
        self._fit()
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        width, height = self.app.size
        # over another dialog its border would hide a part of that one's lowest row
        stack = self.app.screen_stack
        below = stack[: stack.index(self)] if self in stack else stack
        nested = any(isinstance(screen, Modal) for screen in below)
        self.set_class(height < ROOMY_HEIGHT and not nested, "-low")
        self.set_class(width < NARROW_WIDTH, "-narrow-screen")
        self.set_class(width < 40 or height < 14, "-tiny")
        rows = max(3, height - HEADER_ROWS) if height >= 14 else height
        self.box.styles.max_height = rows
        self.body_height = max(1, rows - FRAME_ROWS)
        bodies = {*self.query(".modal-fit")}
        above = sum(part.size.height for part in {*self.box.children} - {*bodies, self.keys})
        for body in bodies:
            body.styles.max_height = max(1, self.body_height - above)

    def action_leave(self) -> None:
        self.dismiss(None)
