"""Run a promise test: from its arguments to the exit code."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from iopstui.catalog import read_catalog
from iopstui.cli.options import GIB, apply_volume_options, read_promised_figures
from iopstui.cli.terminal import kill_without_waiting, print_message, show, width
from iopstui.errors import EXIT_OK, UsageError
from iopstui.features.promise.model import (
    FAIL,
    LATENCY,
    PASS,
    VisibleFacts,
    VolumeGuess,
    guess_volume,
    is_promise_met,
)
from iopstui.features.promise.model import Verdict as FigureVerdict
from iopstui.features.promise.runner import PromiseRunner
from iopstui.features.promise.setup import (
    PromiseSetup,
    plan_lines,
    set_up,
    target_disk,
    title_of_check,
)
from iopstui.format import latency, print_sentence
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.kernel_files import Roots, read_text
from iopstui.model.block.device import BlockDevice
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.experiment.verdict import Check, Verdict
from iopstui.model.volumes.promised import PromisedFigures
from iopstui.model.volumes.volume import IOPS, OWN, READ, WRITE, Latency, VolumeClass
from iopstui.output.narration import RunProgress
from iopstui.output.pages.volumes import outdated, volume_json
from iopstui.safety.leftovers import clean_up_and_report
from iopstui.safety.signals import StopSignals
from iopstui.tables import aligned
from iopstui.text import printable, wrapped


def run_promise(arguments: argparse.Namespace) -> int:
    """Run `iopstui promise`. Returns the exit code. The table or JSON goes to stdout, everything
    else to stderr."""
    setup = _set_up(arguments)
    plan = sys.stdout if arguments.dry_run else sys.stderr
    for line in plan_lines(setup):
        print_sentence(line, plan)
    if arguments.dry_run:
        return EXIT_OK
    clean_up_and_report(print_message, Roots())
    progress = RunProgress(sys.stderr, sys.stdout)
    runner = PromiseRunner(setup, progress.handle, progress.write_note)
    StopSignals(runner.loop.stop, kill_without_waiting(runner.loop.kill))
    runner.run()
    rows = runner.verdicts
    titles = [title_of_check(row.check) for row in rows]
    if arguments.json:
        show(json.dumps(promise_json(setup.promised, rows, titles), indent=2))
    else:
        show(promise_text(setup.promised, rows, titles, width(), sys.stdout.isatty()))
    return Verdict((Check("the promise", is_promise_met(rows)),)).exit_code


def _set_up(arguments: argparse.Namespace) -> PromiseSetup:
    request = RunRequest(
        size=arguments.file_size, targets=(arguments.target,) if arguments.target else (),
        write_budget=arguments.write_budget, record=arguments.record,
        destroy_data=(arguments.destroy_data,) if arguments.destroy_data else (),
    )  # fmt: skip
    own = any((arguments.iops, arguments.throughput, arguments.latency))
    promised = _own_figures(arguments) if own and arguments.volume is None else _bought(arguments)
    return set_up(
        promised, request, arguments.settle, arguments.measure, arguments.tolerance, arguments.drain
    )


def _own_figures(arguments: argparse.Namespace) -> PromisedFigures:
    """The figures that the user gave as numbers, which belong to no volume class."""
    for name in ("instance", "cached", "size", "drain"):
        if getattr(arguments, name):
            raise UsageError(f"--{name} needs a volume class, and none is named.",
                             "Add --volume NAME (iopstui volumes lists them).")  # fmt: skip
    latency = None
    if arguments.latency is not None:
        percentile, bound = arguments.latency
        latency = Latency(bound, "randread randwrite", 4096, "", percentile)
    volume = VolumeClass(OWN, "numbers", "the numbers on the command line", None, {}, {},
                         latency=latency)  # fmt: skip
    rates = (arguments.iops, arguments.throughput)
    iops, flow = (dict.fromkeys((READ, WRITE), rate) for rate in rates)
    return PromisedFigures(volume, 0.0, iops, flow)


def _bought(arguments: argparse.Namespace) -> PromisedFigures:
    if arguments.latency is not None:
        raise UsageError("--latency tests a number of yours, --volume the numbers of a class.",
                         "Leave one of them out.")  # fmt: skip
    catalog = read_catalog()
    for problem in catalog.problems:
        print_message(problem)
    targets = (arguments.target,) if arguments.target else ()
    device = target_disk(targets, read_devices(Roots()))
    facts = read_visible_facts(device, Roots()) if device is not None else None
    guessed = guess_volume(facts, catalog.classes.values()) if facts is not None else VolumeGuess()
    if arguments.volume is None:
        raise UsageError(*_missing_volume_error(guessed, device, arguments.target))
    volume = catalog.volume(apply_volume_options(arguments, arguments.volume, "--volume"))
    providers = {volume_class.provider for volume_class in catalog.classes.values()}
    if guessed.provider in providers - {volume.provider, "drive"} and volume.provider != "drive":
        print_message(f"warning: this looks like a volume of {guessed.provider} ({guessed.why}), "
            f"not of {volume.provider}")  # fmt: skip
    on = catalog.instances.get(f"{volume.provider}/{facts.product}") if facts is not None else None
    if on is not None and arguments.instance is None:
        print_message(
            f"This machine calls itself {on.name}: --instance {on.name} counts its limits, too"
        )
    known_size = volume.needs_size and device is not None and device.size
    size = device.size / GIB if device is not None and known_size and device.size else None
    promised = read_promised_figures(arguments, catalog, volume, size)
    if arguments.size is None and size is not None:
        source = printable(device.path if device else "")
        print_message(f"size: {size:,.4g} GiB, from {source}; --size sets another")
    return promised


def _missing_volume_error(
    guessed: VolumeGuess, device: BlockDevice | None, target: str | None
) -> tuple[str, str]:
    target_text = f" {printable(target)}" if target else ""
    if guessed.volume is not None:
        return (
            f"This looks like {guessed.volume.id} ({guessed.volume.title}): {guessed.why}.",
            f"Confirm it: iopstui promise{target_text} --volume {guessed.volume.id}",
        )
    size = f" of {guessed.size_gib:,.4g} GiB" if guessed.size_gib else ""
    if guessed.provider:
        return (
            f"This looks like a volume of {guessed.provider}{size}: {guessed.why}. The class "
            "cannot be seen from inside.",
            f"Name it: iopstui promise{target_text} --volume {guessed.provider}/CLASS "
            "(iopstui volumes)",
        )
    subject = f"this disk{size}" if device is not None else "this place"
    return (
        f"Nothing on this machine shows which class {subject} is.",
        "Name it: --volume NAME (iopstui volumes lists them)",
    )


# Read by what the machine and its disks can be identified: DMI, models, serial numbers, links.


# the asset tag, because the vendor is Microsoft on Hyper-V machines outside Azure, too
AZURE_ASSET = "7783-7084-3265-9085-8269-3286-77"


def read_visible_facts(device: BlockDevice, roots: Roots) -> VisibleFacts:
    """Read the visible properties of ``device``, without using the network."""
    dmi = roots.sys / "class/dmi/id"
    vendor = read_text(dmi / "sys_vendor") or ""
    asset = read_text(dmi / "chassis_asset_tag") or ""
    if vendor.lower().startswith("microsoft") and asset != AZURE_ASSET:
        vendor = ""
    return VisibleFacts(
        printable(vendor),
        printable(device.model or ""),
        printable(device.serial or ""),
        device.size,
        _azure_link(device, roots),
        printable(read_text(dmi / "product_name") or ""),
    )


def _azure_link(device: BlockDevice, roots: Roots) -> str:
    base = roots.dev / "disk/azure"
    for folder, _, names in os.walk(base):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.basename(os.path.realpath(path)) == os.path.basename(device.path):
                return f"/dev/disk/azure/{printable(os.path.relpath(path, base))}"
    return ""


# Promised and measured figures side by side, as a table for people and as JSON.


HEAD = ("FIGURE", "PROMISED", "MEASURED", "95 % INTERVAL", "RESULT", "BINDING LIMIT")


def promise_text(
    promised: PromisedFigures, rows: Sequence[FigureVerdict], titles: Sequence[str], width: int,
    on_terminal: bool = False,
) -> str:  # fmt: skip
    """The table and its last line; ``titles`` are the titles of the ``rows``. Where the table is
    wider than a terminal, sentences name the binding limits."""
    size = f", {promised.size_gib:,.4g} GiB" if promised.size_gib else ""
    instance = f", on {promised.instance.id}" if promised.instance is not None else ""
    cells = [HEAD, *(_cells(row, title) for row, title in zip(rows, titles, strict=True))]
    lines = [printable(f"{promised.volume.id}: {promised.volume.title}{size}{instance}"), ""]
    table = [*aligned(cells)]
    has_limits = not on_terminal or max(map(len, table)) <= width
    lines += table if has_limits else aligned([line[:-1] for line in cells])
    notes: list[str] = []
    for row, title in zip(rows, titles, strict=True):
        if row.binding and not has_limits:
            notes.append(f"{title}: the binding limit is {row.binding}.")
        notes += [f"{title}: {row.why}."] if row.why else []
    if notes:
        lines.append("")
    lines += [wrapped(printable(note), 0, 2, max(width, 40)) for note in notes]
    warmup = promised.volume.warmup
    if warmup is not None and any(row.result == FAIL for row in rows):
        lines.append(wrapped(printable(f"Warm-up: {warmup.text}"), 0, 2, max(width, 40)))
    old = outdated(promised.volume)
    if old and any(row.result == FAIL for row in rows):
        lines.append(wrapped(printable(old), 0, 2, max(width, 40)))
    return "\n".join([*lines, "", _verdict_line(rows)])


def _cells(row: FigureVerdict, title: str) -> tuple[str, ...]:
    low, high = row.low, row.high
    within = "–" if low is None or high is None or high == float("inf") else (
        f"{_figure(row, low, bare=True)} to {_figure(row, high, bare=True)}")  # fmt: skip
    sign = "≤ " if row.check.kind == LATENCY else ""
    return (
        title + (" (burst)" if row.burst else ""), sign + _figure(row, row.promised),
        _figure(row, row.measured), within, row.result, row.binding or "–",
    )  # fmt: skip


def _figure(row: FigureVerdict, value: float | None, bare: bool = False) -> str:
    if value is None:
        return "–"
    if row.check.kind == LATENCY:
        return latency(value)
    if row.check.kind == IOPS:
        return f"{value:,.0f}" + ("" if bare else " IOPS")
    return f"{value * row.check.block_size / 1e6:,.4g}" + ("" if bare else " MB/s")


def _verdict_line(rows: Sequence[FigureVerdict]) -> str:
    failed = sum(1 for row in rows if row.result == FAIL)
    passed = sum(1 for row in rows if row.result == PASS)
    undecided = len(rows) - failed - passed
    text = f"{passed} passed, {failed} failed, {undecided} undecided"
    return f"{'PASS' if is_promise_met(rows) else 'FAIL' if failed else 'UNDECIDED'}: {text}."


def promise_json(
    promised: PromisedFigures, rows: Sequence[FigureVerdict], titles: Sequence[str]
) -> dict[str, Any]:
    """The verdict as an object for JSON. Rates are in IOPS and bytes per second, latencies in
    ns."""
    return {
        "volume": volume_json(promised.volume, promised),
        "rows": [_row_json(row, title) for row, title in zip(rows, titles, strict=True)],
        "met": is_promise_met(rows),
    }


def _row_json(row: FigureVerdict, title: str) -> dict[str, Any]:
    flow = row.check.kind not in (LATENCY, IOPS)

    def unit(value: float | None) -> float | None:
        if value is None or value == float("inf"):
            return None
        return value * row.check.block_size if flow else value

    return {
        "figure": title, "kind": row.check.kind, "direction": row.check.direction,
        "rw": row.check.rw, "load": row.check.load or None, "block_size": row.check.block_size,
        "burst": row.burst,
        "unit": "bytes/s" if flow else "ns" if row.check.kind == LATENCY else "1/s",
        "promised": unit(row.promised), "measured": unit(row.measured), "low": unit(row.low),
        "high": unit(row.high), "result": row.result, "binding": row.binding or None,
        "why": row.why or None,
    }  # fmt: skip
