from __future__ import annotations

from dataclasses import replace

from evidence_frames import device, disk, fio, frame, seconds

from iopstui.model.findings.active_findings import contradiction
from iopstui.model.findings.evidence import Evidence
from iopstui.model.findings.finding import Finding, end_text
from iopstui.model.metrics.frame import Frame


def run(*iops: float) -> list[Frame]:
    return [frame(1.0 + n, fio(x), disks={"vda": disk(x)}) for n, x in enumerate(iops)]


def test_a_device_that_counts_after_all() -> None:
    said = Finding("iostats", "vda has iostats=0")
    counted = tuple(seconds(3, interval=fio(900), disks={"vda": disk(900)}))
    evidence = Evidence(counted, devices=[device(iostats=False)])
    assert contradiction(said, evidence) == "vda does count its I/Os"
    assert not contradiction(said, replace(evidence, devices=[device(iostats=True)]))
    assert not contradiction(Finding("tags", ""), evidence)


def test_iops_that_come_back_were_no_used_up_credit() -> None:
    said = Finding("burst", "IOPS fell", since=0.0)
    falls = Evidence(tuple(run(*[3_000.0] * 6, *[1_000.0] * 6)))
    back = Evidence(tuple(run(*[3_000.0] * 6, *[1_000.0] * 6, *[2_900.0] * 3)))
    assert not contradiction(said, falls)
    assert contradiction(said, back) == "IOPS are back at 2.90k"


def test_more_iops_than_a_cap_or_a_saturated_queue_allowed() -> None:
    for rule in ("cap", "saturated"):
        said = Finding(rule, "", since=0.0, until=3.0)
        stays = Evidence(tuple(run(*[500.0] * 7)))
        rose = Evidence(tuple(run(*[500.0] * 3, *[900.0] * 3)))
        assert not contradiction(said, stays)
        assert contradiction(said, rose) == "IOPS rose to 900 since"


def test_it_is_withdrawn_in_words() -> None:
    assert end_text(1.0, 5.0, "IOPS are back") == "withdrawn: IOPS are back"
    assert "ended at" in end_text(1.0, 5.0)
