"""`report --against`: measured rates compared with the limits of a cloud volume."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import recordings as made
from fio_recordings import statuses

from iopstui.cli import main
from iopstui.cli.options import parse_volume
from iopstui.features.reports.files import rendered
from iopstui.features.reports.formats import ReportOptions
from iopstui.model.metrics.summary import fio_summary


def test_each_limit_has_the_measured_rate(tmp_path: Path) -> None:
    path = tmp_path / "run.iops"
    made.write(path, made.RUN)
    text = rendered([path], "md", ReportOptions(against=parse_volume("aws/gp2,size=100g")))
    section = text.partition("## Promised by aws/gp2, 100 GiB")[2].partition("\n## ")[0]
    rows = [re.split(r" *\| *", line)[1:-1] for line in section.splitlines() if line[:3] == "| 1"]
    assert [row[3] for row in rows] == ["volume IOPS", "volume MB/s", "volume IOPS (burst)"]
    assert [row[4] for row in rows] == ["300 IOPS", "134.2 MB/s", "3,000 IOPS"]
    totals = fio_summary(statuses(made.RUN)[-1])["total"]
    iops = sum(part["iops"] for part in totals.values())
    measured = float(rows[0][5].removesuffix(" IOPS").replace(",", ""))
    # the report leaves out the incomplete last second
    assert measured == pytest.approx(iops, rel=0.1)
    assert rows[0][6] == f"{100 * measured / 300:.0f} %"


def test_without_against_there_are_no_limits(tmp_path: Path) -> None:
    path = tmp_path / "run.iops"
    made.write(path, made.RUN)
    assert "Promised" not in rendered([path], "md")


@pytest.mark.parametrize("against, says", [
    ("aws/gp2", "Name it: --against aws/gp2,size=500g"), ("nobody/none", "nobody/none"),
])  # fmt: skip
def test_an_unknown_or_incomplete_volume_is_refused(
    against: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.iops"
    made.write(path, made.RUN)
    assert main(["report", str(path), "--against", against]) == 2
    assert says in capsys.readouterr().err
