from __future__ import annotations

from dataclasses import replace

import pytest
from evidence_frames import device, disk, fio, fired, seconds

from iopstui.model.findings.conditions import (
    Array,
    Conditions,
    DeviceState,
    FileSystemErrors,
    Link,
    LoggedErrors,
    Temperature,
)
from iopstui.model.findings.evidence import Evidence
from iopstui.model.findings.finding import CRITICAL, WARNING, headline_of, severity_of
from iopstui.model.findings.rules import health as health_rules

SLOW = Link(8.0, 16.0, 2, 4)


def ailing(state: DeviceState, before: DeviceState | None = None, r_s: float = 0.0) -> Evidence:
    """Evidence without a job: for these rules the kernel's side is enough."""
    frames = seconds(3, step=0, disks={"vda": disk(r_s, size=131_072)})
    then = Conditions(2.0, {"vda": before or state})
    return Evidence(
        tuple(frames),
        devices=[device()],
        conditions=Conditions(9.0, {"vda": state}),
        start_conditions=then,
    )


def test_a_disk_at_its_limit_may_slow_down() -> None:
    found = fired(
        health_rules.device_temperature(ailing(DeviceState(temperature=Temperature(84.2, 84.0))))
    )
    assert "vda is at 84 °C, its limit is 84 °C: it may throttle itself" in found.text


@pytest.mark.parametrize("heat", [None, Temperature(70.0, 84.0), Temperature(99.0), Temperature(
    50.0, 0.0)])  # fmt: skip
def test_a_cool_disk_or_one_without_a_limit(heat: Temperature | None) -> None:
    assert health_rules.device_temperature(ailing(DeviceState(temperature=heat))) is None


def test_a_reduced_link_that_is_used() -> None:
    found = fired(health_rules.slow_link(ailing(DeviceState(link=SLOW), r_s=9_000)))
    assert "runs at x2 8 GT/s of x4 16 GT/s, about 1.83 GiB/s" in found.text
    assert "1.1 GiB/s go through it: the link may be the limit" in found.text


def test_a_link_with_room_or_at_its_best_is_no_finding() -> None:
    assert health_rules.slow_link(ailing(DeviceState(link=SLOW), r_s=900)) is None
    best = replace(SLOW, speed=16.0, width=4)
    assert health_rules.slow_link(ailing(DeviceState(link=best), r_s=90_000)) is None
    assert health_rules.slow_link(ailing(DeviceState(), r_s=90_000)) is None


def test_errors_since_the_run_began() -> None:
    found = fired(health_rules.scsi_errors(ailing(DeviceState(errors=15), DeviceState(errors=3))))
    assert "vda: 12 commands failed (ioerr_cnt) since 0:02; " in found.text
    for errors, timeouts, text in (
        (2, 2, "vda: 2 commands failed (ioerr_cnt) and 2 timed out (iotmo_cnt) since"),
        (0, 1, "vda: 1 command timed out (iotmo_cnt) since"),
        (0, 3, "vda: 3 commands timed out (iotmo_cnt) since"),
    ):
        late = ailing(DeviceState(errors=3 + errors, timeouts=timeouts),
                      DeviceState(errors=3, timeouts=0))  # fmt: skip
        assert text in fired(health_rules.scsi_errors(late)).text


def test_old_errors_and_unknown_ones_are_no_finding() -> None:
    assert health_rules.scsi_errors(ailing(DeviceState(errors=15))) is None
    assert health_rules.scsi_errors(ailing(DeviceState(errors=15), DeviceState())) is None
    assert health_rules.scsi_errors(ailing(DeviceState(errors=1), DeviceState(errors=9))) is None


def test_an_array_above_a_member_that_is_watched_is_named() -> None:
    evidence = ailing(DeviceState())
    member = replace(device(), holders=("md0",))
    states = {"vda": DeviceState(), "md0": DeviceState(array=Array("resync", 0, 2))}
    watched = replace(evidence, tree=[member], conditions=Conditions(9.0, states))
    found = fired(health_rules.degraded_array(watched))
    assert found.text.startswith("md0, of which vda is a member: resync under way")
    on_the_array = replace(watched, tree=[device(name="md0"), member])
    assert fired(health_rules.degraded_array(on_the_array)).text.startswith("md0: resync")


def test_without_a_job_memory_takes_nothing_from_one() -> None:
    idle = Evidence(tuple(seconds(3, step=0, memory=40.0)))
    assert "from other programs" in fired(health_rules.memory_pressure(idle)).text
    running = Evidence(tuple(seconds(3, interval=fio(900), memory=40.0)))
    assert "from the job" in fired(health_rules.memory_pressure(running)).text


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (Array("idle", 1, 2), "vda: 1 of 2 members missing (degraded):"),
        (Array("recover", 1, 2), "1 of 2 members missing (degraded) and recover under way"),
        (Array("check", 0), "vda: check under way"),
    ],
)
def test_an_array_that_is_not_whole_or_at_work(state: Array, words: str) -> None:
    found = fired(health_rules.degraded_array(ailing(DeviceState(array=state))))
    assert words in found.text
    # a monthly check of a whole array is no emergency
    assert severity_of(found) == (CRITICAL if state.degraded else WARNING)
    assert headline_of(found) == (
        "The array is degraded" if state.degraded else "The array is being rebuilt or checked"
    )


@pytest.mark.parametrize("action", ["idle", "frozen", "none", ""])
def test_a_whole_array_at_rest(action: str) -> None:
    assert health_rules.degraded_array(ailing(DeviceState(array=Array(action, 0, 2)))) is None


def test_lost_paths_are_named() -> None:
    state = DeviceState(lost_paths=(("nvme1c2n1", "connecting"),), paths=2)
    assert (
        "vda has lost 1 of its 2 paths: nvme1c2n1 (connecting)"
        in fired(health_rules.lost_paths(ailing(state))).text
    )
    assert health_rules.lost_paths(ailing(DeviceState(paths=2))) is None


@pytest.mark.parametrize(
    ("waited", "rings", "fires"),
    [((50.0,) * 3, ("dragonfly (812)",), True), ((50.0, 5.0, 50.0), ("dragonfly (812)",), False),
     ((50.0,) * 3, (), False)],
)  # fmt: skip
def test_programs_that_only_sleep_in_io_uring_are_the_pressure(
    waited: tuple[float, ...], rings: tuple[str, ...], fires: bool
) -> None:
    frames = [
        replace(frame, more={"pressure": {"some": percent}})
        for frame, percent in zip(seconds(3, step=0), waited, strict=True)
    ]
    found = health_rules.idle_io_uring(Evidence(tuple(frames), idle_rings=rings))
    assert (found is not None) == fires
    if found is not None:
        assert found.text == (
            "tasks count as waiting for I/O 50 % of the time (PSI), but the disks have hardly any "
            "request: dragonfly (812) sleeps in io_uring"
        )


def test_nvme_recovery_since_the_run_began() -> None:
    before = {"nvme1": {"reset_count": 3, "command_error_count": 1},
              "nvme2c1n1": {"command_retry_count": 5, "multipath_failover_count": 0}}  # fmt: skip
    now = {"nvme1": {"reset_count": 4, "command_error_count": 9},
           "nvme2c1n1": {"command_retry_count": 19, "multipath_failover_count": 3}}  # fmt: skip
    found = fired(health_rules.nvme_errors(ailing(DeviceState(nvme=now), DeviceState(nvme=before))))
    assert found.text == (
        "nvme1: 1 reset; nvme2c1n1: 3 failovers, 14 commands retried since 0:02 (the kernel's diag "
        "counters): retries and recovery count as latency"
    )


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({}, {}),
        ({"nvme1": {"reset_count": 7}}, {"nvme1": {"reset_count": 7}}),
        # a controller that came back, a path or a file that is new
        ({"nvme1": {"reset_count": 7}}, {"nvme1": {"reset_count": 1}}),
        ({}, {"nvme2c1n1": {"command_retry_count": 5}}),
        ({"nvme2n1": {}}, {"nvme2n1": {"command_error_count": 5}}),
        # commands of a monitoring program may fail
        ({"nvme1": {"command_error_count": 1}}, {"nvme1": {"command_error_count": 5}}),
    ],
)
def test_what_was_before_or_is_unknown_is_no_nvme_error(
    before: dict[str, dict[str, int]], now: dict[str, dict[str, int]]
) -> None:
    assert health_rules.nvme_errors(ailing(DeviceState(nvme=now), DeviceState(nvme=before))) is None


def test_failed_commands_of_a_namespace_are_errors() -> None:
    states = [DeviceState(nvme={"nvme2n1": {"command_error_count": n}}) for n in (5, 4)]
    assert (
        "nvme2n1: 1 command failed since" in fired(health_rules.nvme_errors(ailing(*states))).text
    )


def logged(count: int, t: float, name: str = "vda") -> Conditions:
    line = (
        f"I/O error, dev {name}, sector 49672 op 0x1:(WRITE) flags 0x3000 phys_seg 1 prio class 2"
    )
    return Conditions(t=40.0, logged={name: LoggedErrors(count, t, line)})


def test_errors_that_the_kernel_logged_since_the_run_began() -> None:
    evidence = replace(
        ailing(DeviceState()), tree=[device()], start_conditions=Conditions(2.0, logged={})
    )
    found = fired(health_rules.logged_errors(replace(evidence, conditions=logged(12, 39.0))))
    assert found.disk == "vda" and found.text == (
        "the kernel logged 12 errors of vda since 0:02, the last one: I/O error, dev vda, "
        "sector 49672 op 0x1:(WRITE) flags 0x3000 phys_seg 1…"
    )
    for other in (logged(12, 9.0), logged(12, 39.0, "vdb"), Conditions(t=40.0)):
        assert health_rules.logged_errors(replace(evidence, conditions=other)) is None
    whole = replace(evidence, tree=[replace(device(), partitions=("vda1",))])
    part = health_rules.logged_errors(replace(whole, conditions=logged(1, 39.0, "vda1")))
    assert part is not None and part.disk == "vda", "a file system is on its partition"
    before = replace(evidence, start_conditions=logged(12, 1.0), conditions=logged(12, 39.0))
    assert health_rules.logged_errors(before) is None


def test_an_error_that_ext4_noted_a_while_ago_is_no_news() -> None:
    for age_s, told in ((12.0, True), (7200.0, False)):
        found = health_rules.logged_errors(
            ailing(DeviceState(file_system=FileSystemErrors("vda1", 2, age_s)))
        )
        assert (found is not None) is told
        if found is not None:
            assert found.disk == "vda" and found.text == (
                "ext4 on vda1 noted 2 errors, the last one 12 s ago: it may have been read-only "
                "since"
            )
