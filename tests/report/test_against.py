"""`report --against`: measured rates beside the limits of a bought volume."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import recordings as made
from fio_recordings import statuses

from iopstui.cli import main
from iopstui.cli.volume_options import parse_volume
from iopstui.model.metrics.summary import fio_summary
from iopstui.report.files import rendered
from iopstui.report.report_options import ReportOptions


def test_each_limit_stands_beside_what_fio_measured(tmp_path: Path) -> None:
    path = tmp_path / "run.iops"
    made.write(path, made.RUN)
    text = rendered([path], "md", ReportOptions(against=parse_volume("aws/gp2,size=100g")))
    section = text.partition("## Promised by aws/gp2, 100 GiB")[2].partition("\n## ")[0]
    rows = [re.split(r" *\| *", line)[1:-1] for line in section.splitlines() if line[:3] == "| 1"]
    assert [row[3] for row in rows] == ["volume IOPS", "volume MB/s", "volume IOPS (burst)"]
    assert [row[4] for row in rows] == ["300 IOPS", "134.2 MB/s", "3,000 IOPS"]
    whole = fio_summary(statuses(made.RUN)[-1])["total"]
    iops = sum(part["iops"] for part in whole.values())
    measured = float(rows[0][5].removesuffix(" IOPS").replace(",", ""))
    # fio's own mean over the whole run; ours leaves out its last part of a second
    assert measured == pytest.approx(iops, rel=0.1)
    assert rows[0][6] == f"{100 * measured / 300:.0f} %"


def test_without_it_nothing_is_promised(tmp_path: Path) -> None:
    path = tmp_path / "run.iops"
    made.write(path, made.RUN)
    assert "Promised" not in rendered([path], "md")


@pytest.mark.parametrize("against, says", [
    ("aws/gp2", "Name it: --against aws/gp2,size=500g"), ("nobody/none", "nobody/none"),
])  # fmt: skip
def test_what_it_refuses(
    against: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.iops"
    made.write(path, made.RUN)
    assert main(["report", str(path), "--against", against]) == 2
    assert says in capsys.readouterr().err
