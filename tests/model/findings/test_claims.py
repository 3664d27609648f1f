"""Each part of the I/Os in flight is claimed by one finding."""

from __future__ import annotations

from dataclasses import replace

from evidence_frames import device, disk, fio, seconds
from hypothesis import given
from hypothesis import strategies as st

from iopstui.model.findings.diagnosis import CLAIMED_PARTS, claimed_ios, without_double_claims
from iopstui.model.findings.evidence import Evidence, JobShape
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.waits import Waits

DIRECT = JobShape(engine="libaio", direct=True)


def placed(cpu: float, above: float, inside: float, others: float = 0.0) -> Evidence:
    """I/Os in these places; for each I/O of the job, others do ``others`` I/Os on the device."""
    frames = seconds(
        3, interval=fio(1_000, lat_ns=1e6), disks={"vda": disk(1_000 * (1 + others), wait=4.0)}
    )
    waits = Waits(cpu + above + inside, cpu, above, {"vda": inside}, None, None, 0.0)
    frames = [replace(one, waits=waits) for one in frames]
    return Evidence(tuple(frames), devices=[device()], shape=DIRECT)


def rules(evidence: Evidence, *names: str) -> list[str]:
    found = [Finding(name, name) for name in names]
    return [one.rule for one in without_double_claims(found, evidence)]


def test_the_larger_wait_is_named_first() -> None:
    names = ("cpu-wait", "disagree", "tags")
    assert rules(placed(3.5, 8.5, 4.0), *names) == ["tags", "disagree", "cpu-wait"]
    assert rules(placed(8.5, 3.5, 4.0), *names) == ["cpu-wait", "disagree", "tags"]


def test_a_part_is_given_away_once() -> None:
    evidence = placed(3.0, 8.0, 5.0)
    assert rules(evidence, "more-jobs-than-cpus", "cpu-wait") == ["more-jobs-than-cpus"]
    assert rules(evidence, "above", "write-back") == ["above"]
    # a neighbour that holds nearly all of the queue leaves nothing for a scheduler
    assert rules(placed(0.0, 0.0, 8.0, others=20.0), "neighbour", "starved") == ["neighbour"]
    assert rules(placed(0.0, 0.0, 8.0), "starved") == ["starved"]


def test_what_makes_no_claim_stays() -> None:
    evidence = placed(3.0, 0.0, 1.0)
    assert rules(evidence, "disagree", "one-cpu") == ["disagree", "one-cpu"]
    assert rules(replace(evidence, frames=()), "cpu-wait", "tags") == ["cpu-wait", "tags"]


@given(
    st.floats(0, 500), st.floats(0, 500), st.floats(0, 500), st.floats(0, 20),
    st.lists(st.sampled_from([*CLAIMED_PARTS, "disagree"]), unique=True),
)  # fmt: skip
def test_claims_are_never_more_than_what_is_in_flight(
    cpu: float, above: float, inside: float, others: float, names: list[str]
) -> None:
    evidence = placed(cpu, above, inside, others)
    claims = claimed_ios([Finding(name, name) for name in names], evidence)
    assert all(claim >= 0 for claim in claims.values())
    assert sum(claims.values()) <= (cpu + above + inside) * (1 + 1e-9)
    kept = rules(evidence, *names)
    assert set(names) - set(kept) <= set(CLAIMED_PARTS)
    if names and cpu + above + inside > 0 and sum(claims.values()) > 0:
        assert max(claims, key=lambda name: claims[name]) in kept
