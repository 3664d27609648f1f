from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from disks import changed
from evidence_frames import device, disk, fio, frame, seconds
from made_siblings import like_disks, random_loads

from iopstui.fio.job_shape import shape_of, text_without_depth
from iopstui.model.findings import diagnosis
from iopstui.model.findings.conditions import Array, Conditions, DeviceState
from iopstui.model.findings.evidence import Evidence, JobShape
from iopstui.model.findings.finding import Finding
from iopstui.model.metrics.frame import FINAL, LATE, Frame
from iopstui.model.metrics.shares import Share, SmbClient
from iopstui.model.samples import DriveReading
from iopstui.session.tick import findings as module
from iopstui.session.tick.findings import REPEAT_S, FindingTracker

JOB = "[global]\nioengine=libaio\ndirect=1\niodepth={depth}\nrw=randread\nbs={bs}\n[a]\n"


def job(depth: int = 8, bs: str = "4k") -> str:
    return JOB.format(depth=depth, bs=bs)


def fed(findings: FindingTracker, frames: Iterable[Frame]) -> list[Finding]:
    return [found for one in frames for found in findings.feed(one, [device()])]


def rules(found: Sequence[Finding]) -> list[str]:
    return [one.rule for one in found]


def quiet(count: int, ios: float = 500.0, start: float = 0.0) -> list[Frame]:
    return seconds(count, start, step=0, disks={"vda": disk(ios)})


def run(count: int, start: float, iops: float = 1_140.0, lat_ns: float = 8e6) -> list[Frame]:
    return seconds(count, start, interval=fio(iops, lat_ns=lat_ns, levels={"8": 100.0}),
                   disks={"vda": disk(iops)})  # fmt: skip


# -- background


def test_io_before_the_run_is_background() -> None:
    findings = FindingTracker()
    assert fed(findings, quiet(5)) == []
    findings.begin_run(job())
    assert rules(fed(findings, run(1, 5.0))) == ["background"]


def test_laying_out_the_file_is_no_background() -> None:
    findings = FindingTracker()
    fed(findings, quiet(5, 0.0))
    findings.note_layout()
    fed(findings, quiet(8, 9_000.0, 5.0))
    findings.begin_run(job())
    assert fed(findings, run(5, 13.0)) == []


def test_io_before_the_layout_is_background_all_the_same() -> None:
    findings = FindingTracker()
    fed(findings, quiet(5))
    findings.note_layout()
    fed(findings, quiet(8, 0.0, 5.0))
    findings.begin_run(job())
    assert rules(fed(findings, run(1, 13.0))) == ["background"]


def test_what_a_run_leaves_behind_is_no_background() -> None:
    findings = FindingTracker()
    findings.begin_run(job())
    fed(findings, run(3, 1.0))
    fed(findings, quiet(5, 9_000.0, 4.0))  # write-back of the job's own data
    fed(findings, quiet(5, 0.0, 9.0))
    findings.begin_run(job())
    assert fed(findings, run(3, 14.0)) == []


# -- repeating


def test_a_finding_is_said_once_and_again_after_a_while() -> None:
    findings = FindingTracker()
    findings.begin_run(job())
    busy = [replace(f, throttled=50.0) for f in run(int(REPEAT_S) + 5, 1.0)]
    found = fed(findings, busy)
    assert rules(found) == ["throttled", "throttled"]


def test_what_is_told_once_has_the_figures_of_now_for_an_answer() -> None:
    findings = FindingTracker()
    findings.begin_run(job())
    (first,) = fed(findings, [replace(f, throttled=50.0) for f in run(5, 1.0)])
    assert fed(findings, [replace(f, throttled=80.0) for f in run(5, 6.0)]) == []
    (now,) = findings.firing
    assert now.rule == first.rule and now.text != first.text
    assert (now.since, now.until) == (7.0, 10.0) and first.until == 3.0


def test_what_another_finding_explains_now_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fired(evidence: Evidence) -> list[Finding]:
        late = [Finding("neighbour", "text")] if len(evidence.frames) > 4 else []
        return [Finding("background", "text"), Finding("disagree", "text"), *late]

    monkeypatch.setattr(module, "fired_findings", fired)
    findings = FindingTracker()
    findings.begin_run(job())
    fed(findings, run(4, 1.0))
    assert rules(findings.firing) == ["background", "disagree"]
    fed(findings, run(1, 5.0))
    assert rules(findings.firing) == ["neighbour"]


def test_looking_in_each_fifth_second_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def fired(evidence: Evidence) -> list[Finding]:
        busy = (evidence.frames[-1].disks["vda"].r_s or 0.0) > 400
        return [Finding("throttled", "text")] if busy else []

    monkeypatch.setattr(module, "fired_findings", fired)
    told: dict[int, list[tuple[str, float | None]]] = {}
    for every in (1, 5):
        tracker, told[every] = FindingTracker(), []
        for one in [*quiet(20, 0.0), *quiet(20, 500.0, 20.0), *quiet(60, 0.0, 40.0)]:
            looks = not one.seq % every
            found = [*tracker.feed(one, [], looks=looks)]
            assert looks or not found
            told[every] += [(finding.rule, one.t) for finding in found]
            told[every] += [("end", ended.until) for ended in tracker.ended_findings()]
    assert [rule for rule, _ in told[1]] == [rule for rule, _ in told[5]] == ["throttled", "end"]
    for (_, exact), (_, late) in zip(told[1], told[5], strict=True):
        assert abs((exact or 0.0) - (late or 0.0)) <= 5


def test_a_new_run_says_it_anew() -> None:
    findings = FindingTracker()
    for start in (1.0, 20.0):
        findings.begin_run(job())
        assert "throttled" in rules(
            fed(findings, [replace(f, throttled=50.0) for f in run(4, start)])
        )


# -- runs of different depth


def runs(first: str, second: str, knob: bool = False, bound: bool = False) -> list[str]:
    findings = FindingTracker()
    findings.begin_run(first)
    fed(findings, run(5, 1.0, 1_000, 1e6))
    if knob:
        findings.note_tunable_change(6.5, "vda", "rq_affinity", "1", "2")
    findings.begin_run(second, bound)
    return rules(fed(findings, run(5, 10.0, 1_000, 8e6)))


def test_a_deeper_run_of_the_same_job_is_compared() -> None:
    assert runs(job(1), job(8)) == ["saturated", "cap"]


def test_runs_that_differ_in_more_than_depth_are_not() -> None:
    assert "cap" not in runs(job(1, "64k"), job(8))
    assert runs(job(1), job(8), knob=True) == []
    assert runs(job(1), job(8), bound=True) == []
    assert runs(job(1), job(8).replace("randread", "randwrite")) == []


# -- knobs


def test_what_moved_is_said_some_seconds_after_the_change() -> None:
    findings = FindingTracker()
    findings.begin_run(job())
    fed(findings, run(5, 1.0))
    findings.note_tunable_change(5.4, "vda", "rq_affinity", "1", "2")
    assert fed(findings, run(5, 6.0)) == []
    (found,) = fed(findings, run(1, 11.0))
    assert found.rule == "moved" and found.text.startswith("rq_affinity 1 → 2 on vda")
    assert fed(findings, run(5, 12.0)) == []


def test_a_run_that_ends_early_still_says_it() -> None:
    findings = FindingTracker()
    findings.begin_run(job())
    fed(findings, run(4, 1.0))
    findings.note_tunable_change(4.4, "vda", "rq_affinity", "1", "2")
    assert fed(findings, run(4, 5.0)) == []
    last = replace(run(1, 9.0)[0], flags=frozenset({FINAL}))
    assert rules(fed(findings, [last])) == ["moved"]


def test_a_change_before_the_run_or_after_a_moment_of_it_says_nothing() -> None:
    findings = FindingTracker()
    findings.note_tunable_change(0.5, "vda", "rq_affinity", "1", "2")
    findings.begin_run(job())
    fed(findings, run(2, 1.0))
    findings.note_tunable_change(2.4, "vda", "rq_affinity", "2", "1")
    assert fed(findings, run(12, 3.0)) == []


def test_two_changes_are_not_mixed() -> None:
    findings = FindingTracker()
    findings.begin_run(job())
    fed(findings, run(5, 1.0, 1_000))
    findings.note_tunable_change(5.4, "vda", "rq_affinity", "1", "2")
    fed(findings, run(4, 6.0, 2_000))
    findings.note_tunable_change(9.4, "vda", "rq_affinity", "2", "1")
    (found,) = fed(findings, run(6, 10.0, 3_000))
    # the first seconds with rq_affinity 1 do not count as those before the change
    assert (
        found.text.startswith("rq_affinity 2 → 1")
        and "IOPS 2.00k (2.00k-2.00k) → 3.00k" in found.text
    )


def test_rules_look_only_at_seconds_since_the_change() -> None:
    findings = FindingTracker()
    findings.begin_run(job())
    throttled = [replace(f, throttled=50.0) for f in run(2, 1.0)]
    fed(findings, throttled)
    findings.note_tunable_change(2.4, "vda", "nomerges", "0", "2")
    assert fed(findings, [replace(f, throttled=50.0) for f in run(2, 3.0)]) == []


# -- what a job asks for


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("[a]\n", JobShape(1, 1, "psync", False, 1, block_size=4096, alignment=4096)),
        (job(32), JobShape(1, 32, "libaio", True, 32, block_size=4096, alignment=4096)),
        (
            "[global]\nioengine=libaio\ndirect=1\nnumjobs=4\n[a]\niodepth=8\n[b]\niodepth=2\n",
            JobShape(8, None, "libaio", True, 40, block_size=4096, alignment=4096),
        ),
        (
            "[global]\nstonewall\ndirect=1\n[a]\niodepth=8\nioengine=libaio\n[b]\nnumjobs=3\n",
            JobShape(3, None, None, True, 8, block_size=4096, alignment=4096),
        ),
        (
            "[a]\nioengine=sync\niodepth=64\nbuffered=0\n",
            JobShape(1, 64, "sync", True, 1, block_size=4096, alignment=4096),
        ),
        (
            "[a]\nrate_iops=100\n",
            JobShape(
                1,
                1,
                "psync",
                False,
                1,
                paced=True,
                block_size=4096,
                alignment=4096,
                pace="rate_iops=100",
            ),
        ),
        (
            "[a]\nhipri\n",
            JobShape(1, 1, "psync", False, 1, polls=True, block_size=4096, alignment=4096),
        ),
        (
            "[a]\nhipri=0\nfsync=1\n",
            JobShape(
                1,
                1,
                "psync",
                False,
                1,
                syncs=True,
                block_size=4096,
                alignment=4096,
                sync_interval=1,
            ),
        ),
        (
            "[a]\nfdatasync=32\n[b]\nsync_file_range=write:8\nfsync=0\n[c]\nend_fsync=1\n",
            JobShape(
                3,
                1,
                "psync",
                False,
                3,
                syncs=True,
                block_size=4096,
                alignment=4096,
                sync_interval=8,
            ),
        ),
        (
            "[a]\niodepth=junk\nnumjobs=\n",
            JobShape(1, 1, "psync", False, 1, block_size=4096, alignment=4096),
        ),
        (
            "[a]\nbs=512,8k\nrw=randrw\n",
            JobShape(1, 1, "psync", False, 1, block_size=512, writes=True, alignment=512),
        ),
        (
            "[a]\noffset=1m\nba=512\n",
            JobShape(1, 1, "psync", False, 1, block_size=4096, alignment=512),
        ),
        (
            "[a]\noffset=1536\n[b]\noffset=10%\n",
            JobShape(2, 1, "psync", False, 2, block_size=4096, alignment=512),
        ),
        ("[a]\nbsrange=1k-8k\nrw=write:8k\n", JobShape(1, 1, "psync", False, 1, writes=True)),
        ("[a]\nbs=junk\nrw=trim\n", JobShape(1, 1, "psync", False, 1)),
        ("[global]\niodepth=4\n", JobShape()),
        ("", JobShape()),
    ],
)
def test_the_shape_of_a_job(text: str, shape: JobShape) -> None:
    assert shape_of(text) == shape


@pytest.mark.parametrize(
    ("engine", "in_flight"),
    [(name, 1) for name in ("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap")]
    + [(name, 64) for name in ("libaio", "io_uring", "posixaio", "null")],
)
def test_a_synchronous_engine_has_one_io_under_way(engine: str, in_flight: int) -> None:
    """fio(1), "I/O engine" and iodepth=: raising it beyond 1 does not affect those."""
    assert shape_of(f"[a]\nioengine={engine}\niodepth=64\n").in_flight == in_flight


def test_depth_and_place_do_not_make_a_job_another_one() -> None:
    assert text_without_depth(job(1)) == text_without_depth(job(64))
    assert text_without_depth(job()) == text_without_depth(
        job().replace("[a]", "[a]\nfilename=/x\nnumjobs=4")
    )
    # runs compared over depths need the same block size, and runs over block sizes the same depth
    assert text_without_depth(job()) == text_without_depth(job(bs="8k"))
    assert text_without_depth("[a]\n") != text_without_depth("[a]\n[b]\n")


# -- without a job


def test_what_the_kernel_shows_is_told_without_a_job() -> None:
    findings = FindingTracker()
    busy = seconds(4, step=0, disks={"vda": disk(0.0, 2_800, wait=45.0, aqu=128.0, util=100.0)})
    assert rules(fed(findings, busy)) == ["busy"]


def test_what_a_run_leaves_behind_is_not_called_busy() -> None:
    findings = FindingTracker()
    findings.begin_run(job())
    fed(findings, run(3, 1.0))
    flushing = {"vda": disk(0.0, 2_800, wait=45.0, aqu=128.0, util=100.0)}
    assert fed(findings, seconds(5, 4.0, step=0, disks=flushing)) == []


def test_errors_are_counted_from_the_run_s_beginning() -> None:
    findings = FindingTracker()
    for t, errors in ((0.0, 3), (2.0, 5)):
        findings.note_conditions(Conditions(t, {"vda": DeviceState(errors=errors)}))
    findings.begin_run(job())
    assert fed(findings, run(2, 3.0)) == []
    findings.note_conditions(Conditions(4.0, {"vda": DeviceState(errors=9)}))
    (found,) = fed(findings, run(1, 5.0))
    assert found.rule == "scsi-errors" and "4 commands" in found.text


def test_a_check_of_md_between_two_others_is_remembered_until_the_next_reading() -> None:
    """On the screen, a reading may fall between the checks of a small array."""
    findings, seen = FindingTracker(), []
    for t, action in enumerate(("check", "idle", "idle", "resync", "check", "idle")):
        findings.note_conditions(
            Conditions(float(t), {"md0": DeviceState(array=Array(action, 0, 2))})
        )
        array = findings.conditions.devices["md0"].array
        seen.append((array and array.syncs_or_did, array and array.ended))
    assert seen == [(True, ""), (True, "check"), (False, ""), (True, ""), (True, "resync"),
                    (True, "check")]  # fmt: skip


def test_a_drive_s_last_reading_is_looked_at_until_the_next_run() -> None:
    findings = FindingTracker()
    findings.begin_run(job())
    first, *rest = run(40, 1.0)
    bad = {"nvme0": DriveReading({"media_errors": 9}, {"media_errors": 7})}
    (found,) = fed(findings, [replace(first, nvme=bad)])
    assert found.rule == "media-errors" and "2 media errors" in found.text
    # drives are read every ten seconds; between two readings the finding stays active
    fed(findings, rest)
    assert findings.ended_findings() == []
    findings.begin_run(job())
    assert not [one for one in fed(findings, run(5, 50.0)) if one.rule == "media-errors"]


# -- a run that decides


def test_the_run_that_was_asked_for_answers() -> None:
    findings = FindingTracker()
    findings.begin_run(job())
    fed(findings, run(5, 1.0, 1_000, 8e6))
    findings.ask(Finding("cap", "...", test=(("bs", "8k"),)))
    findings.begin_run(job(bs="8k"))
    assert "answer" not in rules(fed(findings, run(4, 8.0, 500, 16e6)))
    assert "answer" in rules(fed(findings, run(1, 12.0, 500, 16e6)))
    # the next run does not answer this question
    findings.begin_run(job())
    assert "answer" not in rules(fed(findings, run(6, 20.0, 1_000, 8e6)))


def test_a_question_without_a_run_to_compare_with_is_dropped() -> None:
    findings = FindingTracker()
    findings.ask(Finding("cap", "...", test=(("bs", "8k"),)))
    findings.begin_run(job(bs="8k"))
    assert "answer" not in rules(fed(findings, run(6, 8.0, 500, 16e6)))


def test_frames_of_no_fio_are_survived() -> None:
    findings = FindingTracker()
    findings.begin_run(job())
    assert fed(findings, [frame(1.0, None), frame(2.0, None, step=0)]) == []


# -- findings that end


def test_what_was_found_has_an_end_and_is_said_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule fires in seconds 1 to 4, is quiet for ten seconds, and fires again."""
    firing = {1, 2, 3, 4, 15, 16}

    def fires(evidence: Evidence) -> Finding | None:
        t = evidence.frames[-1].t
        return Finding("full", "CPU 1 is full", since=t - 1, until=t) if t in firing else None

    monkeypatch.setattr(diagnosis, "RULES", (fires,))
    findings, said, over = FindingTracker(), [], []
    for second in quiet(20, start=0.0):
        said += [second.t for _ in findings.feed(second, [device()])]
        over += [(second.t, one.since, one.until) for one in findings.ended_findings()]
    assert said == [1.0, 15.0]
    assert over == [(14.0, 0.0, 4.0)]


def test_a_run_that_begins_takes_the_end_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Finding("full", "CPU 1 is full")
    monkeypatch.setattr(diagnosis, "RULES", (lambda e: rule if e.frames[-1].t < 3 else None,))
    findings = FindingTracker()
    assert fed(findings, quiet(2))
    findings.begin_run(job())
    fed(findings, run(20, 4.0))
    assert findings.ended_findings() == []


# -- what later seconds show


def test_a_finding_that_later_seconds_contradict_is_withdrawn() -> None:
    findings = FindingTracker()
    findings.begin_run(job())
    silent = device(iostats=False)
    uncounted = seconds(4, 1.0, interval=fio(900), disks={"vda": disk(0)})
    said = [one.rule for f in uncounted for one in findings.feed(f, [silent])]
    assert said == ["iostats"] and findings.ended_findings() == []
    list(findings.feed(run(1, 5.0)[0], [silent]))
    (over,) = findings.ended_findings()
    assert over.finding.rule == "iostats" and "does count its I/Os" in over.why


def test_a_stall_is_told_while_fio_is_late() -> None:
    findings = FindingTracker()
    findings.begin_run(job())
    held = changed(disk(0), in_flight=8)
    stuck = seconds(4, 4.0, interval=None, disks={"vda": held}, flags=frozenset({LATE}))
    assert rules(fed(findings, [*run(3, 1.0), *stuck])) == ["stalled"]


def test_a_share_whose_server_is_gone_is_told_while_fio_is_late() -> None:
    for rule, smb in (
        ("nfs-stalled", None),
        ("smb-stalled", SmbClient(1, 32, 0, 0, 1, 0, 0, 4.0)),
    ):
        findings = FindingTracker()
        findings.begin_run(job())
        silent = Share(1.0, 0, 0, unanswered=32, smb=smb)
        late = seconds(4, 1.0, interval=None, disks={}, flags=frozenset({LATE}))
        assert rules(fed(findings, [replace(one, share=silent) for one in late])) == [rule]


def test_processes_are_asked_for_while_a_neighbour_is_suspected() -> None:
    findings = FindingTracker()
    findings.begin_run(job())
    fed(findings, run(4, 1.0))
    assert not findings.asks_for_processes
    shared = seconds(4, 5.0, interval=fio(500, lat_ns=8e6), disks={"vda": disk(2_000, aqu=8.0)})
    fed(findings, shared)
    assert findings.asks_for_processes


def test_a_slow_member_of_an_array_is_found_while_it_is_watched() -> None:
    members = like_disks(8, holders=("md0",))
    md = replace(members[0], name="md0", kind="md", layer="raid0", holders=())
    tracker, found = FindingTracker(), list[Finding]()
    for second in random_loads(random.Random(0), 250.0, odd=1.3):
        found += tracker.feed(second, [md], [*members, md])
    assert {(finding.rule, finding.disk) for finding in found} == {("slow-member", "d0")}
