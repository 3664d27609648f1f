"""Wording that all kinds of reports share: figures, tunables, how to repeat it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from iopstui import format as units
from iopstui.events import Found
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DIRECTORY, Place, Target
from iopstui.model.block.topology import Topology
from iopstui.model.experiment.plan import letter
from iopstui.model.findings.evidence import seconds_words
from iopstui.model.metrics.run_history import RUNS, RunRow
from iopstui.model.rates import MIB
from iopstui.model.samples import DIRECTIONS
from iopstui.output.summary import interruption, reconciliation
from iopstui.recording import layout as form
from iopstui.report import experiment as report_experiment
from iopstui.report.experiment import Experiment
from iopstui.report.story import (
    BUSY,
    COMPLETED,
    HEAT_ROWS_PER_DECADE,
    QUEUE,
    READ,
    WRITTEN,
    Device,
    Ends,
    Run,
    Story,
)
from iopstui.session.run_rows import seconds, stretch_cells
from iopstui.session.tick.outcomes import judged_text
from iopstui.text import printable

Row = tuple[str, ...]
MOST_BOUND = 32

RUN_HEAD: Row = ("run", "what", "", "I/Os", "IOPS", "MiB/s", "mean", "p50", "p99", "p99.9", "max")
PROBE_HEAD: Row = ("run", "", "requests", "mean", "p50", "p99", "p99.9", "max", "waited before")
PROBED = "In the device, by the probe (from issue to completion):"
DEVICE_HEAD: Row = (
    "run", "I/Os", "IO/s", "read MiB/s", "write MiB/s", "aqu-sz", "util %", "all I/Os: p50", "p99",
    "p99.9", "p99.99",
)  # fmt: skip
SIDE_HEAD: Row = (
    "run", "what was changed", "IOPS", "change", "MiB/s", "p50", "p99", "aqu-sz", "util %", "s",
    "ended",
)  # fmt: skip
SIDE_BY_SIDE = (
    "The runs side by side. Figures are of the measured seconds, without a ramp; change is that of "
    "IOPS to the run before:"
)


def block(text: str) -> str:
    """Text of several lines (a job file) without anything but printable characters."""
    lines = text.replace("\r\n", "\n").expandtabs(4).split("\n")
    return "\n".join("".join(c if c.isprintable() else "?" for c in line) for line in lines).strip()


def heading(story: Story) -> str:
    """What was measured, in a line."""
    target = printable(story.header.target.path)
    jobs = dict.fromkeys(printable(run.name) for run in story.runs)
    return f"{', '.join(jobs) or 'no job'} on {target}"


def facts(story: Story) -> Iterator[tuple[str, str]]:
    """Where and when: (name, value) pairs."""
    if story.foreign:
        yield from _foreign_facts(story)
        return
    header = story.header
    when = units.moment(header.started_ms)
    versions = dict.fromkeys(
        run.started.fio_version for run in story.runs if run.started and run.started.fio_version
    )
    yield "recorded", f"{when:%Y-%m-%d %H:%M:%S} UTC, {units.clock(story.duration)} (m:ss)"
    yield (
        "host",
        (
            f"{printable(header.host)}, Linux {printable(header.kernel)}, "
            f"{printable(header.machine)}"
        ),
    )
    yield "target", printable(header.target.path) + _filesystem(story)
    if header.topology.online:
        yield "CPUs", _cpus(header.topology)
    yield "fio", ", ".join(map(printable, versions)) or units.MISSING
    yield "iopstui", f"{printable(header.iopstui)}, a sample every {header.interval_s:g} s"


def _foreign_facts(story: Story) -> Iterator[tuple[str, str]]:
    header = story.header
    yield "made from", printable(story.foreign)
    if header.started_ms:
        began = units.moment(header.started_ms)
        yield "measured", f"{began:%Y-%m-%d %H:%M:%S} UTC, {units.clock(story.duration)} (m:ss)"
    else:
        yield "measured", f"{units.clock(story.duration)} (m:ss); the file does not say when"
    if header.host:
        yield "host", printable(header.host)
    yield "target", printable(header.target.path)
    versions = [run.started.fio_version for run in story.runs if run.started]
    if any(versions):
        yield "fio", ", ".join(map(printable, versions))
    yield from ((f"disk {printable(name)}, fio's count", told) for name, told in story.disks)
    yield from (("not in it", printable(line)) for line in story.lacks)


def _cpus(topology: Topology) -> str:
    """How many, and how they belong together."""
    words = [str(len(topology.online))]
    domains = len(set(topology.caches.values()))
    if domains:
        words.append(f"{domains} last-level cache{'s' if domains > 1 else ''}")
    if topology.numa:
        words.append(f"{len(set(topology.nodes.values()))} NUMA nodes")
    words += [f"{len(topology.isolated)} isolated"] if topology.isolated else []
    return ", ".join(words)


def _filesystem(story: Story) -> str:
    told = dict.fromkeys(map(_place, story.header.target.places))
    return f" ({'; '.join(filter(None, told))})" if any(told) else ""


def _place(place: Place) -> str:
    if place.device is None:
        return printable(place.no_device)
    names = printable(", ".join((place.device, *place.also)))
    if place.kind == DIRECTORY or place.fstype:
        return f"{printable(place.fstype or '')} on {names}"
    return names


def device_facts(device: BlockDevice) -> Iterator[tuple[str, str]]:
    """A device's properties as they were at the beginning: (name, value) pairs."""
    yield "kind", printable(f"{device.kind} {device.model or ''}")
    yield "size", units.size(device.size)
    if device.layer:
        yield "layer", printable(device.layer)
    queue = device.queue
    for name in (
        "scheduler", "rq_affinity", "nr_requests", "nomerges", "write_cache", "rotational",
        "logical_block_size", "physical_block_size", "max_sectors_kb", "read_ahead_kb",
        "wbt_lat_usec", "iostats",
    ):  # fmt: skip
        value = getattr(queue, name, None)
        if value is not None:
            yield name, printable(str(value))
    for hctx in device.hctxs[:16]:
        cpus = ",".join(map(str, hctx.cpus[:32])) + (" ..." if len(hctx.cpus) > 32 else "")
        tags = f", {hctx.nr_tags} tags" if hctx.nr_tags is not None else ""
        yield f"hctx {hctx.index}", f"CPU {cpus}{tags}"
    if len(device.hctxs) > 16:
        yield "hctx ...", f"{len(device.hctxs)} in all"
    if device.irqs:
        irqs = [f"{vector.irq} ({printable(vector.name)})" for vector in device.irqs[:8]]
        yield "interrupts", ", ".join(irqs) + (" ..." if len(device.irqs) > 8 else "")


def run_rows(run: Run) -> Iterator[Row]:
    """fio's final figures of a run, exactly as fio states them."""
    summary: dict[str, Any] = dict(run.finished.summary) if run.finished else {}
    rows = summary.get("rows", ())
    each = rows if len(rows) <= 16 else ()
    for row in each:
        name = printable(str(row["name"])) or "(no name)"
        for direction, figures in row["directions"].items():
            yield (
                str(run.step), name, direction, units.missing(figures["completed"]),
                units.missing(figures["iops"], "{:.1f}"), _mib(figures["bw_bytes"]),
                units.latency(figures["clat_mean_ns"]),
                *(units.latency(figures["percentiles"].get(p)) for p in ("p50", "p99", "p99.9")),
                units.latency(figures["lat_max_ns"]),
            )  # fmt: skip
    if len(rows) > 1:
        yield from _sum_rows(run, summary)


STRETCHES = "Between the marks: means of fio, or of the device (d) where no job ran."
STRETCH_HEAD = ("time", "from this mark on", "IOPS", "MiB/s", "p99", "s")


def stretch_rows(story: Story) -> Iterator[Row]:
    """What was measured from each mark to the next."""
    for one in story.stretches:
        when = f"{units.clock(one.start)}-{units.clock(one.end)}"
        yield (when, printable(one.text), *stretch_cells(one))


def probe_rows(run: Run) -> Iterator[Row]:
    """What the probe counted in a run, by direction: the device's own times, and the waiting."""
    for kind, device, waiting in run.probed.parts():
        yield (
            str(run.step), kind, str(device.ios), units.latency(device.mean_ns),
            *(units.latency(device.percentiles.get(p)) for p in ("p50", "p99", "p99.9")),
            units.latency(device.max_ns), units.latency(waiting.mean_ns) if waiting else "",
        )  # fmt: skip


def _sum_rows(run: Run, summary: dict[str, Any]) -> Iterator[Row]:
    groups = summary.get("sums", ())
    for group in groups:
        name = "sum" if len(groups) == 1 else f"sum, group {group['group']}"
        for direction in DIRECTIONS:
            figures = group["directions"].get(direction)
            if figures is not None:
                yield (
                    str(run.step), name, direction, str(figures["completed"]),
                    f"{figures['iops']:.1f}", _mib(figures["bw_bytes"]), "", "", "", "", "",
                )  # fmt: skip


def _mib(count: float | None) -> str:
    return units.MISSING if count is None else f"{count / MIB:.2f}"


def run_title(run: Run) -> str:
    """Whose figures ``run_rows`` are."""
    summary = run.finished.summary if run.finished else {}
    return "Made of the logs:" if summary.get("logged") else "fio's own final figures:"


HISTOGRAM_HEAD: Row = ("latency", "I/Os", "of all", "and faster")


def histogram_rows(run: Run) -> Iterator[Row]:
    """The latencies of all I/Os of a run, eight rows to a power of ten."""
    counts: dict[int, int] = {}
    for key, count in run.all_bins.items():
        row = math.floor(math.log10(max(key, 1)) * HEAT_ROWS_PER_DECADE)
        counts[row] = counts.get(row, 0) + count
    total, passed = sum(counts.values()), 0
    for row, count in sorted(counts.items()):
        passed += count
        low, high = (10 ** (n / HEAT_ROWS_PER_DECADE) for n in (row, row + 1))
        yield (
            f"{units.latency(low)} to {units.latency(high)}", str(count),
            f"{100 * count / total:.3f} %", f"{100 * passed / total:.3f} %",
        )  # fmt: skip


def all_latencies(run: Run) -> str:
    """The percentiles of all I/Os together; "" where there is no histogram."""
    if not run.all_bins:
        return ""
    told = ", ".join(f"{name} {units.latency(v)}" for name, v in run.latencies().items() if v)
    return f"All {sum(run.all_bins.values())} I/Os, fio's {run.bins_of}: {told}."


def device_rows(target: Target, runs: Sequence[Run]) -> Iterator[Row]:
    """The devices' means over each run, and all of the run's latencies in one histogram; where
    there are several devices, or some below, each of them by itself, too."""
    several = len(target.on) > 1
    for run in runs:
        found = run.latencies()
        how = "together" if target.opened else "without a sum"
        name = f"{run.step}, {len(target.on)} devices {how}" if several else str(run.step)
        latencies = (units.latency(found[name]) for name in ("p50", "p99", "p99.9", "p99.99"))
        yield (*_device_cells(name, run.device), *latencies)
        for layer in target.layers if several else target.layers[1:]:
            below = "└ " if layer.under else ""
            one = run.each.get(layer.name, Device())
            cells = _device_cells(f"{run.step}, {below}{printable(layer.name)}", one)
            yield (*cells, "", "", "", "")


def _device_cells(name: str, device: Device) -> Row:
    return (
        name, units.MISSING if device.ios is None else str(device.ios),
        units.number(device.mean(COMPLETED)), units.mib(device.mean(READ)),
        units.mib(device.mean(WRITTEN)), units.number(device.mean(QUEUE)),
        units.percent(device.mean(BUSY)),
    )  # fmt: skip


def side_by_side(story: Story) -> list[Row]:
    """What was changed for each run and what came of it; nothing where there is only one.
    Experiments have tables of their own."""
    points = {run.step for run in story.runs if run.point}
    rows = [row for row in story.rows if row.step not in points]
    return [_side_row(row) for row in rows] if len(rows) > 1 else []


def _side_row(row: RunRow) -> Row:
    return (
        str(row.step), printable(row.what), units.number(row.iops), units.change(row.to_before),
        units.mib(row.bw), units.latency(row.p50_ns), units.latency(row.p99_ns),
        units.number(row.aqu_sz), units.percent(row.util), seconds(row),
        "no end" if row.ended == RUNS else row.ended,
    )  # fmt: skip


def reconciled(run: Run) -> str:
    """Whether the frames add up to fio's count; why not where they can't."""
    if run.finished is None:
        return "The recording ends before the run does: there are no final figures of fio."
    if not run.finished.summary:
        return "fio delivered no figures."
    if run.note:
        return run.note
    if run.part:
        return "The recording begins within the run: fio's final figures cover more than it."
    words = reconciliation(run.finished.summary, run.total)
    return words[0].upper() + words[1:]


def ending(run: Run) -> str:
    """How the run ended, if not normally."""
    finished = run.finished
    if finished is None:
        return ""
    if finished.error:
        return f"failed: {printable(finished.error)}"
    return interruption(finished.summary) if finished.interrupted else ""


def repeat(story: Story, run: Run) -> str:
    """The iopstui command that repeats the run; "" where the job is unknown."""
    asked, header = run.asked, story.header
    if asked is None or story.foreign:
        return ""
    words = ["iopstui", "run", *targets_of(story, asked), "--job", job_of(asked)]
    for name, value in asked.overrides.items():
        words += ["--set", f"{name}={value}"]
    words += ["--size", asked.size] if asked.size else []
    words += ["--bind", "queues"] if asked.bind else []
    for knob in header.knobs:
        after = f"@{knob.after_s:g}" if knob.after_s is not None else ""
        words += ["--knob", f"{knob.name}={knob.value}{after}"]
    fixed = {knob.name for knob in header.knobs}
    for name, value in asked.knobs:
        words += ["--knob", f"{name}={value}"] if name not in fixed else []
    words += ["--interval", f"{header.interval_s:g}"] if header.interval_s != 1 else []
    return printable(shlex.join(words))


def targets_of(story: Story, asked: form.JobRun) -> list[str]:
    """Every TARGET of a command that repeats it; none if the job named its files itself."""
    header = story.header
    named = header.own_files
    if named is None:
        # an older recording does not say: a file that fio opened was given, or named
        named = header.target.kind != DIRECTORY and header.target.path not in asked.files
    return [] if named else [place.path for place in header.target.places]


def job_of(asked: form.JobRun) -> str:
    """JOB likewise. A DISKSPD command's file is gone: what fio was given takes its place."""
    return "job.fio" if asked.job.endswith("/diskspd.fio") else asked.job


def bound(run: Run) -> str:
    """Which CPU each fio job was bound to; "" if none was."""
    binding = run.asked.binding if run.asked else None
    if binding is None:
        return ""
    pairs = [
        f"job {job} on CPU {cpu} (hctx {hctx})" for job, cpu, hctx in binding.rows[:MOST_BOUND]
    ]
    more = f" ... {len(binding.rows)} jobs" if len(binding.rows) > len(pairs) else ""
    notes = "".join(f"; {note}" for note in binding.notes)
    return printable(f"Bound to hardware queues: {', '.join(pairs)}{more}{notes}.")


def name_of(run: Run) -> str:
    """The job, and which point of an experiment it is."""
    return printable(f"{run.name}, {run.point}" if run.point else run.name)


def repeat_experiment(story: Story, one: Experiment) -> str:
    """The command that repeats the whole experiment."""
    asked = next((run.asked for run in story.runs if run.asked and run.step in one.steps), None)
    return report_experiment.repeat(
        one,
        targets_of(story, asked) if asked else [p.path for p in story.header.target.places],
        asked.size if asked and not _varies(one, "size") else None,
        bool(asked and asked.bind) and not _varies(one, "bind"),
        [knob for knob in asked.knobs if not _varies(one, knob[0])] if asked else (),
        story.header.interval_s,
    )


def _varies(one: Experiment, name: str) -> bool:
    varied = {axis.name for axis in one.plan.axes}
    return name in varied | {s.name for v in one.plan.variants for s in v.settings}


def command(run: Run) -> str:
    """fio's own command line, exactly as it was run."""
    return printable(shlex.join(run.started.command)) if run.started else ""


def job_file_title(story: Story) -> str:
    """What the job file is that a report shows."""
    return ("fio's options, as its JSON has them, as a job file" if story.foreign
            else "the job file it was given")  # fmt: skip


def verdicts(run: Run) -> Iterator[str]:
    """The expectations with their outcomes, and whether the run was steady."""
    for judged in run.judged:
        yield judged_text(judged)
    if run.steady is not None:
        yield printable(run.steady.text)


def findings(story: Story) -> Iterator[str]:
    """What the evidence showed, with the seconds it is about (in older recordings when it was
    said), and whether that ceased."""
    for place, found in enumerate(story.findings):
        advice = f" → {found.finding.advice}" if found.finding.advice else ""
        when = seconds_words(found.finding) or units.clock(found.t)
        over = _over(found, story.ends_of.get(place))
        yield printable(f"{when}  {found.finding.text}{over}{advice}")


def _over(found: Found, ends: Ends | None) -> str:
    if ends is None:
        return ""
    times = f" {ends.times} times, the last" if ends.times > 1 else ""
    in_all = " in all" if ends.times > 1 else ""
    again = ", then again" if (found.finding.since or 0.0) > ends.until else ""
    held = units.duration(ends.held_s)
    return f" (ceased{times} at {units.clock(ends.until)}, held for {held}{in_all}{again})"


def happened(story: Story) -> Iterator[str]:
    """Marks, changed tunables and warnings, in order of time."""
    lines = [(m.t, f"mark: {m.text}") for m in story.marks]
    lines += [(c.t, f"{c.name} of {c.device}: {c.before} → {c.now}") for c in story.changes]
    lines += [(n.t, f"{n.level}: {n.text}") for n in story.notices]
    for t, text in sorted(lines):
        yield printable(f"{units.clock(t)}  {text}")
    if story.ends:
        yield printable(story.ends)


NO_PROOF = (
    "A difference between single runs proves nothing: it may be chance or drift. "
    "`iopstui compare` repeats both settings in turn and says how sure the difference is."
)


def together(stories: Sequence[Story]) -> str:
    """ "Two recordings", with results of fio "Three results"."""
    what = "results" if any(story.foreign for story in stories) else "recordings"
    words = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")
    return f"{words[len(stories)] if len(stories) < len(words) else len(stories)} {what}"


def aligned(stories: Sequence[Story], shared: bool) -> str:
    """Where the charts of several begin, and whether they share their axis of time; "" where
    they do, and each begins with its recording."""
    words = "Charts count from the beginning of each one's longest run." if any(
        story.zero for story in stories) else ""  # fmt: skip
    if shared:
        return words
    return f"{words} They are of very different length, so each has an axis of time of its own."


def comparison(stories: Sequence[Story]) -> tuple[Row, list[Row]]:
    """The figures of the longest runs beside each other, and what each has more than the first:
    the head and the rows; no rows where one holds an experiment, of which one run says little."""
    names = [letter(number) for number in range(len(stories))]
    head = ("", *names, *(f"{name} against A" for name in names[1:]))
    if any(story.experiments for story in stories):
        return head, []
    longest = [story.longest for story in stories]
    empty = [""] * (len(stories) - 1)
    rows: list[Row] = [
        ("recording", *(printable(story.path.name) for story in stories), *empty),
        ("job", *(printable(run.title) if run else units.MISSING for run in longest), *empty),
        ("over", *(f"{run.seconds:.1f} s" if run else "" for run in longest), *empty),
    ]
    values = [_compared(run) if run else {} for run in longest]
    for name, unit in _COMPARED.items():
        found = [value.get(name) for value in values]
        more = (_difference(found[0], other) for other in found[1:])
        rows.append((name, *(unit(value) for value in found), *more))
    return head, rows


def _finally(run: Run, name: str) -> float | None:
    """fio's own final figure of a whole run, all directions together: what stands elsewhere in
    the report, too. fio's seconds may be longer than those of the frames."""
    if run.finished is None or run.part:
        return None
    summary: dict[str, Any] = dict(run.finished.summary)
    total = (summary.get("total") or {}).values()
    found = [one[name] for one in total if one.get(name) is not None]
    return sum(found) if found else None


def _compared(run: Run) -> dict[str, float | None]:
    """IOPS and bandwidth are fio's final ones, the rest is of all the run's frames."""
    seconds, latencies = run.seconds, run.latencies()
    latencies = latencies if run.all_bins else _stated_latencies(run)
    device = run.device
    iops, bandwidth = _finally(run, "iops"), _finally(run, "bw_bytes")
    if (iops is None or bandwidth is None) and run.total.frames:
        iops = run.total.ios / seconds if seconds else None
        bandwidth = run.total.bytes / seconds if seconds else None
    return {
        "fio IOPS": iops,
        "fio MiB/s": bandwidth,
        **{name: latencies.get(name) for name in ("p50", "p99", "p99.9", "max")},
        "device IO/s": device.mean(COMPLETED),
        "aqu-sz": device.mean(QUEUE),
        "util %": device.mean(BUSY),
    }


def _stated_latencies(run: Run) -> dict[str, int | None]:
    """fio's own percentiles, which only one row of one direction has for all I/Os."""
    summary: Mapping[str, Any] = run.finished.summary if run.finished else {}
    rows = summary.get("rows", ())
    parts = [part for row in rows for part in row["directions"].values()]
    if len(parts) != 1:
        return {}
    return {**parts[0]["percentiles"], "max": parts[0]["lat_max_ns"]}


_COMPARED: dict[str, Callable[[float | None], str]] = {
    "fio IOPS": units.number, "fio MiB/s": units.mib, "p50": units.latency, "p99": units.latency,
    "p99.9": units.latency, "max": units.latency, "device IO/s": units.number,
    "aqu-sz": units.number, "util %": units.percent,
}  # fmt: skip


def _difference(a: float | None = None, b: float | None = None) -> str:
    if a is None or b is None or not a:
        return units.MISSING
    return f"{100 * (b - a) / a:+.1f} %"
