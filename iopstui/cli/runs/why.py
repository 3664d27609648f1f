"""Look at disks or a process for some seconds and answer in one sentence."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from iopstui.cli.terminal import print_message
from iopstui.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_UNKNOWN, EXIT_VERDICT, UsageError
from iopstui.format import print_line, print_sentence
from iopstui.linux.activity.task_waits import TaskWaits
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.target import device_links, device_tree
from iopstui.linux.kernel_files import Roots
from iopstui.linux.process.processes import is_hidden
from iopstui.model.answer.answer import NOTHING, UNKNOWN, WAITS
from iopstui.model.answer.judge import combined_verdict, judge, judge_share
from iopstui.model.answer.process import beside, own_disks, process_verdict
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DEVICE, Target, TargetPath, combine_targets
from iopstui.output.pages.why import Report, why_json, why_lines, without_disk
from iopstui.preflight.targets import choose_watch_target
from iopstui.session.examination import Examination

FIRST_S = 3
"""Seconds after which the first sentence is shown."""
EXIT_CODES = {WAITS: EXIT_VERDICT, UNKNOWN: EXIT_UNKNOWN, NOTHING: EXIT_OK}


def why(what: str | None, length_s: float, as_json: bool, probe: bool) -> int:
    """Print the answer on standard output, and progress on standard error. Returns the exit
    code."""
    roots = Roots()
    devices = read_devices(roots)
    process = _process(what, devices, roots)
    if process is None and what is not None:
        target = choose_watch_target([what], devices, roots, needs_device=False)
    else:
        target = _all_disks(devices, roots)
    if not target.devices_below and not target.shares:
        return _print(without_disk(target), as_json)
    seconds = max(FIRST_S, round(length_s))
    examination = Examination(target, devices, roots, probe=probe)
    try:
        for second in examination.seconds(seconds, _sleep_until if process is None
                                          else process.look_until):  # fmt: skip
            if second == FIRST_S < seconds:
                first = _report(examination, process)
                print_message(f"after {FIRST_S} s: {first.sentences[0]}")
    except KeyboardInterrupt:
        if len(examination.frames) < FIRST_S:
            return EXIT_INTERRUPTED
    return _print(_report(examination, process), as_json)


def _print(report: Report, as_json: bool) -> int:
    code = EXIT_CODES[report.verdict]
    if as_json:
        print_line(json.dumps(why_json(report, os.uname().nodename, code), indent=2), sys.stdout)
    else:
        for line in why_lines(report):
            print_sentence(line, sys.stdout)
    return code


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def _process(
    what: str | None, devices: Mapping[str, BlockDevice], roots: Roots
) -> TaskWaits | None:
    """The process with that number; ``None`` if ``what`` is not a number."""
    if what is None or not (what.isascii() and what.isdecimal()):
        return None
    process = TaskWaits(int(what), devices, roots)
    if not process.exists and is_hidden(process.pid):
        raise UsageError(f"/proc does not show process {what} to this user (hidepid).",
                         f"As root: iopstui why {what}")  # fmt: skip
    if not process.exists:
        other = f". For the file of that name: iopstui why ./{what}" if Path(what).exists() else ""
        raise UsageError(f"There is no process {what}.", f"List: ps -e{other}")
    return process


def _all_disks(devices: Mapping[str, BlockDevice], roots: Roots) -> Target:
    """All devices that may do I/O, except partitions. Stacked devices count, because one may be the
    only one at fault."""
    places = [
        TargetPath(DEVICE, device.path, name, (tree := device_tree(name, devices, roots)),
                   links=device_links(tree, devices, roots))
        for name, device in devices.items()
        if device.size and not device.hidden and not device.disk
    ]  # fmt: skip
    if not places:
        raise UsageError(
            "No disk is visible on this machine.",
            "In a container: docker run -v /sys:/sys:ro ... (iopstui doctor)",
        )
    return combine_targets(places)


def _report(examination: Examination, process: TaskWaits | None) -> Report:
    seen = examination.seen
    pairs = judge(seen) + judge_share(seen)
    waits = process.result() if process is not None else None
    if waits is not None:
        waits = beside(waits, pairs)
        pairs = own_disks(waits.waiting or waits, pairs)
    verdict = combined_verdict(pairs, was_read=seen.use is not None)
    if waits is not None:
        verdict = process_verdict(waits, verdict)
    return Report(pairs, verdict, len(examination.frames), waits, examination.no_probe)
