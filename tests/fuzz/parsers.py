"""Every parser of foreign input, each as one function of bytes.

A case fails if it raises an exception (except the documented UsageError)."""

from __future__ import annotations

import contextlib
import gzip
import os
from collections.abc import Callable
from pathlib import Path

from iopstui.errors import IopstuiError
from iopstui.fio import inspect as fio_inspect
from iopstui.fio.library import parse_header
from iopstui.fio.stream.framing import Document, Framer
from iopstui.fio.stream.status import parse_status
from iopstui.linux import kernel_files
from iopstui.linux.counters import io_limits, procfs
from iopstui.linux.counters.cgroup import parse_memberships, parse_throttled_us
from iopstui.linux.counters.interrupts import next_per_cpu_count, parse_per_cpu_count
from iopstui.linux.devices import signatures, smart
from iopstui.linux.devices.health import (
    parse_array,
    parse_degrees,
    parse_hex,
    parse_speed,
    parse_width,
)
from iopstui.linux.devices.irqmap import parse_names
from iopstui.linux.devices.sysfs import parse_drivers, parse_scheduler
from iopstui.linux.devices.usage import mounts
from iopstui.linux.machine import conditions as cpu_state
from iopstui.linux.nvme import admin
from iopstui.linux.nvme.admin import DriveUnreadable
from iopstui.linux.nvme.aws import parse_statistics
from iopstui.model.fio import jobfile
from iopstui.model.fio.intervals import FioIntervals
from iopstui.model.fio.log_lines import KINDS, Logs, read_log
from iopstui.model.sizes import size_bytes
from iopstui.output.pages.devices import health_text
from iopstui.text import printable

FIXTURES = Path(__file__).parent.parent / "fixtures"


def text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def fio_stream(data: bytes) -> None:
    """Documents, statuses, and the intervals between them; the input comes in two pieces."""
    framer = Framer()
    half = len(data) // 2
    items = [*framer.feed(data[:half]), *framer.feed(data[half:]), *framer.close()]
    intervals = FioIntervals()
    for number, item in enumerate(items):
        status = parse_status(item.data) if isinstance(item, Document) else None
        if status is not None:
            intervals.feed(status, number * 10**9, 1.0, number == len(items) - 1)


def job_file(data: bytes) -> None:
    """A job file is only edited: what we write takes effect, and fio decides what it means."""
    job_text = text(data)
    with contextlib.suppress(jobfile.AmbiguousLine):
        job_text = jobfile.canonical_text(job_text, {})
    overridden = jobfile.with_overrides(job_text, {"bs": "8k", "iodepth": "3"})
    for section in jobfile.effective_sections(overridden):
        assert section.options.get("bs") == "8k", section
    jobfile.sections(job_text)
    parse_header(job_text)


def job_names(data: bytes) -> None:
    printed = printable(text(data))
    assert printed.isprintable() and "\n" not in printed


def job_debug(data: bytes) -> None:
    """Output of fio --debug=file,parse."""
    output = text(data)
    fio_inspect.opened_files(output)
    options = fio_inspect._options(output)
    fio_inspect.error_line(output.splitlines())
    jobfile.objections(options)
    jobfile.removes_files(options)


def override(data: bytes) -> None:
    try:
        name, value = jobfile.parse_override(text(data))
    except IopstuiError:
        return
    assert name and "\n" not in name + value


def sizes(data: bytes) -> None:
    size = size_bytes(text(data))
    assert size is None or size >= 0


def conditions(data: bytes) -> None:
    """Single attributes of devices and CPUs."""
    content = text(data)
    parse_speed(content)
    parse_width(content)
    parse_hex(content)
    parse_array(content, "1", content)
    parse_degrees(content)
    governor = cpu_state.parse_governor(content)
    assert governor is None or governor.isprintable()


def limits(data: bytes) -> None:
    """Limits in cgroup v1 and v2: all are above 0."""
    content = text(data)
    assert all(value > 0 for _, _, value in io_limits.parse_io_max(content))
    assert all(value > 0 for _, value in io_limits.parse_throttle(content))
    assert all(value >= 0 for value in io_limits.parse_cost_wait(content).values())
    parse_memberships(content)


def fio_log(data: bytes) -> None:
    """A log of fio: the counts of its seconds are those of its lines."""
    for kind in KINDS:
        log = read_log(kind, text(data).split("\n"))
        logs = Logs([log])
        counted = sum(ios.count for second in log.seconds.values() for ios in second.values())
        assert counted + sum(len(windows.ends) for windows in log.windows.values()) == log.lines
        assert log.end > 1e5 or logs.rows() is not None
        logs.directions()


def counts_by_cpu(data: bytes) -> None:
    """Two readings of an interrupt: the differences found in the text are those of its words."""
    half = len(data) // 2
    before = next_per_cpu_count(data[:half], [], None)
    now = next_per_cpu_count(data[half:], [], before)
    then, counts = (parse_per_cpu_count(part, []) for part in (data[:half], data[half:]))
    assert (then, counts) == tuple(reading and reading.counts() for reading in (before, now))
    increase = now.increase_since(before) if now is not None else None
    if counts is not None and then is not None and counts.keys() == then.keys():
        assert increase == {cpu: n - then[cpu] for cpu, n in counts.items() if n != then[cpu]}


def nvme_pages(data: bytes) -> None:
    """Whatever a drive answers gives figures or a message."""
    padded = data + bytes(4096)
    page_parsers: tuple[Callable[[bytes], object], ...] = (
        admin.parse_smart, admin.parse_ocp, admin.parse_endurance, admin.parse_placement,
        admin.parse_supported, admin.parse_self_test, admin.parse_firmware, admin.parse_controller,
        admin.parse_namespace, admin.parse_transitions, lambda page: list(admin.parse_errors(page)),
        parse_statistics,
    )  # fmt: skip
    for parse in page_parsers:
        for page in (data, padded[:4096]):
            with contextlib.suppress(DriveUnreadable):
                parse(page)


def disk_health(data: bytes) -> None:
    """smartctl's answer: our text of it has no line that controls a terminal."""
    for code in (0, 2):
        health = health_text(smart.parse_disk_health(text(data), code))
        assert all(line.isprintable() for line in health.splitlines())


PARSERS: dict[str, Callable[[bytes], object]] = {
    "fio stream": fio_stream,
    "job file": job_file,
    "job names": job_names,
    "job debug": job_debug,
    "override": override,
    "size": sizes,
    "fio log": fio_log,
    "diskstats": procfs.parse_diskstats,
    "stat": procfs.parse_stat_cpus,
    "softirqs": procfs.parse_softirqs_block,
    "interrupts": lambda data: procfs.parse_interrupts(data, [1, 24]),
    "function calls": lambda data: procfs.parse_function_calls(data[:40], data[40:]),
    "per_cpu_count": counts_by_cpu,
    "conditions": conditions,
    "limits": limits,
    "throttled": parse_throttled_us,
    "mountinfo": lambda data: mounts.parse_mountinfo(text(data)),
    "swaps": lambda data: mounts.parse_swaps(text(data)),
    "cpu list": lambda data: kernel_files.parse_cpu_list(text(data)),
    "scheduler": lambda data: parse_scheduler(text(data)),
    "irq names": lambda data: parse_names(text(data)),
    "drivers": lambda data: parse_drivers(text(data)),
    "blkid": lambda data: signatures.parse_blkid(text(data)),
    "nvme pages": nvme_pages,
    "smartctl": disk_health,
    "magics": lambda data: list(signatures.known_magics(data, data[-512:], len(data))),
}


def seeds() -> list[bytes]:
    """Real input to start from: recordings, this machine's /proc, the shipped jobs."""
    inputs = []
    for path in sorted(FIXTURES.rglob("*.gz"))[:12]:
        inputs.append(gzip.decompress(path.read_bytes())[:20_000])
    for name in ("diskstats", "stat", "softirqs", "interrupts", "swaps", "self/mountinfo"):
        if os.path.exists(f"/proc/{name}"):
            inputs.append(Path("/proc", name).read_bytes()[:20_000])
    for path in sorted((FIXTURES.parents[1] / "jobs").glob("*.fio")):
        inputs.append(path.read_bytes())
    inputs.append((FIXTURES / "smart/qemu-7.2-ahci.json").read_bytes())
    inputs += [b"0-3,8-11", b"none [mq-deadline] kyber", b"4k-64k", b"iodepth=4", b"TYPE=ext4\n"]
    inputs += [
        b"254:0 rbps=max riops=9\n",
        b"8:0 rios=1 cost.wait=4\n",
        b"8.0 GT/s PCIe\n",
        b"0x1f\n",
        b"0, 14300, 0, 4096, 503808, 0\n1500, 15508, 1, 4096, 0\n1700, 5, 2, 0, 0\n",
    ]
    return inputs
