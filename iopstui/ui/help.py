"""The help: every key, every panel, every abbreviation and flag."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from iopstui import format as f
from iopstui.discovery import feature_modules
from iopstui.model.answer.judge import WINDOW
from iopstui.model.figures.disk import DiskRates
from iopstui.session.run_rows import DISTURBED
from iopstui.tables import Column
from iopstui.ui.actions import help_rows
from iopstui.ui.core import key
from iopstui.ui.core.preferences import MOVED, keys_moved
from iopstui.ui.dashboard.panels import cpu_panel, kernel_panel
from iopstui.ui.dialogs.text import TextScreen, TypeToFilter
from iopstui.ui.draw.style import BOLD, KEY, Charset
from iopstui.ui.experiment.rows import DISTURBED_MEANING
from iopstui.ui.experiment.rows import HELP as EXPERIMENT_HELP
from iopstui.ui.home import screen as home
from iopstui.ui.keys import FEATURE_PARTS, LIVE_ACTIONS, REPLAY_ONLY
from iopstui.ui.parts import replay

Section = tuple[str, tuple[tuple[str, str], ...]]
HELPS = [*feature_modules("screen_help")]
"""Modules of features that have their own screens, with ``ACTIONS`` below a ``TITLE``, and
``PANELS``."""

KEYS = "Keys of the dashboard"
SCREENS: tuple[Section, ...] = (
    (home.HELP, home.HELP_ROWS),
    *(part.HELP for part in FEATURE_PARTS if part.HELP[0]),
    (
        EXPERIMENT_HELP,
        (
            ("esc, w, c", "to the dashboard, and back; the experiment continues"),
            ("0, 1 2 3 4, tab", "all panes, or one on the whole screen (4: further figures)"),
            ("up down", "scroll the box whose border shows these arrows"),
            ("n", "plan a new one after the end; the result stays until it starts"),
            ("settle", "the first seconds of each run, not measured"),
            ("knee", "the point with the best ratio of IOPS to latency: beyond it, mainly "
                     "latency grows. Shown when all points are measured"),
            ("N=X*R of", "Little's law: I/Os in flight = IOPS x mean latency. \"of\" is what the "
                         "job asks for; ! marks a difference of more than 10 %"),
            ("a b c, A B C", "points of the lines: small letters are means, capitals p99"),
            ("A B in a comparison", "one second of a run of this variant; the line is the mean "
                                    "of the run"),
            ("*", "a significant difference (5 % level); *? if runs were disturbed"),
            (DISTURBED, DISTURBED_MEANING),
        ),
    ),
)  # fmt: skip
"""Keys of screens other than the dashboard, and their terms."""


WITH_UNIT = (*f.DENSE, *f.DENSE.values())
"""Forms that write the unit themselves, which fits the value: "54 µs"."""


def _figures(columns: Iterable[Column]) -> Iterator[tuple[str, str]]:
    """What the figures of a table mean, with their units."""
    for column in columns:
        if column.meaning:
            unit = f" [{column.unit}]" if column.unit and column.form not in WITH_UNIT else ""
            yield column.title, f"{column.meaning}{unit}"


PANELS: tuple[Section, ...] = (
    (
        "Charts",
        (
            ("IOPS", "I/Os per second: the line is fio's count, the shaded area the device's. "
                     "Area below the line: merged requests, or a cache. Area above it: split "
                     "requests, or another program uses the device"),
            ("latency", "fio's p50, p99 and p99.9 of each second, logarithmic scale"),
            ("heat map", "each column is the histogram of one second: the fuller a cell, the "
                         "more I/Os took that long; · is at least one"),
            ("time", "now is at the right edge; a chart first spans all there is"),
            ("gaps", "nothing was measured; a gap is never drawn as 0"),
            ("│ with words", "a mark: a run started, a tunable changed, or you pressed m"),
            ("│ as a band", "a stall: nothing completed while requests were in flight"),
        ),
    ),
    (
        "Answer, the first line",
        (
            ("busy, on average, p99", f"of the last {WINDOW} seconds together"),
        ),
    ),
    (
        "Who uses the disk (3 without a job; u: all processes)",
        (
            ("at least", "the part of the disk's bytes that is certainly this process's: the "
                         "rest of its bytes may be of files that it has open on other disks"),
            ("MiB/s", "its bytes by /proc/PID/io: reads from disks, writes when they are made, "
                      "though the page cache may write them later"),
            ("p50, p99", "of the requests that it sent itself, in the device (kernel probe)"),
        ),
    ),
    (
        "fio, this second",
        (
            ("IOPS, MiB/s", "completed I/Os and bytes (1 MiB = 1048576 bytes) per second"),
            ("slat", "submission latency, mean: from creating an I/O to its submission to the "
                     "kernel"),
            ("clat", "completion latency, mean: from submission to completion"),
            ("p50 ... p99.99", "p99.9: 99.9 % of the second's I/Os took at most this; from fio's "
                               "histogram, accurate to 0.8 %. Of a whole run: key v"),
            ("max", "the slowest I/O of the second, also accurate to 0.8 %"),
            ("depth", "how many I/Os were in flight when one was issued, in percent of the "
                      "I/Os"),
            ("job CPU", "user and system time of all fio jobs, percent of one CPU"),
            ("ctx/s", "context switches of fio's jobs per second"),
            ("over ... s", "length of the interval"),
        ),
    ),
    (
        "Device (iostat), this second (/proc/diskstats; names as in iostat -x)",
        (
            *_figures(kernel_panel.COLUMNS),
            ("fields", "field numbers in /proc/diskstats, as in the kernel's iostats.rst: r/s 1, "
                       "rrqm/s 2, rMB/s 3, r_await 4/1, w/s 5, wrqm/s 6, wMB/s 7, w_await 8/5, "
                       "infl 9, util 10, aqu-sz 11, d/s 12, f/s 16"),
            ("└name", "a device below the target: it counts the same I/O again; ×2: it is below "
                      "two of the devices above"),
            ("sum of 2", "the job's devices, each counted once; awaits are total waiting time "
                         "over all requests, util has no sum"),
            ("nvme0 47 °C", "what the NVMe drive reports of itself every 10 s; bytes count from "
                            "the start of the run"),
            ("util% <5", "the kernel's ticks found no request, though some completed, or were more "
                         "than all requests took: busy for at most this share of the time (in "
                         "flight on average × 100)"),
            ("rMB/s, wMB/s", "iostat's names; the unit is MiB/s, as in all other panels"),
            ("–", "no such requests"),
        ),
    ),
    (
        "CPUs, this second",
        (
            ("hctx", "hardware queue that this CPU submits to (+: several; –: none)"),
            ("job", "fio jobs last seen on this CPU; *: bound to it; \"0 +3\": four jobs"),
            *_figures(cpu_panel.COLUMNS),
            ("I/Os per interrupt", "completions per interrupt of the device"),
            ("inside the hard interrupt", "the kernel completes I/O there, so BLOCK/s is 0 "
                                          "although the device is busy"),
            ("cells", "one cell per CPU on large machines, fuller is busier; gaps separate "
                      "groups that share a cache; then the busiest CPUs and the sum"),
            ("busy", "everything except idle and iowait, as a bar"),
        ),
    ),
    (
        "runs (v: all of them)",
        (
            ("what was changed", "job options and tunables that differ from the run before; for "
                                 "the first run its settings. Runs of less than a second are "
                                 "left out"),
            ("IOPS, MiB/s", "means over the measured seconds, without the ramp"),
            ("before, base", "difference in IOPS from the run before, and from the base run"),
            ("mean, p50, p99, p99.9", "latency of all I/Os of the run (clat, or lat if fio has "
                                      "its histogram of that): p99.9 is what 99.9 % of them took "
                                      "at most, and no mean of the seconds' p99.9"),
            (f"util% {DiskRates.aqu_sz.name}", "means of the device over the run"),
        ),
    ),
    *(section for module in HELPS for section in module.PANELS),
    (
        "Notes next to the figures",
        (
            ("ramp", "ramp_time: fio warms up and does not measure latencies yet"),
            ("late", "fio's report is overdue; its last figures stay"),
            ("a short interval", "the first or last part of a second"),
            ("gtod_reduce", "the job tells fio not to read the clock: no latencies"),
            ("submissions", "fio's count of issued I/Os, if completions are unknown"),
            ("creating its file", "the scratch file is created first, without measuring"),
        ),
    ),
)  # fmt: skip


def help_sections(first: str = "", in_replay: bool = False) -> tuple[Section, ...]:
    """Return all sections in the order of the help screen; ``first`` is the title of the first
    section. ``in_replay``: without keys that do nothing in a recording."""
    keys = [action for action in LIVE_ACTIONS if not in_replay or replay.works_in_replay(action)]
    sections = (
        (KEYS, help_rows(keys)),
        *SCREENS,
        (replay.HELP, help_rows(REPLAY_ONLY)),
        *((module.TITLE, help_rows(module.ACTIONS)) for module in HELPS),
        *PANELS,
    )
    return tuple(sorted(sections, key=lambda section: section[0] != first))


# The help, on top of the current screen.


MATCH = "screen.next_match"
NO_MATCH = "No entry of the help has all of these words."


class HelpScreen(TypeToFilter, TextScreen):
    """Sections of (term, meaning). Typing searches them at once, so that no word is mistaken for
    keys; Enter shows each match among the other entries."""

    BINDINGS = [  # noqa: RUF012 (Textual's own form)
        Binding(key.HELP_KEY.names, "leave", "Close"),
        Binding("enter", "next_match", "Next match", show=False),
    ]
    typing_from_start = _typing = True
    _shown_match = -1
    """The number of the match that is shown among all entries; below 0: only matches are shown."""

    def __init__(self, about: str, sections: Sequence[Section], charset: Charset) -> None:
        self._about, self._sections = about, sections
        super().__init__("Help", _help_text(about, sections, charset), charset)
        self.show_hints(self.filter_hint)

    @property
    def filter_hint(self) -> str:
        return f"Search: {self.filter_text}▏"

    def show_hints(self, note: str = "", clears: bool = False) -> None:
        """Offer Enter while there is something to search."""
        others = tuple(hint for hint in self._hints if hint[2] != MATCH)
        text = "Next match" if self._shown_match >= 0 else "Show it in the whole help"
        self._hints = (("Enter", text, MATCH), *others) if self.filter_text.strip() else others
        super().show_hints(note, clears)

    def action_next_match(self) -> None:
        """Show all entries, scrolled to the first match, then to the next one."""
        matches = [
            (title, entry)
            for title, entries in self._sections
            for entry in entries
            if self.filter_text.strip() and self.matches(title, *entry)
        ]
        if not matches:
            return
        self._shown_match = (self._shown_match + 1) % len(matches)
        self.show_hints(self.filter_hint, clears=True)
        match, body = matches[self._shown_match], self.query_one(VerticalScroll)
        content = self.query_one("#text-body > Static", Static)
        content.update(_help_text("", self._sections, self.charset, match))
        before = [*_sections_before(self._sections, match)]
        options = self.app.console.options.update(width=content.size.width)
        above = _help_text("", before, self.charset) if before else Group()
        # the title of the section stays visible
        y = max(0, len(self.app.console.render_lines(above, options)) - 2)
        # the longer text is laid out by the first refresh
        self.call_after_refresh(
            self.call_after_refresh, lambda: body.scroll_to(y=y, animate=False, immediate=True)
        )

    def apply_filter(self) -> None:
        """Show the entries that match the filter, and all entries of a matching title."""
        self._shown_match = -1
        sections = []
        for title, entries in self._sections:
            matching = tuple(entry for entry in entries if self.matches(title, *entry))
            if matching:
                sections.append((title, matching))
        about = "" if self.filter_text.strip() else self._about
        text = _help_text(about, sections, self.charset) if sections else Text(NO_MATCH, style=BOLD)
        self.query_one("#text-body > Static", Static).update(text)
        self.query_one(VerticalScroll).scroll_home(animate=False)


def _sections_before(
    sections: Sequence[Section], match: tuple[str, tuple[str, str]]
) -> Iterator[Section]:
    """All that is above an entry."""
    title, entry = match
    for name, entries in sections:
        if name == title:
            yield name, entries[: entries.index(entry)]
            return
        yield name, entries


def _help_text(
    about: str, sections: Sequence[Section], charset: Charset,
    match: tuple[str, tuple[str, str]] | None = None,
) -> Group:  # fmt: skip
    parts: list[Text | Table] = []
    if about:
        parts += [Text("Here", style=BOLD), Text(charset.text(f"  {about}")), Text()]
    for title, entries in sections:
        parts.append(Text(charset.text(title), style=BOLD))
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(width=2 + max((len(term) for term, _ in entries), default=0))
        table.add_column(ratio=1)
        for term, meaning in entries:
            is_match = match == (title, (term, meaning))
            table.add_row(
                Text("> " if is_match else "  ").append(charset.text(term), KEY),
                Text(charset.text(meaning), BOLD if is_match else ""),
            )
        parts += [table, Text()]
    return Group(*parts)


def help_screen(
    charset: Charset, about: str = "", first: str = "", in_replay: bool = False
) -> HelpScreen:
    """The help: first ``about``, the help of the current screen, then the section with the title
    ``first``, then all others."""
    sections = help_sections(first, in_replay)
    return HelpScreen(about, (MOVED, *sections) if keys_moved() else sections, charset)
