"""fio's normal report made of its JSON, line for line what fio itself prints."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fio_recordings import NAMES, items, raw
from hypothesis import given
from hypothesis import strategies as st

from iopstui.features.lessons.model.pages import PARTS
from iopstui.features.lessons.model.report import _bytes, report_parts
from iopstui.fio.inspect import find_fio
from iopstui.fio.stream.framing import Document
from iopstui.model.metrics.summary import without_bins

ON_FILE = """
[global]
ioengine=psync
rw=randrw
size=4m
filename=report.scratch
time_based
[several]
runtime=600ms
bs=4k,16k
numjobs=2
group_reporting
"""
IN_MEMORY = """
[global]
ioengine=null
size=1g
[slow]
rw=randread
thinktime=2ms
runtime=600ms
time_based
lat_percentiles=1
slat_percentiles=1
percentile_list=1:50:99.9:99.999
[fast]
rw=write
bs=1m
iodepth=16
runtime=600ms
time_based
[last]
stonewall
rw=read
bssplit=4k/50:64k/50
gtod_reduce=1
"""


@pytest.mark.parametrize("job", [ON_FILE, IN_MEMORY], ids=["file", "memory"])
def test_it_is_what_fio_prints_of_the_same_run(job: str, tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(job)
    done = subprocess.run(
        [find_fio().path, "--output-format=normal,json+", "--eta=never", "job.fio"],
        cwd=tmp_path, capture_output=True, text=True, check=True, env={"LC_ALL": "C"},
    )  # fmt: skip
    document = re.search(r"^\{\n.*?^\}\n", done.stdout, re.MULTILINE | re.DOTALL)
    assert document is not None
    plain = re.sub(r" pid=\d+", " pid=?", done.stdout.replace(document[0], ""))
    theirs = [line.rstrip() for line in plain.splitlines() if line.strip()]
    theirs = [line for line in theirs if ": Laying out IO file" not in line]
    ours = [line.rstrip() for line in rendered(json.loads(document[0]))]
    assert len(ours) == len(theirs)
    for mine, printed in zip(ours, theirs, strict=True):
        # fio reads the clock once for each format, and its text is made from more digits of a mean
        # than its JSON has
        assert STAMP.sub("", mine) == STAMP.sub("", printed) or near(mine, printed), printed


STAMP = re.compile(r": pid=\?: .*$")
FIGURE = re.compile(r"\d+\.\d\d\b")


def near(mine: str, printed: str) -> bool:
    """True if the lines differ at most in the rounding of a figure's second decimal."""
    ours, theirs = FIGURE.findall(mine), FIGURE.findall(printed)
    return FIGURE.sub("", mine) == FIGURE.sub("", printed) and all(
        abs(float(a) - float(b)) < 0.011 for a, b in zip(ours, theirs, strict=True)
    )


@pytest.mark.parametrize(
    ("count", "printed"),
    [(10239, "10.00KiB"), (10199, "9.96KiB"), (102399, "100.0KiB"), (1048575, "1024KiB"),
     (104857599, "100.0MiB")],
)  # fmt: skip
def test_sizes_round_as_fio_s_do(count: int, printed: str) -> None:
    assert _bytes(count) == printed  # what fio 3.33 printed for one I/O of that size


def rendered(document: dict[str, Any]) -> list[str]:
    return [line for _, lines in report_parts(without_bins(document)) for line in lines]


@pytest.mark.parametrize("name", NAMES)
def test_reports_of_all_versions_can_be_rendered(name: str) -> None:
    documents = [one.data for one in items([raw(name)]) if isinstance(one, Document)]
    parts = report_parts(documents[-1])
    assert {part for part, _ in parts} <= set(PARTS)
    assert {"job", "version", "starting", "result", "cpu", "group"} <= {part for part, _ in parts}


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["read", "write", "clat_ns", "percentile", "50.0", "N", "job options", "bs",
                         "bssplit", "numjobs", "bw_samples", "total_ios", "iodepth_level"]),
        inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(st.lists(junk, max_size=2), st.lists(junk, max_size=2), junk)
def test_damaged_documents_are_rendered_as_far_as_they_go(
    jobs: list[Any], disks: list[Any], options: Any
) -> None:
    document = {"jobs": jobs, "disk_util": disks, "global options": options}
    assert all(isinstance(line, str) for line in rendered(document))


def test_a_document_loses_its_histograms_alone() -> None:
    document = {"jobs": [{"read": {"clat_ns": {"N": 1, "bins": {"5": 1}}}}], "time": "x"}
    assert without_bins(document) == {"jobs": [{"read": {"clat_ns": {"N": 1}}}], "time": "x"}
    deep: list[Any] = []
    for _ in range(2000):
        deep = [deep]
    assert without_bins({"jobs": [], "more": deep}) == {}
