"""The result of the benchmark as a Markdown table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any

UNCLEAR = "unclear"
VERDICTS = {None: "", True: " ✓", False: " **missed**", UNCLEAR: " (too busy to tell)"}
Row = tuple[str, str, str, bool | str | None]


def table(result: Mapping[str, Any]) -> str:
    """All rows, and the machine they were measured on."""
    lines = ["| what | measured | bound |", "|---|---|---|"]
    for what, measured, bound, met in _rows(result):
        verdict = VERDICTS[met]
        lines.append(f"| {what} | {measured} | {bound}{verdict} |")
    facts = result["machine"]
    kind = "virtual machine" if facts["virtual"] else "machine"
    lines += [
        "",
        f"{facts['cpu']}, {facts['cpus']} CPUs ({kind}), Linux {facts['kernel']}, "
        f"Python {facts['python']}, {facts['fio']}; {result['seconds']:.0f} s, load average "
        f"{result['load']['before']:.1f} before. Medians; [95 % interval].",
    ]
    return "\n".join(lines)


def met(result: Mapping[str, Any]) -> bool:
    """False if a bound was missed."""
    return all(ok is not False for _, _, _, ok in _rows(result))


def _rows(result: Mapping[str, Any]) -> Iterator[Row]:
    for letter, rows in (
        ("a", _beside), ("b", _cost), ("c", _first), ("d", _kernel), ("e", _documents),
        ("f", _day), ("g", _skew), ("h", _slow), ("i", _probe),
        ("j", _fleet), ("k", _fleet_screen), ("l", _links), ("m", _report),
        ("n", _mounts), ("o", _flight),
    ):  # fmt: skip
        if letter in result:
            yield from rows(result[letter])


def _mounts(found: list[Mapping[str, Any]]) -> Iterator[Row]:
    for one in found:
        yield (
            f"{one['watched']} of {one['count']} NFS mounts in a sample and its frame, "
            f"{one['busy']} of them busy (without the kernel's part, which prints the file)",
            f"{_ratio(one['ms'])} ms", "≤ 1 ms", _at_most(one["ms"], 1.0),
        )  # fmt: skip


def _flight(found: Mapping[str, float]) -> Iterator[Row]:
    server = "flight recorder, 50 disks, 64 CPUs, 500 processes:"
    for name, text, unit, bound in (
        ("percent", "recording", "% of a CPU", 0.5),
        ("thinning_percent", "thinning", "% of a CPU", 0.1),
        ("peak_mib", "memory", "MiB", 40.0),
        ("written", "written a day", "MB", 450.0),
        ("last day", "the last day, at its largest", "MB", 60.0),
        ("60 s", "a day with a sample in 60 s", "MB", 10.0),
    ):
        if name in found:
            yield (f"{server} {text}", f"{found[name]:.2f} {unit}", f"≤ {bound:g} {unit}",
                   found[name] <= bound)  # fmt: skip


def _fleet(found: list[Mapping[str, Any]]) -> Iterator[Row]:
    bounds = {100: 3.0, 1000: 30.0}
    for one in found:
        hosts = one["hosts"]
        yield (
            f"merging the seconds of {hosts} hosts (mixed 4k reads and writes)",
            f"{one['cpu']:.1f} % of a CPU, {one['mib']:.0f} MiB, {one['packed'] / 1000:.1f} kB/s "
            f"a host compressed ({one['bytes'] / 1000:.1f} kB/s)",
            f"≤ {bounds[hosts]:g} %, ≤ 200 MiB, ≤ 4 kB/s",
            one["cpu"] <= bounds[hosts] and one["mib"] <= 200 and one["packed"] <= 4000,
        )


def _fleet_screen(found: list[Mapping[str, Any]]) -> Iterator[Row]:
    for one in found:
        yield (
            f"the screen of {one['hosts']} hosts, 160×45, 1 Hz",
            f"{one['screen']:.1f} % of a CPU, {one['bytes_s'] / 1000:.1f} kB/s; with the merger "
            f"{one['all']:.1f} % (with making the hosts up {one['cpu']:.1f} %)",
            "≤ 15 % in all, ≤ 6 kB/s",
            one["all"] <= 15 and one["bytes_s"] <= 6000,
        )


def _links(found: list[Mapping[str, Any]]) -> Iterator[Row]:
    bounds = {"lines": 15.0, "screen": 15.0}
    for one in found:
        bound = bounds[one["kind"]] if one["hosts"] == 1000 else None
        what = "screen" if one["kind"] == "screen" else "--format jsonl"
        own = f", the screen's thread {one['first']:.1f} %" if one["kind"] == "screen" else ""
        yield (
            f"iopstui fleet of {one['hosts']} hosts, {what}, its links included (the hosts are "
            "another process)",
            f"{one['cpu']:.1f} % of a CPU{own}, {one['bytes'] / 1000:.1f} kB/s a host",
            "" if bound is None else f"≤ {bound:g} %",
            None if bound is None else one["cpu"] <= bound,
        )


def _ratio(values: Any) -> str:
    middle, low, high = values
    return f"{middle:.3f} [{low:.3f}, {high:.3f}]"


def _at_least(values: Any, bound: float) -> bool | str:
    """Unclear if the bound is between the median and the end of the interval."""
    middle, _, high = values
    return True if middle >= bound else UNCLEAR if high >= bound else False


def _at_most(values: Any, bound: float) -> bool | str:
    """Like ``_at_least``, for an upper bound."""
    middle, low, _ = values
    return True if middle <= bound else UNCLEAR if low <= bound else False


def _beside(found: Mapping[str, Any]) -> Iterator[Row]:
    for name, words in (
        ("null", "ioengine=null, every CPU busy"), ("direct", "4k random O_DIRECT reads, QD 32"),
    ):  # fmt: skip
        one, within = found[name], found[name]["one_run"]
        yield (
            f"IOPS of fio while `live` works: while it is stopped, in one run ({words}; "
            f"{len(within['working'])} pairs)",
            f"{_ratio(within['ratio'])} of {fmean(within['stopped']) / 1e3:,.0f}k",
            "≥ 0.99", _at_least(within["ratio"], 0.99),
        )  # fmt: skip
        yield (
            "the same: share of all CPU time that iopstui and its guard left over",
            _ratio(within["cpu_left"]), "", None,
        )  # fmt: skip
        n = len(one["runs"])
        yield (
            f"the same from run to run: beside `live` to the same command alone ({n} pairs)",
            f"{_ratio(one['beside_to_same_command'])} of {one['iops_alone'] / 1e3:,.0f}k",
            "≥ 0.99", _at_least(one["beside_to_same_command"], 0.99),
        )  # fmt: skip
        yield (
            "the same from run to run: to plain fio, without status reports",
            _ratio(one["beside_to_plain_fio"]), "", None,
        )  # fmt: skip


BOUNDS = {
    "iopstui 160x45, job, 1 Hz": 1.5, "iopstui 200x50, job, 1 Hz": 2.0,
    "iopstui 160x45, no job, 1 Hz": 0.8,
}  # fmt: skip
"""The most percent of a CPU that each program may use."""
MAX_BYTES_S = 4000


def _cost(found: list[Mapping[str, Any]]) -> Iterator[Row]:
    for one in found:
        most = BOUNDS.get(one["program"])
        fine = None
        if most is not None:
            fine = one["cpu_percent"] <= most and one["bytes_per_s"] <= MAX_BYTES_S
        yield (
            f"CPU, bytes to the terminal, memory: {one['program']}",
            f"{one['cpu_percent']:.2f} % of a CPU, {one['bytes_per_s'] / 1000:.1f} kB/s, "
            f"{one['rss_mib']:.0f} MiB",
            "" if most is None else f"≤ {most:g} %, ≤ {MAX_BYTES_S // 1000} kB/s", fine,
        )  # fmt: skip


def _first(found: Mapping[str, Any]) -> Iterator[Row]:
    seconds, low, high = found["seconds"]
    yield (
        "first frame with the kernel's rates",
        f"{seconds:.2f} s [{low:.2f}, {high:.2f}], {found['cpu_s'][0]:.2f} s of CPU",
        "≤ 0.5 s of CPU", found["cpu_s"][0] <= 0.5,
    )  # fmt: skip
    above, low, high = found["above_empty_cpu_s"]
    yield (
        "CPU to the frame with the kernel's rates above that to an empty application's",
        f"{above:.2f} s [{low:.2f}, {high:.2f}]", "≤ 0.25 s",
        _at_most(found["above_empty_cpu_s"], 0.25),
    )  # fmt: skip
    for name, where in (("file", "on a file"), ("directory", "in a directory")):
        line, low, high = found[f"line_{name}_cpu_s"]
        yield (
            f"CPU of `iopstui run` to its first line of fio's figures, {where}",
            f"{line:.3f} s [{low:.3f}, {high:.3f}]", "≤ 0.25 s",
            _at_most(found[f"line_{name}_cpu_s"], 0.25),
        )  # fmt: skip
    yield (
        "first frame of the device picker",
        f"{found['picker_seconds'][0]:.2f} s, {found['picker_cpu_s'][0]:.2f} s of CPU, "
        f"{found['picker_above_empty_cpu_s'][0]:.2f} s above an empty application", "", None,
    )  # fmt: skip


def _kernel(found: list[Mapping[str, Any]]) -> Iterator[Row]:
    for one in found:
        bound = one["cpus"] == 256
        yield (
            f"one kernel sample + one frame, {one['cpus']} CPUs, 64 queues, 2,000 IRQs, 200 disks "
            "(files in memory)",
            f"{one['sample_mean_ms']:.1f} ms (at most {one['sample_max_ms']:.1f}; beside it, for "
            f"/proc/interrupts, 1 in {one['table_every']}: {one['beside_mean_ms']:.1f}) "
            f"+ {one['frame_ms']:.1f} ms (each CPU's figures, once asked for: "
            f"{one['asked_ms']:.1f} more)",
            "≤ 2 ms a sample, ≤ 1.5 ms a frame" if bound else "",
            one["sample_mean_ms"] <= 2.0 and one["frame_ms"] <= 1.5 if bound else None,
        )  # fmt: skip


def _documents(found: list[Mapping[str, Any]]) -> Iterator[Row]:
    for one in found:
        bound = one["jobs"] == 256
        yield (
            f"a fio document of {one['jobs']} job(s), {one['kilobytes']:.0f} kB",
            f"{one['parse_ms']:.1f} ms to read, {one['frame_ms']:.1f} ms to a frame",
            "≤ 40 ms" if bound else "",
            one["parse_ms"] + one["frame_ms"] <= 40.0 if bound else None,
        )  # fmt: skip


def _day(found: Mapping[str, Any]) -> Iterator[Row]:
    rss = found["rss_mib"]
    half = rss[len(rss) // 2]
    yield (
        f"memory after {found['seconds'] / 3600:.0f} simulated hours in which {found['opened']} "
        "screens were opened (after half of them)",
        f"{rss[-1]:.0f} MiB ({half:.0f} MiB)", "≤ 60 MiB, flat",
        rss[-1] <= 60 and rss[-1] - half <= 3,
    )  # fmt: skip


def _report(found: Mapping[str, Any]) -> Iterator[Row]:
    cpu_s, seconds = (found[name] * 86400 / 1e6 for name in ("html", "html_time"))
    yield (
        "`report` of a recorded day with a job at 1 Hz, as HTML, from "
        f"{found['seconds'] / 3600:.1f} hours of it",
        f"{seconds:.0f} s on {os.cpu_count()} CPUs, {cpu_s:.0f} s of CPU ({found['html']:.0f} µs a "
        f"sample; as CSV {found['csv']:.0f} µs)",
        "≤ 10 s", seconds <= 10,
    )  # fmt: skip


def _skew(found: Mapping[str, Any]) -> Iterator[Row]:
    for name, one in found.items():
        yield (
            f"fio's figures to the kernel's reading ({name})",
            f"{one['median_ms']:.1f} ms, at most {one['max_ms']:.1f} ms", "", None,
        )  # fmt: skip


def _slow(found: list[Mapping[str, Any]]) -> Iterator[Row]:
    for one in found:
        per_day = one["recording_bytes"] / max(1, one["frames"]) * 86400 / 1e6
        fine = one["longest_gap_s"] <= 1.25 and one["left_by_itself"]
        yield (
            f"sampling while the terminal takes its bytes: {one['terminal']}",
            f"{one['frames']} frames, at most {one['longest_gap_s']:.2f} s apart; "
            f"q leaves in {one['quit_s']:.1f} s; a recording of {per_day:.0f} MB a day",
            "≤ 1.25 s apart", fine,
        )  # fmt: skip


def _probe(found: Mapping[str, Any]) -> Iterator[Row]:
    if "why_not" in found:
        yield "(i) probe", f"not measured: {found['why_not']}", "", None
        return
    bounds = {"latency": 0.95, "slow": 0.99}
    for name, one in found.items():
        what = "latencies alone, 10,000 I/Os a second" if name == "slow" else f"parts: {name}"
        bound = bounds.get(name)
        told = f"{_ratio(one['ratio'])} of {one['iops']:,.0f} IOPS"
        told += f"; reading it {one['busy']:.2f} % of a CPU; probes {one['run_ns']:.0f} ns an I/O"
        yield (f"(i) probe, {what}", told, "" if bound is None else f"≥ {bound}",
               None if bound is None else _at_least(one["ratio"], bound))  # fmt: skip
