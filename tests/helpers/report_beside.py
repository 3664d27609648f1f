"""Make reports of recordings twice: in order, and with several processes. It is a program of its
own, because a process with threads must not be forked.

report_beside.py PROCESSES KEYS FILE...

``KEYS`` key samples make a segment. Prints a JSON line for each file: both reports, and how often
the second one had to start again in order."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from iopstui.features.reports import blocks, report_data
from iopstui.features.reports.files import rendered


def report(path: Path) -> str:
    try:
        return rendered([path], "json")
    except Exception as error:
        return repr(error)


def both(path: Path) -> dict[str, Any]:
    asked: list[bool] = []
    whole, beside_it = report_data._read_report, report_data.fold_in_parallel

    def told(recording: Any, several: bool) -> Any:
        asked.append(several)
        return whole(recording, several)

    def by_several(*arguments: Any) -> Any:
        found = beside_it(*arguments)
        used.append(found is not None)
        return found

    used: list[bool] = []
    with (
        mock.patch.object(report_data, "_read_report", told),
        mock.patch.object(report_data, "fold_in_parallel", by_several),
    ):
        found = report(path)
    with mock.patch.object(report_data, "fold_in_parallel", lambda *_: None):
        in_order = report(path)
    return {
        "file": path.name, "beside": found, "in_order": in_order,
        "used": any(used), "again": asked.count(False),
    }  # fmt: skip


if __name__ == "__main__":
    processes, keys, *files = sys.argv[1:]
    blocks.SEGMENT_KEYS = int(keys)
    blocks.MAX_PROCESSES = int(processes)
    with mock.patch.object(os, "sched_getaffinity", lambda _: set(range(64))):
        for file in files:
            print(json.dumps(both(Path(file))))
