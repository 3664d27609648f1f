"""What this user chose for the screen, and which edition of the keys the user has seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from iopstui.safety.journal import state_directory

FILE = "screen-used"
"""A file in the state directory: the edition of the keys that the user has seen."""
EDITION = "2"
"""Changed each time that keys move; ``MOVED`` is then shown once."""
MOVED = (
    "Keys that moved since your last version (shown once)",
    (
        ("C, x, i", "pages of u: cgroups, slowest requests, inside the kernel (Tab)"),
        ("W", "a page of o: where the I/Os wait, and the queue map"),
        ("R, H", "S: record, write a report, or save the screen"),
        ("g, V, T, B, A", "ctrl+p: overlay runs, base run, themes, bind queues, A/B of a setting"),
        ("Esc", "one level up everywhere; from the dashboard it leads home"),
    ),
)


def is_first_use() -> bool:
    """True once for each user."""
    try:
        file = state_directory() / FILE
        if file.exists():
            return False
        file.touch(mode=0o600)
        file.write_text(EDITION)
    except OSError:
        return False
    return True


def keys_moved() -> bool:
    """True once after keys have moved, for a user of an earlier version."""
    try:
        file = state_directory() / FILE
        if file.read_text(errors="replace") == EDITION:
            return False
        file.write_text(EDITION)
    except OSError:
        return False
    return True


BROWSER_DRIVER = "iopstui.ui.core.terminal.browser_driver:BrowserDriver"
"""The value of TEXTUAL_DRIVER for a screen that `iopstui serve` shows in a browser."""


class Preferences:
    """``remember`` writes a key of the configuration file, and may raise OSError."""

    def __init__(self) -> None:
        self.mouse = True
        """Whether the mouse is used."""
        self.notify = False
        """Whether the terminal notifies when a run ends or a finding appears (OSC 9)."""
        self.layout = ""
        """The dashboard's layout, as in the configuration."""
        self.fleet_layout = ""
        """The layout of a fleet's dashboard (its feature checks it)."""
        self.previewing = False
        """True while a choice is only previewed, not saved."""
        self.remember: Callable[[str, str | bool], object] = lambda key, value: None


PREFERENCES = Preferences()
"""The preferences of this process, which has one terminal and one configuration."""


# A dashboard's layout in the configuration file.


PANELS = ("iops", "latency", "numbers", "cpus", "runs", "completions")
"""The panels, in the order of the keys 1 to 6."""
DOT_SECONDS = (1, 2, 5, 10, 30, 60, 300, 900)
"""The seconds that a column of a chart can show."""
ZOOMED, HEAT_MAP, PERCENTILES = "zoomed", "heat-map", "percentiles"


@dataclass(frozen=True, slots=True)
class SavedLayout:
    """A dashboard's layout, as it is saved. ``panel`` is the panel that a small screen shows ("":
    the default). ``own`` are settings that only one kind of dashboard has, such as "zoomed" (the
    panel fills a large screen, too). ``seconds`` is the time that a column of a chart covers. The
    text of a layout lists the settings that differ from the default, e.g. "latency zoomed heat-map
    10s"."""

    panel: str = ""
    own: tuple[str, ...] = ()
    heat_map: bool = False
    percentiles: bool = False
    seconds: int = DOT_SECONDS[0]

    def __str__(self) -> str:
        settings = (
            self.panel,
            *self.own,
            HEAT_MAP if self.heat_map else "",
            PERCENTILES if self.percentiles else "",
            f"{self.seconds}s" if self.seconds != DOT_SECONDS[0] else "",
        )
        return " ".join(setting for setting in settings if setting)


def parse_layout(
    text: str, panels: Sequence[str] = PANELS, own: Sequence[str] = (ZOOMED,)
) -> SavedLayout:
    """Parse the text of a layout for a dashboard with these ``panels`` and ``own`` settings, which
    may be in any order. Raises ValueError for an unknown word."""
    settings = text.split()
    lengths = {f"{seconds}s": seconds for seconds in DOT_SECONDS}
    allowed = (*panels, *own, HEAT_MAP, PERCENTILES, *lengths)
    wrong = next((setting for setting in settings if setting not in allowed), None)
    if wrong is not None:
        raise ValueError(f"{wrong!r} is not one of {', '.join(allowed)}")
    return SavedLayout(
        next((setting for setting in settings if setting in panels), ""),
        tuple(word for word in own if word in settings),
        HEAT_MAP in settings,
        PERCENTILES in settings,
        next((lengths[setting] for setting in settings if setting in lengths), DOT_SECONDS[0]),
    )
