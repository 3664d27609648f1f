"""A redacted report of any format has nothing private."""

from __future__ import annotations

import csv
import html
import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
import recordings as made
from hypothesis import given
from hypothesis import strategies as st
from test_fleet_report import FAST, finished, frame

from iopstui import events
from iopstui.features.reports.files import rendered, report
from iopstui.features.reports.formats import DEFAULT_OPTIONS, FORMATS, TEXTS, ReportOptions
from iopstui.model.answer.answer import WARNING, Answer
from iopstui.model.block.device import BlockDevice, Mount
from iopstui.model.block.target import FILE, TargetPath, combine_targets
from iopstui.model.experiment.expectation import parse_expectation
from iopstui.model.findings.diagnosis import Finding
from iopstui.model.samples import RawSample
from iopstui.recording import layout as form
from iopstui.recording.redact import REDACTED, Redactor
from iopstui.recording.writer import Recorder, RecordingBuffer

HOST = "build-17.example"
TOP, OTHER = "/srv/customers/acme/db file", "/srv/customers/umbrella"
DM, BACKING, SERIAL = "vg_acme-lv_orders", "/images/acme.img", "S3RIAL-0815"
COMM, GROUP = "acme-ledger", "/system.slice/acme.service"
SECRETS = (HOST, "acme", "umbrella", "customers", SERIAL, "lv_orders", "ledger", "secretuser",
           "postmaster", "relative-place")  # fmt: skip
DISK = BlockDevice(
    "dm-0", f"/dev/mapper/{DM}", 254, 0, "dm", 1 << 30, serial=SERIAL, dm_name=DM, slaves=("vda",),
    backing_file=BACKING, mounts=(Mount("/srv/customers", "ext4"),), layer="LVM",
)  # fmt: skip
TARGET = combine_targets(
    [TargetPath(FILE, path, "dm-0", ("dm-0", "vda"), "", "ext4", "/srv") for path in (TOP, OTHER)]
)
JOB = f"""[global]
directory=relative-place
[orders]
filename={TOP.replace(":", chr(92) + ":")}
rw=randread
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording with private data in every field that can have it."""
    machine = os.uname_result(("Linux", HOST, "6.1.0", "#1 SMP", "x86_64"))
    monkeypatch.setattr(os, "uname", lambda: machine)
    place = tmp_path / f"{HOST}.iops"
    devices = {"dm-0": DISK, "vda": replace(made.VDA, serial=SERIAL)}
    buffer = RecordingBuffer(TARGET, lambda: devices, 1.0, True, (), Recorder(place))
    first, *later_samples = [
        replace(raw, probe=_private_tasks(raw)) for raw in made.raws(made.RUN, probed=True)
    ]
    _, after = made.others(made.RUN)
    finished = next(event for event in after if isinstance(event, events.StepFinished))
    made.tell(
        buffer,
        [first, *_start_events(), *later_samples[:1], *_private_events(), *later_samples[1:]],
    )
    buffer.event(
        replace(finished, error=f"fio: {TOP}: no space left", fio_log=(f"{OTHER}: failed",))
    )
    assert buffer.close(events.SessionEnded(9.0, 1)) == ""
    assert all(secret.encode() in _plain_report(place) for secret in (HOST, DM, "postmaster"))
    return place


def _private_tasks(raw: RawSample) -> object:
    assert raw.probe is not None
    tasks = tuple(replace(task, comm=COMM, group=GROUP) for task in raw.probe.tasks)
    slow = tuple(replace(exemplar, comm=COMM, group=GROUP) for exemplar in raw.probe.exemplars)
    return replace(raw.probe, tasks=tasks, exemplars=slow)


def _plain_report(place: Path) -> bytes:
    return rendered([place], "json").encode()


def _start_events() -> list[object]:
    return [
        form.JobRun(
            1, "/home/secretuser/orders.fio", {"iodepth": "8", "filename": "relative-place/x"},
            None, False, JOB, (TOP, f"{OTHER}/relative-place"),
        ),
        events.StepStarted(
            0.0, 1, "orders", "randread 4k", ("/home/secretuser/bin/fio", f"--filename={TOP}"),
            True, "run", "fio-3.33",
        ),
    ]  # fmt: skip


def _private_events() -> list[object]:
    return [
        events.Mark(0.5, f"{COMM} restarted on {HOST}"),
        events.Notice(0.6, "warning", f"a: {DM} is in use: postmaster: x (pid 9) has it open"),
        events.FindingReported(0.7, Finding("busy", f"{COMM} fills dm-0", f"look at {GROUP}")),
        events.TunableChanged(0.8, "dm-0", "scheduler", "none", "bfq"),
        *(
            events.AnswerGiven(
                0.9, Answer("dm-0", rule, WARNING, text, who="acme --x (5) does all")
            )
            for rule, text in (
                (
                    "limit",
                    "Not the disk: docker acme waits for its limit of 9 reads/s on dm-0 (io.max)",
                ),
                ("ring", "Pressure without I/O: postmaster: x (5) sleeps in io_uring; 50 %"),
                (
                    "above",
                    "Tasks wait, but no disk has their requests: acme (5) waits in folio_wait",
                ),
                ("suspended", "dm-0 is suspended: nothing passes; acme x (5) and 2 more wait"),
            )
        ),
    ]


@pytest.mark.parametrize("kind", TEXTS)
def test_nothing_private_is_in_any_format(kind: str, path: Path) -> None:
    text = rendered([path], kind, ReportOptions(redact=True))
    for form_of_it in (text, html.unescape(text), text.replace("\\", "")):
        assert [secret for secret in SECRETS if secret in form_of_it] == []
    assert kind == "csv" or REDACTED in text


@pytest.mark.parametrize("kind", [kind for kind, f in FORMATS.items() if f.most > 1])
def test_two_recordings_are_both_redacted(kind: str, path: Path) -> None:
    text = rendered([path, path], kind, ReportOptions(redact=True))
    assert [secret for secret in SECRETS if secret in html.unescape(text)] == []


def test_figures_and_public_names_stay(path: Path) -> None:
    plain, bare = (
        json.loads(rendered([path], "json", ReportOptions(redact))) for redact in (False, True)
    )
    (plain,), (bare,) = plain["recordings"], bare["recordings"]
    assert bare["series"] == plain["series"] and bare["runs"][0]["bins"] == plain["runs"][0]["bins"]
    assert bare["runs"][0]["summary"]["total"] == plain["runs"][0]["summary"]["total"]
    assert bare["header"]["kernel"] == plain["header"]["kernel"]
    assert bare["header"]["host"] == REDACTED and bare["header"]["target"]["tree"] == [
        "dm-0",
        "vda",
    ]
    assert bare["devices"][0]["name"] == "dm-0" and bare["devices"][0]["layer"] == "LVM"
    assert bare["changes"] == plain["changes"]
    assert plain["slowest"][0]["comm"] == COMM and bare["slowest"][0]["comm"] == REDACTED
    assert bare["slowest"][0]["total"] == plain["slowest"][0]["total"]
    assert bare["marks"][0]["text"] == f"{REDACTED} restarted on {REDACTED}"
    assert "rw=randread" in bare["runs"][0]["job_file"]
    hidden, shown = (
        list(csv.DictReader(io.StringIO(rendered([path], "csv", options))))
        for options in (ReportOptions(True), DEFAULT_OPTIONS)
    )
    assert [{**row, "marks": ""} for row in hidden] == [{**row, "marks": ""} for row in shown]
    assert "redacted restarted on redacted" in {row["marks"] for row in hidden}


def test_a_redacted_report_says_so(path: Path) -> None:
    text = rendered([path], "md", ReportOptions(redact=True))
    assert f"| host | {REDACTED}, Linux" in text and f"| target | {REDACTED} (ext4 on dm-0" in text


def test_the_command_line_option_redacts(path: Path, tmp_path: Path) -> None:
    assert report([str(path)], str(tmp_path / "a.md"), options=ReportOptions(redact=True)) == 0
    assert HOST not in (tmp_path / "a.md").read_text()


def test_a_field_id_is_not_redacted_as_a_path() -> None:
    expected = parse_expectation("iops>=5", ("vda",))
    private = Redactor()
    private.learn(expected)
    assert private.redacted(expected) == expected


@given(st.from_regex(r"[A-Za-z][\w.-]{0,20}", fullmatch=True), st.text(" /:,.()=%abc", max_size=20))
def test_a_learned_name_is_removed_from_any_text(name: str, around: str) -> None:
    private = Redactor()
    private.learn(replace(DISK, dm_name=name))
    text = private.redacted(f"{around} {name} {around}")
    # as a part of another word it may stay
    remaining = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)
    assert name in ("fio", "iopstui", REDACTED) or remaining is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("acme.service does 80 % of the writes on vda (7 of 9 MiB/s)",
         "redacted does 80 % of the writes on vda (7 of 9 MiB/s)"),
        ("/jobs/acme a does all that io.max lets it: wbps=1",
         "redacted does all that io.max lets it: wbps=1"),
        ("9 I/Os are not this job's: it may be acme d (PID 7 in container docker 4f2c: 1 B/s read",
         "9 I/Os are not this job's: it may be redacted (PID: 1 B/s read"),
        ("9 of 120 TCP segments to 10.9.0.2:2049, [fd00::5]:2049 were sent again",
         "9 of 120 TCP segments to redacted:2049, redacted:2049 were sent again"),
        ("the job does 80 % of its I/Os in 1.2.3 s", "the job does 80 % of its I/Os in 1.2.3 s"),
    ],
)  # fmt: skip
def test_findings_name_no_program_group_or_server(text: str, expected: str) -> None:
    assert Redactor().redacted(text) == expected
    mount = TargetPath(FILE, "/a", None, (), "", "nfs4", "/a", share="acme:/export")
    assert Redactor().redacted(mount).share == REDACTED


PRIVATE_TEXTS = (
    "alice", "db-7", "10.20.30.40", "fe80::12", "fd00:1:2:3:4:5:6:7", "acme", "minio", "S3KEY",
    "4f2c9d8e7a6b", "naa.5000c500a1b2c3d4", "3b1c2d3e-aaaa-bbbb-cccc-0123456789ab", "bob@",
)  # fmt: skip


def result_of_clients() -> str:
    """fio's JSON with private texts wherever it can have them."""
    latency = {"mean": 5.0, "max": 9, "N": 10}
    read = {"io_bytes": 40960, "total_ios": 10, "iops": 10.0, "bw_bytes": 40960, "runtime": 1000,
            "clat_ns": latency, "lat_ns": latency}  # fmt: skip
    rows = [
        {"jobname": name, "groupid": 0, "error": error, "read": read, "hostname": host,
         "port": port, "job options": options}
        for name, error, host, port, options in (
            ("restore_db-7_nightly", 5, "db-7.acme.example", 8765, {"filename": "/home/alice/x"}),
            ("via http://minio:9000/b", 0, "db-7.acme.example", 8766, {"http_s3_key": "S3KEY"}),
            ("bob@db-7: 3b1c2d3e-aaaa-bbbb-cccc-0123456789ab", 0, "10.20.30.40", 8765, {}),
            ("docker-4f2c9d8e7a6b on naa.5000c500a1b2c3d4", 0, "fe80::12", 8765,
             {"description": "for acme", "directory": "/srv/acme"}),
            ("alice's", 0, "fd00:1:2:3:4:5:6:7", 8765, {"filename": "/home/alice/y"}),
        )
    ]  # fmt: skip
    document = {"fio version": "fio-3.33", "timestamp": 1_700_000_000, "client_stats": rows,
                "global options": {"uri": "nbd://minio/acme"}}  # fmt: skip
    return "<db-7.acme.example> fio: /home/alice/x: No space left\n" + json.dumps(
        document, indent=2
    )


def written(source: Path, kind: str, tmp_path: Path) -> str:
    """A redacted report, as its bytes and as what a reader makes of them."""
    out = tmp_path / f"report.{kind}"
    assert report([str(source)], str(out), kind, ReportOptions(redact=True)) == 0
    text = out.read_bytes().decode("utf-8", "replace")
    return "\n".join((text, html.unescape(text), text.replace("\\", "")))


@pytest.mark.parametrize("kind", TEXTS)
def test_nothing_private_of_a_result_is_in_any_format(kind: str, tmp_path: Path) -> None:
    source = tmp_path / "alice.json"
    source.write_text(result_of_clients())
    plain = rendered([source], "json")
    assert all(text in plain for text in PRIVATE_TEXTS if text != "bob@" and kind != "csv")
    text = written(source, kind, tmp_path)
    assert [private for private in PRIVATE_TEXTS if private in text] == []
    assert ("50.0 IOPS" if kind in ("html", "md") else "40960") in text


@pytest.mark.parametrize("kind", FORMATS)
def test_nothing_private_of_a_fleet_is_in_any_format(kind: str, tmp_path: Path) -> None:
    names = ("db-7.acme", "bob@x9-2")
    started = {"event": "fleet", "host": "fleet", "wall_ms": 1e12, "run": 1, "interval_s": 1.0,
               "job": "db-7 beside 10.20.30.40", "hosts": [*names]}  # fmt: skip
    rows = [frame(name, second, 10, FAST) for second in range(3) for name in names]
    over = {"event": "fleet_over", "host": "fleet", "wall_ms": 1e12, "code": 1, "how": "failed",
            "said": ["db-7.acme: /home/alice is full"]}  # fmt: skip
    source = tmp_path / "acme.jsonl"
    lines = [started, *rows, finished("db-7.acme", 30, "/home/alice is full"), over]
    source.write_text("".join(f"{json.dumps(row)}\n" for row in lines))
    assert "db-7" in rendered([source], "md")
    text = written(source, kind, tmp_path)
    assert [p for p in ("db-7", "acme", "alice", "x9-2", "bob", "10.20.30") if p in text] == []


def test_options_of_a_mount_name_nobody() -> None:
    options = "vers=3.1,username=carol,domain=CORP7,addr=nas-3.lan"
    mount = TargetPath(
        FILE, "/a", None, (), "", "cifs", "/a", share="//nas-3/x", mount_options=options
    )
    private = Redactor()
    private.learn(mount)
    text = str(private.redacted(mount)) + str(private.redacted("carol at nas-3 of CORP7_x"))
    assert "vers=3.1" in text
    assert [name for name in ("carol", "CORP7", "nas-3") if name in text] == []
