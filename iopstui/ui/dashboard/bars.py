"""The dashboard's single lines: header, summary, tabs, message, footer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from rich.cells import cell_len
from rich.style import Style

from iopstui import format as f
from iopstui.model.answer.answer import CRITICAL, GOOD, OF_A_SECOND, Answer
from iopstui.model.answer.change import NEWS_S, change_answer
from iopstui.model.answer.judge import WINDOW, Seen, judge
from iopstui.model.answer.situation import ENOUGH_SECONDS, MIN_INTERVAL_S
from iopstui.model.block import target as kinds
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import Target
from iopstui.model.block.tunable import why_rq_affinity_cannot_matter
from iopstui.model.figures.disk import DiskRates, util_text
from iopstui.model.metrics.frame import Frame
from iopstui.model.metrics.run_history import DONE, STOPPED
from iopstui.model.metrics.shares import Share
from iopstui.session.tick.outcomes import FAIL, PASS
from iopstui.text import printable
from iopstui.ui.core.key import KeyHint
from iopstui.ui.core.pace import Overhead
from iopstui.ui.dashboard.panels import fio_panel
from iopstui.ui.dashboard.run_result import run_result, time_of
from iopstui.ui.draw.rows import Line, Piece, Row, capital, message, wrap
from iopstui.ui.draw.style import (
    BOLD,
    DEVICE,
    DIM,
    ERROR,
    FINDING,
    FIO,
    KEY,
    MARK,
    SELECTED,
    WARNING,
    Charset,
)
from iopstui.ui.state.live import LiveState

BAR, SHORT_BAR = 20, 10
MAX_ROUNDED_S = 2
NO_END_YET_S = 6
"""fio may tell the end of a run only after its first few seconds."""
WHERE_WHOLE, OVER_EXPERIMENT = "f: all", "ctrl+p, then Messages"
"""The hints on where to read a message that does not fit, on the dashboard and over an
experiment."""
LEAST_BEGINNING = 40
"""How much of such a message is shown at least."""
LEVEL_STYLES = {
    "error": ERROR, "warning": WARNING, "mark": MARK, "info": None, PASS: FINDING, FAIL: ERROR,
}  # fmt: skip


def device_line(
    target: Target,
    devices: Mapping[str, BlockDevice],
    width: int,
    charset: Charset,
    cpus: Sequence[int] = (),
    volume: str = "",
    trail: str = "",
) -> Row:
    """The device and as many of its facts as fit. ``cpus`` are the online CPUs; ``volume``
    describes the bought volume and its credits; ``trail`` shows where Esc leads."""
    line = Line(width, charset).add(" ").add(trail, DIM)
    if volume:
        line.add(printable(volume), MARK).add("  ")
    if target.has_several:
        return _targets_text(line, target, devices, cpus)
    device = devices.get(target.device) if target.device else None
    if target.kind != kinds.DEVICE:
        kind_text = "scratch file in " if target.kind == kinds.DIRECTORY else ""
        line.add(f"{kind_text}{printable(target.path)}", BOLD)
        line.add(f"  {printable(target.fstype)}" if target.fstype else "")
        line.add("  on " if target.device else "")
    if device is None:
        line.add(printable(target.device or ""), BOLD)
        return line.build()
    line.add(printable(device.name), BOLD)
    for fact in _facts(device, cpus):
        line.try_add(("  " + fact, None))
    return line.build()


def _targets_text(
    line: Line, target: Target, devices: Mapping[str, BlockDevice], cpus: Sequence[int]
) -> Row:
    """Several targets: their names, then facts about their devices."""
    kind_text = {kinds.DIRECTORY: "scratch files in ", kinds.FILE: "files "}.get(target.kind, "")
    line.add(f"{len(target.places)} {kind_text}" if target.kind == kinds.FILE else kind_text)
    places = target.places
    for index, place in enumerate(places):
        name = place.device if place.kind == kinds.DEVICE and place.device else place.path
        on = f" on {printable(place.device)}" if place.device and place.device != name else ""
        texts = (", " if index else "", printable(name), on)
        more = f" and {len(places) - index} more"
        # after each name except the last, there must be room for " and N more"
        space = line.free - (len(more) if index + 1 < len(places) else 0)
        if index and sum(map(cell_len, texts)) > space:
            line.add(more)
            break
        for text, style in zip(texts, (None, BOLD, None), strict=True):
            line.add(text, style)
    present = [devices[name] for name in target.devices_below if name in devices]
    for fact in _common_facts(present, cpus) if present else ():
        line.try_add(("  " + fact, None))
    return line.build()


def _common_facts(devices: Sequence[BlockDevice], cpus: Sequence[int]) -> list[str]:
    """The facts of several devices. If they differ, all values are listed."""

    def each(values: Iterable[object]) -> str:
        return "/".join(dict.fromkeys(printable(str(v)) for v in values))

    sizes = [device.size for device in devices]
    facts = [each(device.kind for device in devices)]
    if len(set(sizes)) == 1:
        facts.append(f"{_size_text(sizes[0])} each" if len(devices) > 1 else _size_text(sizes[0]))
    elif None not in sizes:
        facts.append(f"{f.size(sum(size or 0 for size in sizes))} together")
    queues = [device.queue for device in devices if device.queue is not None]
    schedulers = [q.scheduler for q in queues if q.scheduler is not None]
    if schedulers:
        facts.append(f"scheduler {each(schedulers)}")
    affinities = [q.rq_affinity for q in queues if q.rq_affinity is not None]
    if affinities:
        idle = cpus and all(why_rq_affinity_cannot_matter(d, cpus) for d in devices)
        facts.append(f"rq_affinity {each(affinities)}" + (" (moves nothing)" if idle else ""))
    counts = [len(device.hctxs) for device in devices]
    all_same = len(set(counts)) == 1 < len(counts)
    facts.append(f"{each(counts)} hctx" + (" each" if all_same else ""))
    return facts


def _facts(device: BlockDevice, cpus: Sequence[int]) -> list[str]:
    facts = [printable(device.kind), _size_text(device.size)]
    if device.model:
        facts.append(printable(device.model))
    queue = device.queue
    if queue is not None:
        if queue.scheduler is not None:
            facts.append(f"scheduler {printable(queue.scheduler)}")
        if queue.rq_affinity is not None:
            idle = why_rq_affinity_cannot_matter(device, cpus) if cpus else None
            facts.append(f"rq_affinity {queue.rq_affinity}" + (" (moves nothing)" if idle else ""))
    if device.read_only:
        facts.append("read-only")
    facts += _queues(device)
    return facts


def _queues(device: BlockDevice) -> list[str]:
    """Hardware queues and their CPUs; with many queues only their number."""
    hctxs = device.hctxs
    if not hctxs:
        return ["no hardware queues"]
    if len(hctxs) > 4:
        sizes = sorted({len(hctx.cpus) for hctx in hctxs})
        cpus_each = f"{sizes[0]}-{sizes[-1]}" if len(sizes) > 1 else str(sizes[0])
        cpus_text = "one per CPU" if cpus_each == "1" else f"{cpus_each} CPUs each"
        return [f"{len(hctxs)} hctx, {cpus_text}"]
    return ["  ".join(f"hctx {h.index} → CPU {f.ranges(h.cpus)}" for h in hctxs)]


def job_line(state: LiveState, job: str, width: int, charset: Charset) -> Row:
    line = Line(width, charset).add(" ")
    step = state.step
    if step is None or (job and _was_experiment_s(state)):
        return _idle_line(line, state, job)
    name, title = printable(step.job), printable(step.title)
    state_word = "●" if state.running else _end_word(state)
    style = FIO if state.running else ERROR if _failed(state) else DIM
    line.add(f"{state_word} ", style)
    pending = state.next_run.pending
    sign = "→" if state.running or state.next_run.requested else "next:"
    pending = f"  {sign} {printable(pending)}" if pending else ""
    if name and not title.startswith(name) and (
        not pending or len(name) + len(title) + len(pending) + 2 <= line.free
    ):  # fmt: skip
        line.add(f"{name}  ", BOLD)
    line.add(title, BOLD).add(pending, WARNING)
    line.add("  read only" if step.read_only else "  WRITES", DIM if step.read_only else WARNING)
    experiment = state.experiment
    if experiment is not None and experiment.active:
        long, short = experiment.progress(), experiment.progress(short=True)
        progress = long if len(long) + 2 <= line.free else short
        return line.add_right((f" {progress} ", BOLD)).build()
    before: Piece = ("  ", None)
    forms = [[before, *_progress_pieces(state, charset, bar)] for bar in (BAR, SHORT_BAR, 0)]
    clock = _wall_clock(state)
    # prefer the time of day to a long bar
    choices = [*([*form, *clock] for form in forms), *forms]
    fits = (form for form in choices if sum(len(text) for text, _ in form) <= line.free)
    return line.add_right(*next(fits, forms[-1])).build()


def _was_experiment_s(state: LiveState) -> bool:
    """Whether the last run was one of an experiment that is over: the next one is another."""
    experiment, rows = state.experiment, state.runs.rows
    is_over = experiment is None or not experiment.active
    return is_over and not state.running and bool(rows) and bool(rows[-1].experiment)


def _idle_line(line: Line, state: LiveState, job: str) -> Row:
    """A line with the job that runs next, and with the probe."""
    if state.experiment is not None and state.experiment.active:
        return line.add(state.experiment.progress(), BOLD).build()
    if state.next_run.requested and job:
        line.add(f"{printable(job)} ", BOLD).add("is about to start", DIM)
        line.add("  r ", KEY).add("stops it")
    else:
        line.add("no job running", DIM)
        # without a job: on a page of one host of a fleet, or while hosts are only watched
        if job:
            line.add("  r ", KEY).add(f"starts {printable(job)} at once")
    clock: list[Piece] = [(f.clock(state.t) + " ", DIM), *_wall_clock(state)]
    probe = probe_text(state)
    if len(probe) + sum(len(text) for text, _ in clock) + 2 <= line.free:
        clock.insert(0, (probe, DIM))
    return line.add_right(*clock).build()


def run_text(state: LiveState) -> str:
    """What was measured and for how long, for readers who do not see the screen."""
    step = state.step
    if step is None:
        return f"no job, watched for {f.duration(state.t)}"
    title = " ".join(step.title.replace("QD ", "iodepth ").split())
    job = f"{step.job}: {title}" if step.job and not title.startswith(step.job) else title
    if state.creating_file:
        return f"{job}, its file is being created"
    if state.finished is None:
        return f"{job}, runs for {f.duration(state.t - step.t)}"
    ended = state.finished.t
    return f"{job}, ran for {f.duration(ended - step.t)}, ended {time_of(state, ended)}"


def probe_text(state: LiveState) -> str:
    """The probe's state and cost, while it is counting."""
    probe = state.frame.probe if state.frame is not None else None
    if probe is None:
        return ""
    cost = f", {f.latency(probe.run_ns)} an I/O" if probe.run_ns is not None else ""
    return f"P probe on{cost}  "


def _wall_clock(state: LiveState) -> list[Piece]:
    frame = state.frame
    return [(f" {f.wall_clock(frame.wall_ms)} ", DIM)] if frame is not None else []


def _end_word(state: LiveState) -> str:
    rows = state.runs.rows
    return "failed" if _failed(state) else rows[-1].ended if rows else DONE


def _failed(state: LiveState) -> bool:
    return state.finished is not None and bool(state.finished.error)


def _progress_pieces(state: LiveState, charset: Charset, bar: int) -> list[Piece]:
    """The run's progress with a bar of ``bar`` cells. A short bar has no percentage."""
    if state.creating_file:
        return [("creating its file ", DIM)]
    fio = state.fio.fio if state.fio else None
    if fio is None or fio.elapsed_s is None:
        return [(f.clock(state.t) + " ", DIM)]
    elapsed = _elapsed_s(state, fio.elapsed_s)
    if fio.eta_s is None or fio.progress is None:
        if not bar or not state.running:
            return [(f"{f.clock(elapsed)} ", None)]
        unknown = ", end unknown" if elapsed > NO_END_YET_S else ""
        return [(f"{f.clock(elapsed)} elapsed{unknown} ", None)]
    if not state.running and _end_word(state) == STOPPED:
        return [(f"after {f.clock(elapsed)} ", None)]
    total = state.total_s or fio.elapsed_s + fio.eta_s
    elapsed = min(elapsed, total)
    times = f"{f.clock(elapsed)} / {f.clock(total)} "
    if not bar:
        return [(times, None)]
    # not fio's own progress, which is relative to the planned time: the bar must fit the times
    # shown
    progress = elapsed / total if total else 1.0
    full = round(progress * bar)
    percent = f" {100 * progress:3.0f} % " if bar >= BAR else ""
    return [
        (charset.full * full, FIO), (charset.empty * (bar - full), DIM),
        (f"{percent} {times}", None),
    ]  # fmt: skip


def _elapsed_s(state: LiveState, reported_s: int) -> int:
    """Seconds since the run's start. ``reported_s`` is fio's own figure, which is rounded up and
    sometimes skips a second; it is used if the start is not known."""
    if state.step is None or state.fio is None:
        return reported_s
    measured_s = int(state.fio.t - state.step.t + 0.5)
    return measured_s if abs(measured_s - reported_s) <= MAX_ROUNDED_S else reported_s


def _share_text(share: Share | None) -> str:
    """Reads and writes per second, and the mean RTT or latency of both."""
    if share is None:
        return "not measured now"
    time = f"RTT {f.milliseconds(share.data.rtt, '')}"
    if share.smb is not None:
        time = f"lat {f.milliseconds(share.data.latency, '')}"
    return f"{f.number(share.read.ops_s)} r/s  {f.number(share.write.ops_s)} w/s  {time}"


def summary_line(state: LiveState, target: Target, width: int, charset: Charset) -> Row:
    """A running job and the kernel in one line, for terminals that show one pane at a time."""
    line, fio = Line(width, charset), state.fio_now
    if fio is not None:
        total = fio.total
        line.add(" fio ", FIO).add(f"{f.number(total.iops):>5} IOPS {f.mib(total.bw):>5} MiB/s")
        p99 = total.percentiles.get("p99")
        line.add(f" p99 {f.latency(p99, ''):>6}" if p99 is not None else " no latency")
        line.add(" late" if state.late else "", WARNING).fill_to(41)
    elif state.running:
        line.add(" fio ", FIO).add("no figures yet", DIM).fill_to(41)
    disk = state.frame.combined(target.opened) if state.frame else None
    if target.only_shares:
        share = state.frame.share if state.frame else None
        protocol = "SMB" if target.smb_shares else "NFS"
        return line.add(f" {protocol} ", DEVICE).add(_share_text(share)).build()
    if not target.devices_below:
        return line.add(" kernel ", DEVICE).add("sees no block device", DIM).build()
    line.add(f" {printable(target.name)[:10]} ", DEVICE)
    if disk is None:
        first = state.frame is None or state.frame.seq == 0
        return line.add("no rates yet" if first else "not measured now").build()
    return line.add(_disk_text(disk, several=len(target.devices_below) > 1)).build()


def _disk_text(disk: DiskRates, several: bool) -> str:
    text = f"{f.number(disk.ios_s):>5} IO/s aqu {f.number(disk.aqu_sz):>4}"
    # util belongs to a single device: a sum has none
    return text if several else f"{text} util {util_text(disk):>3} %"


def _size_text(count: int | None) -> str:
    return "size unknown" if count is None else f.size(count)


def tabs_line(titles: Sequence[str], active: int, width: int, charset: Charset) -> Row:
    """The tabs. The open one is in brackets, so that it is not marked by colour alone."""
    line = Line(width, charset).add(charset.rule, DIM)
    for index, title in enumerate(titles):
        label = f" {index + 1} {capital(title)} "
        if index == active:
            line.add(f"[{label}]", SELECTED)
        else:
            line.add(f" {label} ", DIM)
    return line.fill_to(width, charset.rule, DIM).build()


def message_line(
    state: LiveState, frozen: Frame | None, cost: Overhead | None, width: int, charset: Charset
) -> Row:
    """The newest message, and iopstui's own cost if both fit. ``frozen`` is the frame that a frozen
    screen shows."""
    return message_rows(state, frozen, cost, width, 0, charset, where=OVER_EXPERIMENT)[0]


def message_rows(
    state: LiveState,
    frozen: Frame | None,
    cost: Overhead | None,
    width: int,
    more: int,
    charset: Charset,
    has_controls: bool = True,
    where: str = WHERE_WHOLE,
) -> list[Row]:
    """Rows like ``message_line``. A longer message continues in up to ``more`` rows below, or
    ``where`` says which key shows all of it. ``has_controls``: whether keys here run anything."""
    cost_text = cost.text(width) if cost is not None else ""
    text, style = message_piece(state)
    continues = "; measuring continues" * has_controls
    head = _head(state, frozen, continues, cell_len(text), width, charset)
    keys = f"   {state.next_keys}" if state.next_keys and has_controls else ""
    notice = state.visible_notice()
    ending = notice is not None and (notice.ending or notice.level == "error")
    if head.used + cell_len(text + keys) >= width - (0 if ending else len(cost_text)):
        keys = ""
    if head.used + cell_len(text + keys) >= width - len(cost_text):
        cost_text = ""
    remainder = ""
    if more and cell_len(text) > width - head.used:
        first = text[: width - head.used].rpartition(" ")[0]
        text, remainder = (first, text[len(first) :].strip()) if first else (text, "")
    line = Line(width - len(cost_text), charset).extend(head._pieces)
    line.extend(_whole_or_where(text, style, line.free, f" {where}"))
    line.try_add((keys, DIM))
    row = (*line.build(), (charset.text(cost_text), DIM)) if cost_text else line.build()
    if not remainder:
        return [row]
    return [row, *_wrap_remainder(remainder, width, more, style, charset)]


def long_message(state: LiveState, width: int, charset: Charset) -> list[Row]:
    """The newest message in rows for a box; no rows if it fits in the message's row."""
    text, style = message_piece(state)
    rows = wrap(width, charset, text, style) if text else []
    return rows if len(rows) > 1 else []


def _whole_or_where(text: str, style: Style | None, room: int, where: str) -> list[Piece]:
    """A message, or its beginning and a hint on ``where`` to read all of it."""
    if cell_len(text) <= room or room < LEAST_BEGINNING + cell_len(where):
        return [(text, style)]
    words = text.split(" ")
    while len(words) > 1 and cell_len(" ".join(words)) + cell_len(where) + 1 > room:
        words.pop()
    # a figure without its unit may be read as another one
    while len(words) > 1 and words[-1].lstrip("+-")[:1].isdigit():
        words.pop()
    return [(" ".join(words).rstrip(",;:") + "…", style), (where, DIM)]


def _head(
    state: LiveState, frozen: Frame | None, continues: str, size: int, width: int, charset: Charset
) -> Line:
    """The prefix for a message of this size. It says since when the screen is frozen, in the
    longest form that fits."""
    if frozen is None:
        return Line(width, charset).add(" ")
    ago = f"{f.clock(max(0.0, state.t - frozen.t))} ago"
    when = f.wall_clock(frozen.wall_ms)
    for suffix in (f" {when}, {ago}{continues}  ", f" {ago}  ", " "):
        head = Line(width, charset).add(" ").add(f" FROZEN at {f.clock(frozen.t)} ", SELECTED)
        head.add(suffix, WARNING)
        if head.used + size <= width:
            break
    return head


def _wrap_remainder(
    text: str, width: int, rows: int, style: Style | None, charset: Charset
) -> list[Row]:
    """The remaining rows of a message; the last one is cut if there are too many."""
    rows_below = wrap(width, charset, text, style)
    if len(rows_below) > rows:
        last = "".join(text for text, _ in rows_below[rows - 1]).strip()
        rows_below[rows - 1 :] = [message(width, charset, f"{last} …", style)]
    return rows_below


def message_piece(state: LiveState) -> Piece:
    """The newest message, or what fio does before it measures; "" if there is none."""
    notice = state.visible_notice()
    if notice is not None:
        prefix = f"{notice.level}: " if notice.level in ("error", "warning") else ""
        return f"{f.clock(notice.t)}  {prefix}{notice.text}", LEVEL_STYLES.get(notice.level)
    if state.creating_file:
        return fio_panel.layout_text(state), None
    return "", None


def footer_line(
    hints: Sequence[KeyHint], width: int, charset: Charset, quit_label: str = "Quit"
) -> Row:
    """The keys that are useful now, as many as fit; ? and q are always shown, unless there is no
    ``quit_label``: then every letter is text."""
    return _footer(tuple(hints), width, charset, quit_label)


def footer_ends(quit_label: str) -> list[KeyHint]:
    return [KeyHint("?", "Help"), KeyHint("q", quit_label)] if quit_label else []


@lru_cache(maxsize=4)
def _footer(hints: tuple[KeyHint, ...], width: int, charset: Charset, quit_label: str) -> Row:
    """Cached, because the footer is nearly always the same as a second ago."""
    ends = footer_ends(quit_label)
    reserved = sum(len(h.key) + len(h.description) + 3 for h in ends)
    line = Line(width - reserved, charset).add(" ")
    for hint in hints:
        if not line.try_add((hint.key, KEY), (f" {hint.description}", None), ("  ", None)):
            break
    footer = Line(width, charset).extend(line._pieces)
    for hint in ends:
        footer.add(hint.key, KEY).add(f" {hint.description}  ")
    return footer.build()


# The answer on the dashboard: the last one that the session gave, or one made from a recording's
# figures.


def answer_of(
    state: LiveState, target: Target | None, devices: Mapping[str, BlockDevice],
    by_clock: bool = False,
) -> Answer | None:  # fmt: skip
    """The answer that was given. Right after an option was changed, it is what that changed; after
    a ramp, while its best depth runs, it is the knee; after a run its result, until the next one
    starts; for a recording without answers, it is what its figures say. ``by_clock``: for a text
    that is read later."""
    if state.ramp is not None and state.running and not _is_bad(state.answer):
        return state.ramp
    changed = _changed(state)
    if changed is not None:
        return changed
    result = run_result(state, by_clock)
    if result is not None or state.answer is not None or target is None or state.frame is None:
        return result or state.answer
    past = [entry.frame for entry in state.recent_seconds if entry.t <= state.frame.t]
    frames = _seconds_of(past[-WINDOW:], state.frame.step)
    if len(frames) > 1 and max(frame.seconds or 0.0 for frame in frames) < MIN_INTERVAL_S:
        return None  # frames of less than a whole interval are too short to judge
    run, of_run = state.finished, []
    if run is not None:
        ended = not state.running and state.frame.step == run.step
        of_run = _seconds_of(past, run.step) if ended or len(frames) < ENOUGH_SECONDS else []
    seconds = of_run[-WINDOW:] or frames
    # older recordings do not say when a finding ended: use only findings reported in these seconds
    findings = [
        entry.finding for entry in state.current_findings()
        if not entry.ceased and seconds and entry.t >= seconds[0].t
    ]  # fmt: skip
    seen = Seen(target, seconds, devices, findings=findings)
    pairs = judge(seen) if seen.frames else []
    if not pairs:
        return None
    return pairs[0][1].of_ended_run if of_run else pairs[0][1]


def _seconds_of(frames: Sequence[Frame], step: int) -> list[Frame]:
    return [frame for frame in frames if frame.seconds and frame.step == step]


def _is_bad(answer: Answer | None) -> bool:
    return answer is not None and answer.state == CRITICAL


def _changed(state: LiveState) -> Answer | None:
    """The effect of an option that was changed a few seconds ago; ``None`` if something more
    important must be shown."""
    step, answer = state.step, state.answer
    if step is None or not state.running or state.t > step.t + 2 * NEWS_S:
        return None
    if answer is not None and (answer.state != GOOD or answer.rule != OF_A_SECOND):
        return None
    rows = state.runs.rows[-2:]
    if len(rows) < 2 or rows[1].step != step.step:
        return None
    return change_answer(rows[0], rows[1], state.creating_file)
