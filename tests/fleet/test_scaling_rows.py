"""What is printed of a curve over hosts, and what is no such curve."""

from __future__ import annotations

import argparse
import io
import json

import pytest
from json_schema import check_line
from made import stream

from iopstui.cli.fleet.host_sweep import host_counts
from iopstui.errors import UsageError
from iopstui.fleet.merging.merger import Merger
from iopstui.fleet.scaling_curve import ScalePoint, scale_point
from iopstui.model.experiment.scaling import analyse_scaling
from iopstui.output.fleet.scaling import scaling_sink


def point(hosts: int) -> ScalePoint:
    merger = Merger()
    for number in range(hosts):
        for row in stream(f"h{number}", number, 4):
            merger.feed(f"h{number}", row)
    list(merger.finish())
    return scale_point(hosts, merger)


def printed(kind: str) -> str:
    out = io.StringIO()
    sink = scaling_sink(kind, out, io.StringIO())
    points = [point(hosts) for hosts in (1, 2, 4, 8)]
    for one in points:
        sink.point(one, points[0])
    sink.end(analyse_scaling([(one.hosts, one.iops) for one in points]))
    return out.getvalue()


def test_a_row_for_each_point() -> None:
    lines = printed("table").splitlines()
    assert lines[0].split()[:3] == ["hosts", "IOPS", "MiB/s"]
    assert [line.split()[0] for line in lines[1:5]] == ["1", "2", "4", "8"]
    assert max(map(len, lines)) <= 80
    rows = [json.loads(line) for line in printed("jsonl").splitlines()]
    for row in rows:
        check_line(row)
    last = rows[3]
    assert last["iops_lowest"] <= last["iops_host"] <= last["iops_highest"]
    assert last["linear"] == pytest.approx(last["iops"] / 8 / rows[0]["iops"])
    head, *table = printed("csv").splitlines()
    assert len(table) == 4 and {line.count(",") for line in table} == {head.count(",")}


def asked(axis: str, **more: object) -> argparse.Namespace:
    rest = {"job": "randread-4k", **more}
    return argparse.Namespace(axis=[axis], **rest)


def test_how_many_hosts() -> None:
    assert host_counts(asked("hosts=1,2,4..16"), 16) == [1, 2, 4, 8, 16]


@pytest.mark.parametrize(("axis", "more"), [
    ("hosts=0,1", {}), ("hosts=1,2,4..32", {}), ("hosts=x", {}), ("hosts=", {}), ("hosts=1,1", {}),
    ("hosts=1.5", {}), ("hosts=-1", {}), ("hosts=²", {}), ("iodepth=1,2", {}),
    ("hosts=1,2", {"job": None}), ("hosts=" + "9" * 5000, {}),
])  # fmt: skip
def test_what_is_no_axis_of_hosts(axis: str, more: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        host_counts(asked(axis, **more), 16)
