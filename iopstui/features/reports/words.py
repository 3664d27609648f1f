"""The texts of a report on a recording: facts, tables, findings, events, and how to repeat it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from iopstui import format as units
from iopstui.events import FindingReported
from iopstui.features.reports.experiment import Experiment
from iopstui.features.reports.report_data import FindingEnds, ReportData
from iopstui.features.reports.run import Run
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DIRECTORY, Target, TargetPath
from iopstui.model.block.topology import Topology
from iopstui.model.block.tunable import TunableRequest
from iopstui.model.experiment.comparison import PRIMARY_FIGURES
from iopstui.model.experiment.plan import IOPS, Plan
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.figures.disk import DiskRates
from iopstui.model.figures.figure import HIGHEST, RANKS, SHOWN
from iopstui.model.findings.diagnosis import MORE_SPECIFIC_RULES
from iopstui.model.findings.finding import period_text
from iopstui.model.metrics.run_figures import DeviceTotal
from iopstui.model.metrics.run_history import RunRow
from iopstui.model.metrics.shares import NFS_PROTOCOL, SMB_PROTOCOL
from iopstui.model.metrics.summary import is_final, is_untimed
from iopstui.model.metrics.waits import CACHE, UNSENT
from iopstui.model.samples import DIRECTIONS
from iopstui.output.page.svg import HEAT_ROWS_PER_DECADE, heat_rows
from iopstui.output.summary import FINAL_RANKS, FINAL_RATES, interruption, reconciliation, syncs_of
from iopstui.output.watch import columns_of
from iopstui.recording import layout as form
from iopstui.session.tick.outcomes import outcome_event_text
from iopstui.tables import Column, Table, texts, titles
from iopstui.text import printable

Row = tuple[str, ...]
MAX_BOUND = 32
_UNITS = frozenset({"ns", "µs", "ms", "s", "min", "h", "B", "KiB", "MiB", "GiB", "TiB"})


RUN = Column("step", "run")
RUN_COLUMNS = (
    RUN, Column("name", "what"), Column("direction", ""),
    Column("completed", "I/Os"), *FINAL_RATES,
)  # fmt: skip
LATENCY_COLUMNS = (Column("clat_mean_ns", "mean", form=units.latency), *FINAL_RANKS)
PROBED = "Device latency (probe, issue to completion):"
PROBE_COLUMNS = (
    RUN, Column("kind", ""), Column("device/ios", "requests"),
    Column("device/mean_ns", "mean", form=units.latency),
    *(row.column("device") for row in (*(RANKS[name] for name in SHOWN), HIGHEST)),
    Column("waiting/mean_ns", "waited before",
           form=lambda ns: "" if ns is None else units.latency(ns)),
)  # fmt: skip
DEVICE_FIGURES = {
    "IO/s": DiskRates.ios_s, "read MiB/s": DiskRates.r_bytes_s, "write MiB/s": DiskRates.w_bytes_s,
    DiskRates.aqu_sz.name: DiskRates.aqu_sz, "util %": DiskRates.util,
}  # fmt: skip
DEVICE_HEAD: Row = ("run", "I/Os", *DEVICE_FIGURES, "all I/Os: p50", "p99", "p99.9", "p99.99")
SIDE_BY_SIDE = "Runs. Figures exclude the ramp; the change is in IOPS from the previous run:"


def block(text: str) -> str:
    """A text of several lines (a job file), with only printable characters."""
    lines = text.replace("\r\n", "\n").expandtabs(4).split("\n")
    return "\n".join("".join(c if c.isprintable() else "?" for c in line) for line in lines).strip()


def heading(data: ReportData) -> str:
    """A one-line description of the measurement."""
    target = printable(data.header.target.path)
    jobs = dict.fromkeys(printable(run.name) for run in data.runs)
    return f"{', '.join(jobs) or 'no job'} on {target}"


def facts(data: ReportData) -> Iterator[tuple[str, str]]:
    """Where and when it was measured: pairs (name, value)."""
    if data.foreign:
        yield from _foreign_facts(data)
        return
    header = data.header
    when = units.utc_datetime(header.started_ms)
    versions = dict.fromkeys(
        run.started.fio_version for run in data.runs if run.started and run.started.fio_version
    )
    yield "recorded", f"{when:%Y-%m-%d %H:%M:%S} UTC, {units.clock(data.duration)} (m:ss)"
    host, kernel, machine = map(printable, (header.host, header.kernel, header.machine))
    yield "host", f"{host}, Linux {kernel}, {machine}"
    yield "target", printable(header.target.path) + _filesystem(data)
    if header.topology.online:
        yield "CPUs", _cpus(header.topology)
    yield "fio", ", ".join(map(printable, versions)) or units.MISSING
    yield "iopstui", f"{printable(header.iopstui)}, a sample every {header.interval_s:g} s"


def _foreign_facts(data: ReportData) -> Iterator[tuple[str, str]]:
    header = data.header
    yield "made from", printable(data.foreign)
    if header.started_ms:
        began = units.utc_datetime(header.started_ms)
        yield "measured", f"{began:%Y-%m-%d %H:%M:%S} UTC, {units.clock(data.duration)} (m:ss)"
    else:
        yield "measured", f"{units.clock(data.duration)} (m:ss); the file does not say when"
    if header.host:
        yield "host", printable(header.host)
    yield "target", printable(header.target.path)
    versions = dict.fromkeys(run.started.fio_version for run in data.runs if run.started)
    if any(versions):
        yield "fio", ", ".join(map(printable, versions))
    yield from ((f"disk {printable(name)}, fio's count", value) for name, value in data.disks)
    yield from (("not in the file", printable(line)) for line in data.missing_facts)


def _cpus(topology: Topology) -> str:
    parts = [str(len(topology.online))]
    domains = len(set(topology.caches.values()))
    if domains:
        parts.append(f"{domains} last-level cache{'s' if domains > 1 else ''}")
    if topology.numa:
        parts.append(f"{len(set(topology.nodes.values()))} NUMA nodes")
    parts += [f"{len(topology.isolated)} isolated"] if topology.isolated else []
    return ", ".join(parts)


def _filesystem(data: ReportData) -> str:
    names = dict.fromkeys(map(_target_text, data.header.target.places))
    return f" ({'; '.join(filter(None, names))})" if any(names) else ""


def _target_text(place: TargetPath) -> str:
    if place.device is None:
        return printable(place.no_device)
    names = printable(", ".join((place.device, *place.also)))
    if place.kind == DIRECTORY or place.fstype:
        return f"{printable(place.fstype or '')} on {names}"
    return names


def device_facts(device: BlockDevice) -> Iterator[tuple[str, str]]:
    """A device's properties at the beginning: pairs (name, value)."""
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


def run_table(run: Run) -> Table | None:
    """fio's final figures of a run, exactly as fio states them."""
    columns, rows = (*RUN_COLUMNS, *LATENCY_COLUMNS), run.summary.get("rows", ())
    cells = [
        texts(columns, {"step": run.step, "direction": direction, **figures,
                        **_unknown(figures), **_of_lat(direction, figures),
                        "name": printable(str(row["name"])) or "(no name)"})
        for row in (rows if len(rows) <= 16 else ())
        for direction, figures in {**row["directions"], **syncs_of(row)}.items()
    ]  # fmt: skip
    groups = run.summary.get("sums", ()) if len(rows) > 1 else ()
    for group in groups:
        name = "sum" if len(groups) == 1 else f"sum, group {group['group']}"
        cells += [
            texts(RUN_COLUMNS, {"step": run.step, "name": name, "direction": each,
                                **group["directions"][each]}) + ("",) * len(LATENCY_COLUMNS)
            for each in DIRECTIONS if each in group["directions"]
        ]  # fmt: skip
    return Table(titles(columns), cells, left_columns=3) if cells else None


def _unknown(figures: dict[str, Any]) -> dict[str, None]:
    """The rates that fio states as 0 only because it states no run time: they are unknown."""
    untimed = "io_bytes" in figures and is_untimed(figures)
    return {"iops": None, "bw_bytes": None} if untimed else {}


def _of_lat(direction: str, figures: dict[str, Any]) -> dict[str, Any]:
    """A row with the mean of lat, if the percentiles and the maximum are those of lat
    (lat_percentiles=1); else empty."""
    mean = figures.get("lat_mean_ns")
    if figures.get("percentiles_of") != "lat" or not figures["percentiles"] or mean is None:
        return {}
    return {"direction": f"{direction} (lat)", "clat_mean_ns": mean}


CAPTURED = (
    "The job is a captured workload: what the application did, and what fio did here. An open loop "
    "keeps the rate, and the latency is its result; a closed loop keeps the depth, and the rate is "
    "its result. Size: the mean of a request."
)
CAPTURED_COLUMNS = (
    Column("section", "section", form=printable), Column("direction", "direction"),
    Column("captured/rate", "captured IOPS", form=units.number),
    Column("replayed/rate", "replayed", form=units.number),
    Column("ratio", "ratio", form=partial(units.or_dash, form="{:.2f}")),
    Column("captured/size", "captured size", form=units.size),
    Column("replayed/size", "replayed", form=units.size),
)  # fmt: skip
MARK_INTERVALS = "Means between marks: of fio, or of the device (d) without a job."


WAITS = "Where the I/Os wait"
WAITS_MEAN = (
    "Mean number of I/Os at each place. A device's row counts the I/Os in it and in none below it. "
    "The places add up to the I/Os in flight (fio's IOPS times its latency)."
)


def wait_table(data: ReportData) -> Table:
    """The mean number of I/Os at each place: a row for each run, or a single row if there was no
    job. Empty if nothing is known."""
    runs = [(str(run.step), run.measured.waits.value) for run in data.runs]
    measured = [
        (name, waits) for name, waits in runs or [("no job", data.idle_waits.value)] if waits
    ]
    layers = list(dict.fromkeys(name for _, waits in measured for name in waits.layers))
    divided = any(waits.device is not None for _, waits in measured)
    # these columns only appear if a run has such I/Os
    more = {"cache": CACHE, "unsent": UNSENT, "unknown": "unknown"}
    more = {name: title for name, title in more.items()
            if any(getattr(waits, name) > 0 for _, waits in measured)}  # fmt: skip
    head = ("run", "in flight", "waiting for a CPU", "above the device", *map(printable, layers),
            *more.values(),
            *(("of these: queue", "issued") if divided else ()))  # fmt: skip
    rows = []
    for name, waits in measured:
        values = [waits.ios, waits.cpu, waits.above, *map(waits.layers.get, layers)]
        values += [getattr(waits, name) for name in more]
        values += [waits.queue, waits.device] if divided else []
        rows.append((name, *(units.or_dash(value, "{:.1f}") for value in values)))
    return Table(head, rows)


DRIVES = "NVMe drives"
DRIVES_NOTE = "The drives' own counters (SMART): the worst reading, and what each run added."
_WHOLE, _TENTHS = (partial(units.or_dash, form=text) for text in ("{:.0f}", "{:.1f}"))
DRIVE_COLUMNS = (
    RUN, Column("drive", "drive", form=printable), Column("temperature", "°C", form=_WHOLE),
    Column("bytes_written", "written", form=units.size),
    Column("bytes_read", "read", form=units.size),
    Column("media_errors", "media errors", form=_WHOLE),
    Column("throttled", "throttled", form=_WHOLE), Column("spare", "spare %", form=_WHOLE),
    Column("used", "used %", form=_WHOLE),
    Column("write_amplification", "write amplification",
           form=partial(units.or_dash, form="{:.2f}")),
)  # fmt: skip


def drive_rows(data: ReportData) -> list[dict[str, Any]]:
    """The NVMe drives' own figures, a row for each run and drive."""
    rows = []
    for run in data.runs:
        for drive, of in run.drives.rows():
            light, heavy = of["thermal_1"], of["thermal_2"]
            throttled = None if light is None or heavy is None else light + heavy
            rows.append({"step": run.step, "drive": drive, "throttled": throttled, **of})
    return rows


ENERGY = "Energy"
ENERGY_NOTE = (
    "Mean power by the CPU's own counters (RAPL) while fio measured, idle power included. I/Os per "
    "joule are those of the CPU packages."
)
ENERGY_COLUMNS = (
    RUN,
    Column("package", "CPU packages W", 0, _TENTHS, read=lambda run: run.energy.watts("package")),
    Column("dram", "memory W", 0, _TENTHS, read=lambda run: run.energy.watts("dram")),
    Column("platform", "machine W", 0, _TENTHS, read=lambda run: run.energy.watts("platform")),
    Column("energy/ios_per_joule", "I/Os per joule", form=units.number),
)
"""Columns for the energy of runs with counters."""
SHARE_NOTES = {
    NFS_PROTOCOL: "Each run's reads and writes on NFS, and their times at the server and in this "
    "client:",
    SMB_PROTOCOL: "Each run's reads and writes on SMB. The latency is of all shares on the "
    "connection:",
}


def share_table(data: ReportData, protocol: str) -> Table:
    """The operations on the target's mounts with this protocol: a row for each run and kind of
    operation."""
    columns = columns_of(protocol)
    rows = [
        (str(run.step), name, *texts(columns, rates))
        for run in data.runs
        for name, rates in run.share.operations.items()
        if rates.ops and run.share.protocol == protocol
    ]
    return Table(("run", "requests", *titles(columns)), rows, left_columns=2)


def probe_rows(run: Run) -> list[dict[str, Any]]:
    """The probe's counts for a run, by direction: device times and waiting times."""
    return [{"step": run.step, "kind": kind, "device": device, "waiting": waiting}
            for kind, device, waiting in run.probe.parts()]  # fmt: skip


def run_title(run: Run) -> str:
    if not is_final(run.summary):
        return "fio's last report before it was killed:"
    return "From the logs:" if run.summary.get("logged") else "fio's final figures:"


def histogram_table(run: Run) -> Table:
    """The latencies of all I/Os of a run, in eight rows for each factor of ten."""
    counts = heat_rows(run.all_bins)
    total, passed, rows = sum(counts.values()), 0, []
    for row, count in sorted(counts.items()):
        passed += count
        low, high = (10 ** (n / HEAT_ROWS_PER_DECADE) for n in (row, row + 1))
        rows.append((
            f"{units.latency(low)} to {units.latency(high)}", str(count),
            f"{100 * count / total:.3f} %", f"{100 * passed / total:.3f} %",
        ))  # fmt: skip
    return Table(("latency", "I/Os", "of all", "and faster"), rows)


def all_latencies(run: Run) -> str:
    """The percentiles over all I/Os, in words; "" without a histogram."""
    if not run.all_bins:
        return ""
    text = ", ".join(f"{name} {units.latency(v)}" for name, v in run.latencies().items() if v)
    return f"All {sum(run.all_bins.values())} I/Os, fio's {run.bins_of}: {text}."


def device_rows(target: Target, runs: Sequence[Run]) -> Iterator[Row]:
    """The devices' means over each run, with all latencies of the run in one histogram. Several
    devices, and devices beneath, have rows of their own, too."""
    several = len(target.devices_below) > 1
    for run in runs:
        overall = run.latencies()
        manner = "together" if target.opened else "without a sum"
        together = f", {len(target.devices_below)} devices {manner}" if several else ""
        latencies = (units.latency(overall[name]) for name in ("p50", "p99", "p99.9", "p99.99"))
        yield (*_device_cells(f"{run.step}{together}", run.measured.device), *latencies)
        for layer in target.layers if several else target.layers[1:]:
            below = "└ " if layer.under else ""
            device = run.measured.layers.get(layer.name, DeviceTotal())
            cells = _device_cells(f"{run.step}, {below}{printable(layer.name)}", device)
            yield (*cells, "", "", "", "")


def _device_cells(name: str, device: DeviceTotal) -> Row:
    means = (row.form(device.mean(row)) for row in DEVICE_FIGURES.values())
    return (name, units.or_dash(device.ios), *means)


def side_by_side(data: ReportData) -> list[RunRow]:
    """The runs to compare; empty if there is only one. Points of experiments have tables of their
    own."""
    points = {run.step for run in data.runs if run.point}
    rows = [row for row in data.rows if row.step not in points]
    return rows if len(rows) > 1 else []


def reconciled(run: Run) -> str:
    """Whether the frames add up to fio's count, or why that is not known."""
    if run.finished is None:
        return "The recording ends before the run, so fio's final figures are missing."
    if not run.finished.summary:
        return "fio reported no figures."
    if run.note:
        return run.note
    if run.is_partial:
        return "The recording starts during the run, so fio's final figures cover more."
    text = reconciliation(run.finished.summary, run.total)
    return text[0].upper() + text[1:]


def ending(run: Run) -> str:
    finished = run.finished
    if finished is None:
        return ""
    if finished.error:
        return f"failed: {printable(finished.error)}"
    return interruption(finished.summary) if finished.interrupted else ""


def bound_cpus(run: Run) -> str:
    """Which CPU each fio job was bound to; "" if they were not bound."""
    binding = run.job_run.binding if run.job_run else None
    if binding is None:
        return ""
    pairs = [f"job {job} on CPU {cpu} (hctx {hctx})" for job, cpu, hctx in binding.rows[:MAX_BOUND]]
    more = f" ... {len(binding.rows)} jobs" if len(binding.rows) > len(pairs) else ""
    notes = "".join(f"; {note}" for note in binding.notes)
    return printable(f"Bound to hardware queues: {', '.join(pairs)}{more}{notes}.")


def name_of(run: Run) -> str:
    """The name of the job, and the experiment's point to which the run belongs."""
    return printable(f"{run.name}, {run.point}" if run.point else run.name)


def job_file_title(data: ReportData) -> str:
    return ("Job file made from the options in fio's JSON" if data.foreign
            else "The job file")  # fmt: skip


def verdicts(run: Run) -> Iterator[str]:
    """The expectations with their outcomes, whether the run was steady, and what disturbed it."""
    for judged in run.outcomes:
        yield outcome_event_text(judged)
    if run.steady_state is not None:
        yield printable(run.steady_state.text)
    if run.finished is not None and run.finished.disturbed:
        yield printable(f"Disturbed: {'; '.join(run.finished.disturbed)}")


def findings(data: ReportData) -> Iterator[str]:
    """Findings with the seconds that they cover (in older recordings: when they were reported), and
    whether they ended. Findings that differ only in their figures are shown once, with the last
    figures."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for place, finding in enumerate(data.findings):
        if _is_explained(finding, data.findings):
            continue
        ends = data.finding_ends.get(place)
        kind = "withdrawn" if ends is not None and ends.why else ""
        key = finding.finding.rule, kind, *_words_alone(finding.finding.text)
        alike.setdefault(key, []).append(place)
    for places in alike.values():
        finding = data.findings[places[-1]]
        advice = f" → {finding.finding.advice}" if finding.finding.advice else ""
        when = period_text(finding.finding) or units.clock(finding.t)
        end_text = _ended_text(finding, data.finding_ends.get(places[-1]))
        first = units.clock(data.findings[places[0]].t)
        times = (f" ({len(places)} times since {first}; the figures are of the last time)"
                 if len(places) > 1 else "")  # fmt: skip
        yield printable(f"{when}  {finding.finding.text}{times}{end_text}{advice}")


COUNTED_OTHERS = ("disagree", "background")
"""Findings that only say that there are I/Os of others than the job."""


def _is_explained(general: FindingReported, findings: Sequence[FindingReported]) -> bool:
    """Whether another finding says more about the same I/Os. In the first seconds of a run it may
    be clear that others use the disk, but not yet who."""
    rule = general.finding.rule
    rules = MORE_SPECIFIC_RULES[rule] if rule in COUNTED_OTHERS else ()
    since, until = _seconds_of(general)
    for one in findings:
        begin, end = _seconds_of(one)
        # for repeated findings, the report has the time of the first one and the seconds of the
        # last one
        if one.finding.rule in rules and min(begin, one.t) <= until and since <= end:
            return True
    return False


def _seconds_of(one: FindingReported) -> tuple[float, float]:
    since, until = one.finding.since, one.finding.until
    return one.t if since is None else since, one.t if until is None else until


def _words_alone(text: str) -> Iterator[str]:
    """The words of a finding, without figures and their units; names that contain digits are
    kept."""
    for word in text.split():
        if word.strip("().,;:") not in _UNITS and not word.lstrip("(+-±<≥≤")[:1].isdecimal():
            yield word


def _ended_text(finding: FindingReported, ends: FindingEnds | None) -> str:
    if ends is None:
        return ""
    again = (finding.finding.since or 0.0) > ends.until
    if ends.why and not again:
        return f" (withdrawn: {ends.why})"
    times = f" {ends.times} times, the last" if ends.times > 1 else ""
    in_all = " in total" if ends.times > 1 else ""
    suffix = ", then again" if again else ""
    duration = units.duration(ends.held_s)
    return f" (ended{times} at {units.clock(ends.until)}, after {duration}{in_all}{suffix})"


def event_lines(data: ReportData) -> Iterator[str]:
    """Marks, changed tunables and warnings, in the order of time."""
    lines = [(m.t, f"mark: {m.text}") for m in data.marks]
    lines += [(c.t, f"{c.name} of {c.device}: {c.before} → {c.now}") for c in data.changes]
    lines += [(n.t, f"{n.level}: {n.text}") for n in data.notices]
    lines += [(stall.start, f"stall: {stall.text}") for stall in data.stalls]
    for t, text in sorted(lines):
        yield printable(f"{units.clock(t)}  {text}")
    if data.ending:
        yield printable(data.ending)


def repeat(data: ReportData, run: Run) -> str:
    """The iopstui command that repeats the run; "" if the job is unknown."""
    job_run, header = run.job_run, data.header
    if job_run is None or data.foreign:
        return ""
    fixed = {knob.name for knob in header.knobs}
    own = [TunableRequest(*knob) for knob in job_run.knobs if knob[0] not in fixed]
    request = RunRequest(
        overrides=job_run.overrides, size=job_run.size, bind=job_run.bind,
        knobs=(*header.knobs, *own), interval_s=header.interval_s,
    )  # fmt: skip
    words = [*request.words(), *job_run.further]
    args = [*targets_of(data, job_run), "--job", job_of(job_run), *words]
    return printable(shlex.join(["iopstui", "run", *args]))


def targets_of(data: ReportData, job_run: form.JobRun) -> list[str]:
    """The TARGETs of a command that repeats the measurement; empty if the job named its files
    itself."""
    header = data.header
    files = header.own_files
    if files is None:
        # an older recording does not say whether fio's file was given as TARGET or named by the job
        files = header.target.kind != DIRECTORY and header.target.path not in job_run.files
    return [] if files else [place.path for place in header.target.places]


def job_of(job_run: form.JobRun) -> str:
    """The JOB of a command that repeats a run. The job file of a DISKSPD command is gone; the
    report advises to save its text as job.fio."""
    return "job.fio" if job_run.job.endswith("/diskspd.fio") else job_run.job


def repeat_experiment(data: ReportData, experiment: Experiment) -> str:
    """The command that repeats the whole experiment."""
    plan, header, expected = experiment.plan, data.header, experiment.expectations
    varied = {axis.name for axis in plan.axes}
    varied |= {setting.name for variant in plan.variants for setting in variant.settings}
    job_runs = (run.job_run for run in data.runs if run.job_run and run.step in experiment.steps)
    job_run = next(job_runs, None)
    knobs = job_run.knobs if job_run else ()
    request = RunRequest(
        overrides=plan.options, interval_s=header.interval_s,
        size=job_run.size if job_run and "size" not in varied else None,
        bind=job_run is not None and job_run.bind and "bind" not in varied,
        knobs=tuple(TunableRequest(*knob) for knob in knobs if knob[0] not in varied),
        expect=tuple(expectation.text for expectation in expected),
        tolerance=expected[0].tolerance if expected else 0.0,
    )  # fmt: skip
    targets = [place.path for place in header.target.places]
    args = targets_of(data, job_run) if job_run else targets
    args = ["iopstui", experiment.name or plan.kind, *args, *_plan_words(plan), *request.words()]
    return printable(shlex.join(args))


def _plan_words(plan: Plan) -> Iterator[str]:
    for job in plan.jobs:
        yield from ("--job", job)
    for axis in plan.axes:
        yield from ("--axis", f"{axis.name}={','.join(axis.values)}")
    for variant in plan.variants:
        yield from ("--variant", ",".join(map(str, variant.settings)) or "as-is")
    if plan.until is not None:
        yield from ("--until", f"{100 * plan.until:g}%", "--max-repeats", str(plan.repeats))
    elif plan.variants or plan.repeats > 1:
        yield from ("--repeats", str(plan.repeats))
    if plan.figure != IOPS:
        yield "--figure"
        yield next(name for name, figure in PRIMARY_FIGURES.items() if figure == plan.figure)
    if plan.seed is not None:
        yield from ("--seed", str(plan.seed))
    yield from ("--settle", f"{plan.settle:g}", "--measure", f"{plan.measure:g}")


def fio_command(run: Run) -> str:
    """fio's own command line, exactly as it was executed."""
    return printable(shlex.join(run.started.command)) if run.started else ""
