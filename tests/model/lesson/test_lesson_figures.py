from __future__ import annotations

import pytest

from iopstui.features.lessons.model.file import suggest_names
from iopstui.features.lessons.model.formula import (
    FACT_NAMESPACES,
    flatten_document,
    requested_figures,
    run_figures,
    unit_of,
)
from iopstui.model.experiment.point import Point
from iopstui.model.findings.evidence import JobShape


def test_the_share_that_the_jobs_own_cpus_complete() -> None:
    point = Point(8.0, 80, 10.0, 40960.0, completions={0: 0.25, 1: 0.5, 2: 0.25})
    assert run_figures(point, {}, frozenset({1, 2}))["on_own"] == pytest.approx(0.75)
    # a CPU that completed nothing has no share
    assert run_figures(point, {}, frozenset({2, 9}))["on_own"] == pytest.approx(0.25)
    assert "on_own" not in run_figures(point, {}, frozenset())


def test_a_name_that_is_nearly_right() -> None:
    assert suggest_names("iopss", ["iops", "await"]) == "Did you mean iops?"
    assert suggest_names("zzz", ["iops", "await"]) == "Known: await, iops"
    assert suggest_names("zzz", []) == ""


# every figure of a point with a value that no other has
POINT = Point(
    seconds=2.0, ios=3, iops=4.0, bw=24.0, read_iops=6.0, write_iops=7.0, latency_ns=8e9,
    latency_of="lat", p50_ns=9.0, p99_ns=10.0, p999_ns=11.0, device_iops=12.0, aqu_sz=13.0,
    util=14.0, cpu_us=15.0, completions={3: 0.25, 5: 0.75}, completions_of="interrupts",
    iops_low=1.0, iops_high=5.0, slat_ns=16.0, clat_ns=17.0, max_ns=18.0, slower=0.19,
    device_bw=20.0, merges=21.0,
    request_bytes=22.0, await_ns=23.0, fio_cpu=24.0, ctx_s=25.0,
    device_p50_ns=26.0, device_p99_ns=27.0, stayed=0.28,
    wait_cpu=29.0, wait_above=30.0, wait_devices=31.0, wait_unknown=33.0,
)  # fmt: skip
FIGURES = {
    "iops_low": (1.0, "n"), "iops_high": (5.0, "n"),
    "iops": (4.0, "n"), "read_iops": (6.0, "n"), "write_iops": (7.0, "n"), "bw": (24.0, "b/s"),
    "block": (6.0, "b"), "ios": (3.0, "n"), "seconds": (2.0, "1"), "latency": (8e9, "t"),
    "slat": (16.0, "t"), "clat": (17.0, "t"), "p50": (9.0, "t"), "p99": (10.0, "t"),
    "p999": (11.0, "t"), "max": (18.0, "t"), "slower": (0.19, "%"), "in_flight": (32.0, "1"),
    "device_iops": (12.0, "n"), "device_bw": (20.0, "b/s"), "request": (22.0, "b"),
    "merges": (21.0, "n"), "wait": (23.0, "t"), "aqu_sz": (13.0, "1"), "util": (14.0, "pct"),
    "cpu": (15000.0, "t"), "fio_cpu": (24.0, "pct"), "switches": (25.0, "n"),
    "device_p50": (26.0, "t"), "device_p99": (27.0, "t"), "stayed": (0.28, "%"),
    "most": (0.75, "%"), "most_on": (5.0, "0"), "completed_as": ("interrupts", "n"),
    "wait_cpu": (29.0, "1"), "wait_above": (30.0, "1"), "wait_devices": (31.0, "1"),
    "wait_unknown": (33.0, "1"),
}  # fmt: skip
WHOLE = "asked iodepth jobs device.queues device.nomerges device.nr_requests device.rq_affinity "
WHOLE += "device.irq_cpu device.far_cpu host.cpus"


def test_each_figure_of_a_run_is_read_and_shown_in_its_form() -> None:
    found = run_figures(POINT, {}, frozenset())
    assert {name: (value, unit_of(f"one.{name}")) for name, value in found.items()} == FIGURES


def test_the_form_of_what_is_asked_and_of_facts() -> None:
    for name in WHOLE.split():
        assert unit_of(name if "." in name else f"one.{name}") == "0"
    forms = {
        "device.max_request": "b", "device.read_ahead": "b", "host.memory": "b",
        "device.cpus_per_queue": "1", "device.name": "n", "one.on_own": "%", "one.engine": "n",
        "gain": "n", "one.none": "n",
    }  # fmt: skip
    assert {name: unit_of(name) for name in forms} == forms
    assert {"device", "host", "target", "can", "why", "matters"} == FACT_NAMESPACES


def test_the_form_of_what_fio_says_is_in_its_name() -> None:
    forms = {
        "one.fio.read.clat_ns.mean": "t", "one.fio.read.clat_ns.N": "n",
        "one.fio.read.io_bytes": "b", "one.fio.read.bw_bytes": "b/s", "one.fio.read.iops": "n",
        "one.fio.lat_ns": "t",
    }  # fmt: skip
    assert {name: unit_of(name) for name in forms} == forms


def test_what_a_job_asks_for() -> None:
    shape = JobShape(jobs=3, iodepth=4, engine="libaio", direct=True, in_flight=12)
    asked = {"asked": 12.0, "iodepth": 4.0, "jobs": 3.0, "engine": "libaio"}
    assert requested_figures(shape) == asked
    unknown = requested_figures(JobShape(iodepth=None, in_flight=None))
    assert (unknown["asked"], unknown["iodepth"]) == (None, None)


def test_fio_s_document_by_path() -> None:
    document = {
        "jobs": [
            {"a b": 1, "read": {"50.0": 2.5, "bins": {"1": 1}, "x": "y", "no": None}}, {"c": 3},
        ],
        "disk_util": [{"name": "vda"}],
    }  # fmt: skip
    assert flatten_document(document) == {
        "a_b": 1, "read._50_0": 2.5, "read.x": "y", "disk.name": "vda",
    }  # fmt: skip
    assert flatten_document({"jobs": {}, "disk_util": []}) == {}
    found = run_figures(POINT, {"jobs": [{"ctx": 9}]}, frozenset())
    assert found["fio.ctx"] == 9
