from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fio_recordings import NAMES, frames, items, raw, statuses

from iopstui.model.samples import FioStatus
from iopstui.model.summary import FramesTotal, expected, fio_summary
from iopstui.output.summary import MOST_ROWS, reconciliation, summary_text
from iopstui.sources.fio_stream import Document


def total(name: str) -> FramesTotal:
    counted = FramesTotal()
    for frame in frames(name):
        counted.add(frame.fio)
    return counted


def stated(name: str) -> list[dict[str, Any]]:
    """The rows of the last document, as fio wrote them."""
    documents = [item for item in items([raw(name)]) if isinstance(item, Document)]
    return list(documents[-1].data["jobs"])


@pytest.mark.parametrize("name", NAMES)
def test_the_figures_are_exactly_fio_own(name: str) -> None:
    rows = fio_summary(statuses(name)[-1])["rows"]
    assert len(rows) == len(stated(name))
    for row, own in zip(rows, stated(name), strict=True):
        assert (row["name"], row["error"]) == (own["jobname"], own["error"])
        for direction, figures in row["directions"].items():
            block = own[direction]
            assert figures["iops"] == block["iops"]
            assert figures["total_ios"] == block["total_ios"]
            assert figures["runtime_ms"] == block["runtime"]
            assert figures["io_bytes"] == block["io_bytes"]
            if "bw_bytes" in block:
                assert figures["bw_bytes"] == block["bw_bytes"]
            if figures["clat_mean_ns"] is not None:
                assert figures["clat_mean_ns"] == block["clat_ns"]["mean"]
            if figures["lat_mean_ns"] is not None:
                assert figures["lat_mean_ns"] == block["lat_ns"]["mean"]
            source = block[f"{figures['percentiles_of']}_ns"]
            for key, value in figures["percentiles"].items():
                theirs = {f"p{float(p):g}": v for p, v in source["percentile"].items()}
                assert theirs[key] == value
            if figures["lat_max_ns"] is not None:
                assert figures["lat_max_ns"] == source["max"]


def test_a_direction_without_io_is_not_in_the_summary() -> None:
    (row,) = fio_summary(statuses("3.42-a-randread-grp")[-1])["rows"]
    assert list(row["directions"]) == ["read"]


def test_without_latencies_there_are_none_in_the_summary() -> None:
    for version in ("3.1", "3.16", "3.42"):
        (row,) = fio_summary(statuses(f"{version}-b-randrw-gtod")[-1])["rows"]
        for figures in row["directions"].values():
            assert figures["clat_mean_ns"] is None
            assert figures["percentiles"] == {}
            assert figures["lat_max_ns"] is None


def test_rows_of_a_group_are_summed() -> None:
    summary = fio_summary(statuses("3.42-c-numjobs4-nogroup")[-1])
    (group,) = summary["sums"]
    own = [row["read"] for row in stated("3.42-c-numjobs4-nogroup")]
    assert group["directions"]["read"]["rows"] == 4
    for key in ("iops", "io_bytes", "total_ios"):
        assert group["directions"]["read"][key] == pytest.approx(sum(row[key] for row in own))
    assert summary["total"]["read"]["iops"] == group["directions"]["read"]["iops"]


def test_rates_of_stages_that_follow_one_another_are_not_summed() -> None:
    summary = fio_summary(statuses("3.42-d-stonewall")[-1])
    assert len(summary["sums"]) == 2
    assert {part["iops"] for part in summary["total"].values()} == {None}
    assert all(part["io_bytes"] for part in summary["total"].values())


@pytest.mark.parametrize("name", NAMES)
def test_the_text_has_fio_figures_and_says_that_the_frames_add_up(name: str) -> None:
    text = summary_text(fio_summary(statuses(name)[-1]), total(name))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[-1].endswith("exactly fio's count.")
    for own in stated(name):
        for direction in ("read", "write", "trim", "mixed"):
            if own.get(direction, {}).get("total_ios"):
                assert f"{own[direction]['iops']:.1f}" in text


def test_a_difference_is_said_in_figures() -> None:
    summary = fio_summary(statuses("3.42-a-randread-grp")[-1])
    short = FramesTotal()
    for frame in frames("3.42-a-randread-grp")[1:]:
        short.add(frame.fio)
    text = reconciliation(summary, short)
    ios, size = expected(summary)
    assert ios > short.ios
    assert f"({short.ios - ios}, {short.bytes - size})" in text
    assert "exactly" not in text


def test_without_frames_nothing_is_said_about_them() -> None:
    assert "frames" not in summary_text(fio_summary(statuses("3.42-a-randread-grp")[-1]), None)


def test_many_rows_are_shown_by_their_sums() -> None:
    status = statuses("3.42-c-numjobs4-nogroup")[-1]
    many = replace(status, jobs=status.jobs * MOST_ROWS)
    lines = summary_text(fio_summary(many), None).splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("sum")


def test_errors_are_told_with_their_meaning() -> None:
    text = summary_text(fio_summary(statuses("3.42-g5-enospc-run")[-1]), None)
    assert "g: error 28 (No space left on device)" in text


def test_a_run_that_did_nothing() -> None:
    text = summary_text(fio_summary(statuses("3.42-g2-perm")[-1]), total("3.42-g2-perm"))
    assert "error 13" in text
    assert "0.000 s" in text
    summary_text(fio_summary(FioStatus("fio-3.42", 0, ())), FramesTotal())


def test_a_reset_drops_what_was_counted_before() -> None:
    counted = FramesTotal()
    ramp = [frame.fio for frame in frames("3.42-e-ramp") if frame.fio and frame.fio.ramp]
    for interval in ramp:
        counted.add(interval)
    assert counted.ios > 0
    assert total("3.42-e-ramp").difference(fio_summary(statuses("3.42-e-ramp")[-1])) == (0, 0)
