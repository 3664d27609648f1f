"""Places of the I/Os in flight: a page with the last minutes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.style import Style

from iopstui import format as f
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.shares.share_waits import RPC_QUEUE, SENT
from iopstui.model.metrics.waits import MeanWaits, Waits
from iopstui.model.network.connections import Connection
from iopstui.ui.dashboard.pages import connections_view
from iopstui.ui.dashboard.panels import waits_bar
from iopstui.ui.dashboard.panels.waits_bar import Part, parts, value_text
from iopstui.ui.draw import density
from iopstui.ui.draw.rows import Line, Row, message, rule, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, Charset
from iopstui.ui.state.live import LiveState

MIN_SHARE = 0.02
"""A part with less than this share of the I/Os is a dot in its curve."""
MEAN_SECONDS = 60
NAME, NUMBER = 22, 8
TOTAL = "total"
NO_IO = "No I/O in flight was measured in this second."
EXPLANATION = (
    "I/Os in flight = IOPS × mean latency (Little's law). Each row is a place where they wait, "
    "from the program down to the device; the rows add up to the total."
)
LAYER_MEANINGS = {
    "CPU": "ready to run, but no CPU is free",
    "above": "page cache, file system, cgroup limit, the job's own work",
    "queue": "I/O scheduler, or waiting for a tag",
    "device": "issued to the device, not completed",
    "unknown": "no counter shows where",
    RPC_QUEUE: "in the NFS client, before it is sent (exe - RTT)",
    SENT: "sent, and not answered yet (RTT)",
}

SIGNS = f"·: almost none in that second. Blank, {f.MISSING}: not known."


def rows(state: LiveState, history: Sequence[Frame], width: int, charset: Charset) -> list[Row]:
    """The page: the newest second, then each place with its mean and its last seconds.

    ``history`` has the frames until the shown second, the oldest first.
    """
    waits = state.frame.waits if state.frame is not None else None
    found = wrap(width, charset, EXPLANATION, DIM)
    if waits is None or not waits.ios:
        below = connections_view.rows(_connections(state), width, charset)
        return [*found, message(width, charset, ""), message(width, charset, NO_IO), *below]
    newest = history[-MEAN_SECONDS:]
    bar = waits_bar.line(waits, width, charset)
    found += [message(width, charset, ""), *([bar] if bar else []), message(width, charset, "")]
    found.append(_head(width, charset, len(newest)))
    mean = _mean(waits, newest)
    most = max([one.waits.ios for one in newest if one.waits is not None] or [0.0])
    for name, value, style in (*parts(waits), (TOTAL, waits.ios, BOLD)):
        past = [_part_value(frame.waits, name) for frame in newest]
        numbers = (value, _part_value(mean, name))
        found.append(_row(name, numbers, waits.ios, past, most, style, width, charset))
    if waits.queue is not None and waits.device is not None:
        found += [message(width, charset, ""), rule(width, charset, ("In the lowest device", BOLD))]
        for name, value in (("queue", waits.queue), ("device", waits.device)):
            found.append(_row(name, (value, None), waits.ios, [], most, DEVICE, width, charset))
    found += [message(width, charset, ""), *_explained(parts(waits), width, charset)]
    found += wrap(width, charset, SIGNS, DIM)
    return [*found, *connections_view.rows(_connections(state), width, charset)]


def _connections(state: LiveState) -> Sequence[Connection] | None:
    return state.frame.connections if state.frame is not None else None


def _mean(now: Waits, newest: Sequence[Frame]) -> Waits | None:
    """Over the seconds that have the parts of this one: with a job, or without."""
    mean = MeanWaits()
    for frame in newest:
        waits = frame.waits
        if waits is not None and (waits.above is None) == (now.above is None):
            mean.add(waits, frame.seconds)
    return mean.value


def _part_value(waits: Waits | None, name: str) -> float | None:
    """Return one part, or the total; ``None``: not known."""
    if waits is None:
        return None
    if name == TOTAL:
        return waits.ios
    return next((value for known, value, _ in parts(waits) if known == name), None)


def _head(width: int, charset: Charset, seconds: int) -> Row:
    found = Line(width, charset).add("PLACE".ljust(NAME), BOLD)
    for title in ("now", "share", "mean"):
        found.add(title.rjust(NUMBER), BOLD)
    return found.add(f"   last {seconds} s", BOLD).finished()


def _row(
    name: str, numbers: tuple[float | None, float | None], whole: float,
    past: Sequence[float | None], most: float, style: Style | None, width: int, charset: Charset,
) -> Row:  # fmt: skip
    now, mean = numbers
    share = f.MISSING if now is None else f"{100 * now / whole:.0f} %"
    found = Line(width, charset).add(f.cut(name, NAME - 1).ljust(NAME), style)
    for text in (value_text(now), share, value_text(mean)):
        found.add(text.rjust(NUMBER))
    room = width - found.used - 3
    return found.add("   ").extend([(_curve(past[-room:], most, charset), style)]).finished()


def _curve(past: Sequence[float | None], most: float, charset: Charset) -> str:
    """A character for each second; a blank where nothing is known."""
    steps = density.bars(charset)
    found = ""
    for value in past:
        if value is None:
            found += " "
        elif value < most * MIN_SHARE or not most:
            found += charset.text("·")
        else:
            found += steps[min(len(steps) - 1, int(value / most * len(steps)))]
    return found


def _explained(known: Sequence[Part], width: int, charset: Charset) -> list[Row]:
    found: list[Row] = []
    for name, _, style in known:
        words = LAYER_MEANINGS.get(name, "in this device, and not in one below it")
        label = f.cut(name, NAME - 1).ljust(NAME)
        for line in textwrap.wrap(words, max(NAME, width - NAME)):
            found.append(Line(width, charset).add(label, style).add(line, DIM).finished())
            label = " " * NAME
    return found
