"""Write a captured workload as a fio job that keeps its rate (open loop) or its depth (closed
loop)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from iopstui.features.capture.model import shape
from iopstui.features.capture.model.phases import Phase
from iopstui.features.capture.model.workload import CLOSED, METADATA_PROCESS, OPEN, Stream, Workload
from iopstui.format import duration, first_of, number, percent, size
from iopstui.model.fio.jobfile import captured_line
from iopstui.text import printable

MAX_SECTIONS = 8
MIN_RATE = 0.5
"""A stream gets a section from this rate (requests per second) on: the slowest rate of fio is 1."""
_MIN_SHARE = 0.005
_MIN_SIZE, _BLOCK = 1 << 24, 1 << 20
_MAX_DEPTH, _MIN_OPEN_DEPTH, _MAX_JOBS = 256, 16, 64
_RUNTIME_S = (10, 300)
_MAX_WRITES_PER_FLUSH = 16
"""With at most this many writes for each flush, the flushes decide how a stream behaves."""
_COLUMNS = 98
_PLAIN = re.compile(r"[^A-Za-z0-9_.-]+")

_ABOUT = {
    OPEN: (
        "Open loop: each section sends requests at the captured rate, whatever the disk does.",
        "Latency is the result. If the disk is too slow, latency grows and the rate is missed.",
        "Change rate_iops to ask what happens with more load.",
    ),
    CLOSED: (
        "Closed loop: each section keeps the captured number of requests in flight, and sends the",
        "next one when one ends. Throughput is the result; the captured rate is not kept.",
        "Change iodepth to ask what happens with more requests at once.",
    ),
}
_LIMITS = (
    "Not imitated: requests that wait for the result of others, pauses that depend on latency, and",
    "metadata of the file system. What fio does here is compared by `iopstui capture --check`.",
)


@dataclass(frozen=True, slots=True)
class Part:
    """The streams of one process that become a section of the job."""

    process: str
    reads: Stream | None
    writes: Stream | None
    flushes: int

    @property
    def streams(self) -> list[Stream]:
        return [stream for stream in (self.reads, self.writes) if stream is not None]

    @property
    def ios(self) -> int:
        """The requests in both directions."""
        return sum(stream.ios for stream in self.streams)


def job_text(
    workload: Workload, loop: str, when: str = "", phases: Sequence[Phase] = ()
) -> str:  # fmt: skip
    """The text of the job file; ``when`` says when the workload was captured. Several ``phases``
    become sections that run one after the other. Raises ValueError if the workload has nothing that
    a job could do."""
    spans = phases if len(phases) > 1 else [Phase(0.0, workload)]
    chosen = [_choose_parts(span.workload, loop) for span in spans]
    parts = [part for selected, _ in chosen for part in selected]
    if not parts:
        raise ValueError("no reads or writes to make a job of")
    writes = any(part.writes for part in parts)
    lines = list(_comment(_head(workload, loop, when, writes)))
    if len(spans) == 1:
        lines += _comment(chosen[0][1])
    lines += ["", *_global(workload)]
    names: dict[str, int] = {}
    for phase, (phase_parts, left_out) in enumerate(chosen):
        if len(spans) > 1:
            lines += ["", *_comment(_phase_head(phase, spans, phase_parts, left_out))]
        for index, part in enumerate(phase_parts):
            lines += [
                "",
                *(f"# {line}" for line in _part_comment(part)),
                *_section(part, loop, names),
            ]
            if len(spans) > 1:
                lines += _phase_options(spans[phase], first=index == 0)
    return "\n".join(lines) + "\n"


def _comment(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from (f"# {line}".rstrip() for line in wrap(text, _COLUMNS) or [""])


# -- the choice of streams


def _choose_parts(workload: Workload, loop: str) -> tuple[list[Part], list[str]]:
    parts: list[Part] = []
    for process in workload.processes:
        if process == METADATA_PROCESS:
            continue
        streams = workload.streams_of(process)
        flush = streams.get("flush")
        reads, writes = _if_frequent(streams.get("read")), _if_frequent(streams.get("write"))
        combined = Part(process, reads, writes, flush.ios if flush else 0)
        if loop == OPEN:
            parts.append(Part(process, combined.reads, None, 0))
            parts.append(Part(process, None, combined.writes, combined.flushes))
        else:
            parts.append(combined)
    parts = sorted((part for part in parts if part.streams), key=lambda part: -part.ios)
    smallest = _MIN_SHARE * workload.ios
    selected = [part for part in parts if part.ios >= smallest or part.flushes][:MAX_SECTIONS]
    return selected, _left_out(workload, selected)


def _if_frequent(stream: Stream | None) -> Stream | None:
    return stream if stream is not None and stream.rate >= MIN_RATE else None


def _left_out(workload: Workload, selected: Sequence[Part]) -> list[str]:
    selected_streams = {(part.process, stream.kind) for part in selected for stream in part.streams}
    omitted = [
        stream
        for stream in workload.streams
        if (stream.process, stream.kind) not in selected_streams
        and stream.kind in ("read", "write")
    ]
    notes = []
    metadata = [stream for stream in omitted if stream.process == METADATA_PROCESS]
    omitted = [stream for stream in omitted if stream.process != METADATA_PROCESS]
    if metadata:
        share = percent(100 * sum(stream.ios for stream in metadata) / workload.ios)
        notes.append(
            f"Left out, {share} % of the requests: metadata of the file system. The file system of "
            "the scratch files adds its own."
        )
    if omitted:
        share = percent(100 * sum(stream.ios for stream in omitted) / workload.ios)
        names = list(
            dict.fromkeys(f"{_safe_text(stream.process)} ({stream.kind}s)" for stream in omitted)
        )
        notes.append(f"Left out, {share} % of the requests: {first_of(names, 4)}.")
    discards = workload.total("discard")
    if discards.ios:
        notes.append(
            f"Left out: {number(discards.rate)} discards/s of {size(discards.bytes / discards.ios)}"
            " (fio discards on devices only)."
        )
    return notes


# -- the sections


def _head(workload: Workload, loop: str, when: str, writes: bool) -> Iterator[str]:
    yield f"Title: workload captured on {_safe_text(workload.device)}, {loop} loop"
    yield f"Measures: {_MEASURES[loop]}"
    yield f"Source: iopstui capture, {duration(workload.seconds)}{', ' + when if when else ''}"
    yield "Look at: the captured figures beside those of the run: iopstui report has both."
    yield f"Writes: {'yes' if writes else 'no'}"
    yield "Teaches: how this disk serves what the application asked for."
    yield ""
    yield from _ABOUT[loop]
    yield from _LIMITS
    yield "It names no device: it works on scratch files in the TARGET that you give."
    if workload.lost:
        yield (f"{workload.lost} of {workload.lost + workload.ios} requests came too fast to be "
               "examined.")  # fmt: skip


def _phase_head(
    at: int, phases: Sequence[Phase], parts: Sequence[Part], left_out: Sequence[str]
) -> Iterator[str]:  # fmt: skip
    phase = phases[at]
    idle = "" if parts else ": hardly any requests, left out"
    yield (f"Phase {at + 1} of {len(phases)}, {duration(phase.start_s)} to "
           f"{duration(phase.end_s)} of the capture{idle}")  # fmt: skip
    if parts:
        yield from left_out


def _phase_options(phase: Phase, *, first: bool) -> Iterator[str]:
    yield f"runtime={_runtime(phase.workload.seconds)}"
    if first:
        # wait until the previous phase has ended
        yield "stonewall"


_MEASURES = {OPEN: "latency at the captured rate.", CLOSED: "throughput at the captured depth."}


def _global(workload: Workload) -> Iterator[str]:
    yield "[global]"
    yield "ioengine=libaio"
    # the requests were captured below the page cache
    yield "direct=1"
    yield "time_based"
    yield f"runtime={_runtime(workload.seconds)}"
    yield "norandommap"
    yield "randrepeat=0"


def _runtime(seconds: float) -> int:
    return round(min(max(seconds, _RUNTIME_S[0]), _RUNTIME_S[1]))


def _part_comment(part: Part) -> Iterator[str]:
    yield f"{_safe_text(part.process)}:"
    for stream in part.streams:
        yield "  " + describe(stream)
    if part.flushes:
        yield f"  {number(part.flushes / part.streams[0].seconds)} flushes/s"
    for stream in part.streams:
        size = stream.bytes / stream.ios if stream.ios else 0.0
        yield captured_line(stream.kind, stream.rate, size)


def _section(part: Part, loop: str, names: dict[str, int]) -> Iterator[str]:
    kinds = "-".join(stream.kind for stream in part.streams)
    process = _PLAIN.sub("-", part.process).strip("-.") or "process"
    name = f"{process}-{kinds}"[:40]
    names[name] = names.get(name, 0) + 1
    yield f"[{name}{names[name] if names[name] > 1 else ''}]"
    yield f"filename={process[:40]}.scratch"
    yield f"size={_scratch_size(part) >> 20}m"
    randoms = [shape.random_percentage(stream) for stream in part.streams]
    yield f"rw={_rw(part, randoms)}"
    if len(part.streams) > 1:
        yield f"rwmixread={round(100 * part.streams[0].ios / part.ios)}"
    yield from _sizes(part)
    if any(randoms) and not all(percent == 100 for percent in randoms):
        yield f"percentage_random={','.join(map(str, randoms))}"
    if any(randoms):
        yield from _random_distribution(part)
    yield from _flushes(part)
    yield from _open_loop(part) if loop == OPEN else _closed_loop(part)


def _scratch_size(part: Part) -> int:
    largest = max((max(stream.sizes, default=0) for stream in part.streams), default=0)
    needed = max(_MIN_SIZE, 16 * largest, *(stream.working_set for stream in part.streams))
    return -(-needed // _BLOCK) * _BLOCK


def _rw(part: Part, randoms: Sequence[int]) -> str:
    direction = "rw" if len(part.streams) > 1 else part.streams[0].kind
    return f"rand{direction}" if any(randoms) else direction


def _sizes(part: Part) -> Iterator[str]:
    splits = [shape.split(stream.sizes) for stream in part.streams]
    if all(len(split) == 1 for split in splits):
        yield "bs=" + ",".join(_bytes(split[0][0]) for split in splits)
        return
    texts = [":".join(f"{_bytes(bs)}/{part}" for bs, part in split) for split in splits]
    yield f"bssplit={','.join(texts)}"


def _random_distribution(part: Part) -> Iterator[str]:
    busiest = max(part.streams, key=lambda stream: stream.ios)
    zones = shape.zones(busiest.regions, shape.random_percentage(busiest))
    if zones:
        text = ":".join(f"{share}/{space}" for share, space in zones)
        yield f"random_distribution=zoned:{text}"


def _flushes(part: Part) -> Iterator[str]:
    if part.flushes and part.writes is not None:
        # each fdatasync is one flush of the disk, and does not commit the journal of the scratch
        # file's file system
        yield f"fdatasync={max(1, round(part.writes.ios / part.flushes))}"


def _open_loop(part: Part) -> Iterator[str]:
    (stream,) = part.streams
    depth = min(max(2 * shape.percentile_depth(stream, 0.99), _MIN_OPEN_DEPTH), _MAX_DEPTH)
    if part.flushes and stream.ios <= _MAX_WRITES_PER_FLUSH * part.flushes:
        # with a rate and a deeper queue, fio (3.33) flushes less often than requested
        depth = 1
    yield f"iodepth={depth}"
    kind = shape.process_of(stream)
    pause = shape.pause_of(stream) if kind == "bursts" else None
    if pause is not None:
        yield f"rate_iops={_steady_rate(stream, pause.rate)}"
        yield "rate_ignore_thinktime=1"
        yield f"thinktime={pause.pause_us}us"
        yield f"thinktime_blocks={pause.ios}"
        yield "thinktime_blocks_type=issue"
        return
    # fio (3.33) dies with SIGFPE when a poisson process reaches a flush
    if kind != "linear" and not part.flushes:
        yield f"rate_iops={max(1, round(stream.rate))}"
        yield "rate_process=poisson"
    else:
        yield f"rate_iops={_steady_rate(stream, stream.rate)}"


def _steady_rate(stream: Stream, rate: float) -> int:
    """The value of ``rate_iops`` with which a steady process makes ``rate`` requests per second.
    fio converts the value to bytes by the smallest size (``setup_rate`` in its backend.c)."""
    split = shape.split(stream.sizes)
    mean = sum(bs * share for bs, share in split) / sum(share for _, share in split)
    return max(1, round(rate * mean / min(bs for bs, _ in split)))


def _closed_loop(part: Part) -> Iterator[str]:
    workers = max(stream.workers for stream in part.streams)
    jobs = min(max(1, round(workers)), _MAX_JOBS)
    count = sum(sum(stream.depths.values()) for stream in part.streams)
    total = sum(d * n for stream in part.streams for d, n in stream.depths.items())
    yield f"iodepth={min(max(1, round(total / count) if count else 1), _MAX_DEPTH)}"
    if jobs > 1:
        yield f"numjobs={jobs}"


# -- comments

DEPTH_MEANING = "depth: a process's requests in flight, of both directions, when it sends one"


def describe(stream: Stream) -> str:
    """A stream in one line: "1.2k/s, mostly 16 KiB, random, in bursts, depth 3.1, ..."."""
    if not stream.ios:
        return f"no {stream.kind}s"
    parts = [f"{number(stream.rate)} {stream.kind}s/s", _sizes_text(stream),
             _order(stream)]  # fmt: skip
    arrival = {"linear": "", "poisson": "", "bursts": "in bursts"}[shape.process_of(stream)]
    if arrival:
        parts.append(arrival)
    if stream.depth is not None:
        parts.append(f"depth {stream.depth:.1f}")
    if stream.regions:
        parts.append(f"working set {size(stream.working_set)}")
    return ", ".join(part for part in parts if part)


def _sizes_text(stream: Stream) -> str:
    if not stream.sizes:
        return ""
    first = max(stream.sizes, key=lambda block_size: stream.sizes[block_size])
    share = stream.sizes[first] / sum(stream.sizes.values())
    if share > 0.99:
        return size(first)
    if share > 0.6:
        return f"mostly {size(first)}"
    return f"{size(min(stream.sizes))} to {size(max(stream.sizes))}"


def _order(stream: Stream) -> str:
    share = 100 - shape.random_percentage(stream)
    if share >= 95:
        return "sequential"
    return "random" if share <= 5 else f"{share} % sequential"


def _bytes(count: int) -> str:
    return f"{count >> 10}k" if count % 1024 == 0 else str(count)


def _safe_text(text: str) -> str:
    return printable(text) or "?"
