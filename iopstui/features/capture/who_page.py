"""The page "Workload" of the key u: what applications ask of the disk while the page is open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from iopstui import format as f
from iopstui.text import printable
from iopstui.ui.core import key
from iopstui.ui.draw.density import grid_cells
from iopstui.ui.draw.rows import Line, Row, message, rule, wrap
from iopstui.ui.draw.style import BOLD, DEVICE, DIM, WARNING, Charset

if TYPE_CHECKING:
    from iopstui.features.capture.model.workload import Stream, Workload
    from iopstui.ui.core.modal import Modal
    from iopstui.ui.port import Port


TITLE, SUBJECT = "Workload", "what they ask for"


def open_page(port: Port) -> tuple[Modal[None], Callable[[], None]]:
    """Open the page. Returns the page and a function that ends what it started."""
    from iopstui.features.capture.kernel.workload_capture import LiveCapture
    from iopstui.linux.kernel_files import Roots
    from iopstui.ui.dialogs.slow_list import LiveRows

    live, charset = port.live, port.charset
    running = None if live is None else LiveCapture(live.target.devices_below, Roots())
    page = LiveRows(
        TITLE,
        lambda width: rows(
            running.workload if running is not None else None,
            running.problem if running is not None else "", width, charset, running is None,
        ),
        charset, key.USERS,
    )  # fmt: skip
    return page, (lambda: None) if running is None else running.close


# The I/O that applications ask of the disk: request sizes by direction, and a line on each process.


MAX_PROCESSES = 12
STARTING = "starting; the first second follows"
AS_A_JOB = (
    "To make a fio job of it: iopstui capture {device} --for 1m -o app.fio. Sequential: begins "
    "where a recent request of the process ended. Bursts: the variance of the requests in 100 ms "
    "is three times their mean, or more."
)
# the columns of the map are sizes: powers of two from 512 B on
_FIRST_BIT, _COLUMNS, _CELL = 9, 14, 5
_LABEL = 10


def rows(
    workload: Workload | None, problem: str, width: int, charset: Charset, recorded: bool = False
) -> list[Row]:
    """The rows of the page. ``problem`` says why nothing (more) can be captured. ``recorded``: the
    screen shows a recording."""
    if recorded:
        return wrap(width, charset, "This recording has no workload.", None)
    if problem:
        text = f"The capture cannot go on: {problem}." if workload else f"No capture: {problem}."
        above = [*wrap(width, charset, text, WARNING), message(width, charset, "")]
        return above if workload is None else [*above, *_page(workload, width, charset)]
    if workload is None:
        return [message(width, charset, STARTING)]
    return _page(workload, width, charset)


def _page(workload: Workload, width: int, charset: Charset) -> list[Row]:
    rate = f.number(workload.ios / workload.seconds) if workload.seconds else "0"
    title = f"{workload.device}: {rate} requests/s since this page was opened"
    out = [rule(width, charset, (title, BOLD), right=((f.clock(workload.seconds), DIM),))]
    if not workload.ios:
        return [*out, message(width, charset, "no requests yet")]
    out += [*_size_map(workload, width, charset), message(width, charset, "")]
    for process in workload.processes[:MAX_PROCESSES]:
        out.append(Line(width, charset).add(printable(process), BOLD).build())
        for stream in workload.streams_of(process).values():
            out += wrap(width, charset, "  " + _stream_text(stream), None)
    more = len(workload.processes) - MAX_PROCESSES
    if more > 0:
        out.append(message(width, charset, f"and {f.counted(more, 'process', 'processes')} more"))
    if workload.lost:
        out += wrap(
            width, charset, f"{workload.lost:,} requests came too fast to be examined.", WARNING
        )
    from iopstui.features.capture.model.job import DEPTH_MEANING

    out += wrap(width, charset, DEPTH_MEANING, DIM)
    name = workload.device.split(",")[0]
    return [*out, message(width, charset, ""), *wrap(width, charset, AS_A_JOB.format(device=name))]


def _stream_text(stream: Stream) -> str:
    # imported here, because the screen loads this module at its start and then needs only its title
    from iopstui.features.capture.model.job import describe

    return f"{f.number(stream.rate)} flushes/s" if stream.kind == "flush" else describe(stream)


def _size_map(workload: Workload, width: int, charset: Charset) -> list[Row]:
    """A map of sizes by direction. The largest share in each row has the full shade."""
    streams = [
        stream for kind in ("read", "write", "discard") if (stream := workload.total(kind)).ios
    ]
    shares = [_shares(stream) for stream in streams]
    columns = [n for n in range(_COLUMNS) if any(share[n] for share in shares)]
    if not columns:
        return []
    # if not all columns fit, keep the largest sizes
    columns = columns[-max(1, (width - _LABEL) // _CELL) :]
    head = Line(width, charset).add(" " * _LABEL)
    for n in columns:
        head.add(_size(n).rjust(_CELL), DIM)
    grid, out = grid_cells(charset), [head.build()]
    for stream, share in zip(streams, shares, strict=True):
        line = Line(width, charset).add(f"{stream.kind}s".ljust(_LABEL),
                                        DEVICE if stream.kind == "read" else None)  # fmt: skip
        top = max(share)
        for n in columns:
            level = -(-share[n] * (len(grid) - 1) // top) if top else 0
            text, style = grid[int(level)]
            line.add(" " * (_CELL - 3) + text * 3, style)
        out.append(line.build())
    return out


def _shares(stream: Stream) -> Sequence[int]:
    shares = [0] * _COLUMNS
    for size, count in stream.sizes.items():
        shares[min(max(size.bit_length() - 1 - _FIRST_BIT, 0), _COLUMNS - 1)] += count
    return shares


def _size(column: int) -> str:
    bits = column + _FIRST_BIT
    if bits < 10:
        return str(1 << bits)
    return f"{1 << bits - 10}k" if bits < 20 else f"{1 << bits - 20}M"
