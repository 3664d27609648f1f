"""Where the I/Os in flight wait: a page with the last minutes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.style import Style

from iopstui import format as f
from iopstui.model.figures.figure import by_name
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.shares import RPC_QUEUE, SENT
from iopstui.model.metrics.waits import CACHE, UNSENT, MeanWaits, Waits
from iopstui.model.network import CONNECTION, Connection
from iopstui.tables import Column
from iopstui.ui.dashboard.panels import waits_bar
from iopstui.ui.dashboard.panels.waits_bar import Part, parts, value_text
from iopstui.ui.draw import density
from iopstui.ui.draw.rows import Line, Row, fit, listing, message, rule, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, WARNING, Charset
from iopstui.ui.state.live import LiveState

MIN_SHARE = 0.02
"""In its curve, a part with less than this share of the I/Os is only a dot."""
MEAN_SECONDS = 60
NAME, NUMBER = 22, 9
TOTAL = "total"
NO_IO = "No I/O in flight was measured in this second."
EXPLANATION = (
    "I/Os in flight = IOPS × mean latency (Little's law). Each row is a place where they wait, "
    "from the program down to the device; the rows add up to the total."
)
LAYER_MEANINGS = {
    "CPU": "ready to run, but no CPU is free",
    "above": "file system, locks, cgroup limit, the job's own work",
    CACHE: "reads that it answers, and buffered writes",
    UNSENT: "of an engine that only pretends to do I/O (null)",
    "queue": "I/O scheduler, or waiting for a tag",
    "device": "issued to the device, not completed",
    "unknown": "no counter shows where",
    RPC_QUEUE: "in the NFS client, before it is sent (exe - RTT)",
    SENT: "sent, and not answered yet (RTT)",
}

SIGNS = f"·: almost none in that second. Blank, {f.MISSING}: not known."


def rows(state: LiveState, history: Sequence[Frame], width: int, charset: Charset) -> list[Row]:
    """The page: the newest second, then each place where I/Os wait, with its mean and its last
    seconds. ``history`` are the frames up to the shown second, the oldest first."""
    waits = state.frame.waits if state.frame is not None else None
    page = wrap(width, charset, EXPLANATION, DIM)
    if waits is None or not waits.ios:
        below = connection_rows(_connections(state), width, charset)
        return [*page, message(width, charset, ""), message(width, charset, NO_IO), *below]
    newest = history[-MEAN_SECONDS:]
    bar = waits_bar.line(waits, width, charset)
    page += [message(width, charset, ""), *([bar] if bar else []), message(width, charset, "")]
    alike = _alike(waits, newest)
    page.append(_head(width, charset, len(newest), len(alike)))
    total = MeanWaits()
    for frame in alike:
        total.add(frame.waits, frame.seconds)
    mean = total.value
    most = max([frame.waits.ios for frame in newest if frame.waits is not None] or [0.0])
    for name, value, style in (*parts(waits), (TOTAL, waits.ios, BOLD)):
        values = [_part_value(frame.waits, name) for frame in newest]
        numbers = (value, _part_value(mean, name))
        page.append(_row(name, numbers, waits.ios, values, most, style, width, charset))
    if waits.queue is not None and waits.device is not None:
        page += [message(width, charset, ""), rule(width, charset, ("In the lowest device", BOLD))]
        for name, value in (("queue", waits.queue), ("device", waits.device)):
            values = [getattr(frame.waits, name, None) for frame in newest]
            numbers = (value, getattr(mean, name, None))
            page.append(_row(name, numbers, waits.ios, values, most, DEVICE, width, charset))
    page += [message(width, charset, ""), *_legend_rows(parts(waits), width, charset)]
    page += wrap(width, charset, SIGNS, DIM)
    return [*page, *connection_rows(_connections(state), width, charset)]


def _connections(state: LiveState) -> Sequence[Connection] | None:
    return state.frame.connections if state.frame is not None else None


def _alike(now: Waits, newest: Sequence[Frame]) -> list[Frame]:
    """The seconds whose means can be added up, because they have the same parts as ``now``: all
    with a job, or all without. If only some of the seconds have a part, the others are left out."""
    alike = [frame for frame in newest if frame.waits is not None and not frame.waits.stalled
             and (frame.waits.above is None) == (now.above is None)]  # fmt: skip
    for part in ("cpu", "queue"):
        alike = [one for one in alike if getattr(one.waits, part) is not None] or alike
    return alike


def _part_value(waits: Waits | None, name: str) -> float | None:
    """One part of the I/Os in flight, or the total; ``None`` if it is not known."""
    if waits is None:
        return None
    if name == TOTAL:
        return waits.ios
    return next((value for part, value, _ in parts(waits) if part == name), None)


def _head(width: int, charset: Charset, seconds: int, alike: int) -> Row:
    head = Line(width, charset).add("PLACE".ljust(NAME), BOLD)
    for title in ("now", "share", f"{alike}s mean" if alike else "mean"):
        head.add(title.rjust(NUMBER), BOLD)
    return head.add(f"   last {seconds} s", BOLD).build()


def _row(
    name: str, numbers: tuple[float | None, float | None], total: float,
    history: Sequence[float | None], most: float, style: Style | None, width: int, charset: Charset,
) -> Row:  # fmt: skip
    now, mean = numbers
    share = f.MISSING if now is None else f"{100 * now / total:.0f} %"
    line = Line(width, charset).add(fit(name, NAME - 1) + " ", style)
    for text in (value_text(now), share, value_text(mean)):
        line.add(text.rjust(NUMBER))
    curve_width = width - line.used - 3
    return line.add("   ").extend([(_curve(history[-curve_width:], most, charset), style)]).build()


def _curve(history: Sequence[float | None], most: float, charset: Charset) -> str:
    """A character for each second; a blank if the value is not known."""
    steps = density.bars(charset)
    curve = ""
    for value in history:
        if value is None:
            curve += " "
        elif value < most * MIN_SHARE or not most:
            curve += charset.text("·")
        else:
            curve += steps[min(len(steps) - 1, int(value / most * len(steps)))]
    return curve


def _legend_rows(parts_shown: Sequence[Part], width: int, charset: Charset) -> list[Row]:
    lines: list[Row] = []
    for name, _, style in parts_shown:
        meaning = LAYER_MEANINGS.get(name, "in this device, and not in one below it")
        label = fit(name, NAME - 1) + " "
        for line in textwrap.wrap(meaning, max(NAME, width - NAME)):
            lines.append(Line(width, charset).add(label, style).add(line, DIM).build())
            label = " " * NAME
    return lines


# TCP connections to the target's file servers, for the page on waiting I/Os.


MAX_ROWS = 16
ABOUT = (
    "RTT: round trip of a packet (smoothed by the kernel); the rest of a request's time passes in "
    "the server and in queues. queue: bytes not acknowledged yet. window: share of the time in "
    "which the server's full receive window stopped the connection."
)
_ROWS = by_name(CONNECTION)
COLUMNS = (
    Column("", "server, local port", 30,
           read=lambda each: f"{each.server} {each.kind} :{each.local_port}"),
    _ROWS["rtt"].screen_column(DEVICE, title="RTT"),
    _ROWS["min_rtt"].screen_column(title="min"),
    _ROWS["retrans"].screen_column(style_of=lambda each: WARNING if each.retrans else None),
    _ROWS["sent"].screen_column(title="sent MB/s"),
    _ROWS["received"].screen_column(title="recv MB/s"),
    _ROWS["send_queue"].screen_column(title="queue"),
    _ROWS["cwnd"].screen_column(),
    _ROWS["rwnd_limited"].screen_column(title="window", form=lambda it: f"{f.percent(it)} %"),
)  # fmt: skip


def connection_rows(
    connections: Sequence[Connection] | None, width: int, charset: Charset
) -> list[Row]:
    """A horizontal line, a row for each connection, and an explanation; no rows without
    connections."""
    if not connections:
        return []
    title = rule(width, charset, ("connections", BOLD), (" (sock_diag, as ss -ti)", DIM))
    return [
        message(width, charset, ""), title,
        *listing(COLUMNS, connections, width, charset, MAX_ROWS), *wrap(width, charset, ABOUT),
    ]  # fmt: skip
