"""Parts of a fleet: figures, links, and the program that is sent to the hosts."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from made import START_MS, Row, frame

from iopstui.errors import UsageError
from iopstui.features.fleet.hosts.member import LONGEST_LINE, Link
from iopstui.features.fleet.hosts.program_copy import BOOT, bundle, remote_command
from iopstui.features.fleet.merging.figures import (
    AbortCondition,
    figure,
    full_name,
    parse_fleet_expectation,
)
from iopstui.features.fleet.merging.merger import MergedInterval, Merger


def seconds(*ios: int) -> list[MergedInterval]:
    merger, chance = Merger(), random.Random(1)
    for n, count in enumerate(ios):
        merger.feed("a", frame("a", chance, n + 1.0, START_MS + (n + 1) * 1000, ios=count))
    return [*merger.close_seconds(), *merger.finish()]


def test_figures_of_totals() -> None:
    (second,) = seconds(100)
    assert figure(second.sums, ("fio", "read", "iops")) == 100
    assert figure(second.sums, ("fio", "total", "bw")) == 409600
    ranks = second.sums.fio["read"].latencies["clat"].percentiles
    assert figure(second.sums, ("fio", "read", "clat", "p99")) == ranks["p99"]
    assert figure(second.sums, ("fio", "trim", "iops")) is None
    assert full_name("read.p99") == "read.clat.p99" and full_name("p50") == "clat.p50"
    assert full_name("iops") == "iops" and full_name("read.lat.p99") == "read.lat.p99"


def test_an_expectation_is_of_all_or_of_each() -> None:
    with pytest.raises(UsageError, match="a share of a baseline"):
        parse_fleet_expectation("iops>=95%", 0.0)
    each = parse_fleet_expectation("each.read.p99<=2ms", 0.0)
    assert each.per_host and each.expectation.path == ("fio", "read", "clat", "p99")
    assert each.expectation.required == 2e6
    assert not parse_fleet_expectation("iops>=5k", 0.1).per_host
    for text in ("util<=90%", "usr_cpu<=3%", "each.nonsense>=1", "iops", "own_cpu<=3"):
        with pytest.raises(UsageError):
            parse_fleet_expectation(text, 0.0)


def test_an_abort_waits_for_its_time_without_a_break() -> None:
    abort = AbortCondition("iops>50 for 3s")
    assert [abort.feed(one) for one in seconds(60, 60, 10, 60, 60, 60, 60)] == [
        False, False, False, False, False, True, True
    ]  # fmt: skip
    assert AbortCondition("read.iops>=60").feed(seconds(60)[0])
    for text in ("iops", "iops>5 for x", "r_await>5ms for 3s", "iops>5 IOPS/furlong"):
        with pytest.raises(UsageError):
            AbortCondition(text)


def drained(source: str) -> tuple[list[bytes], Link]:
    link, lines = Link([sys.executable, "-c", source]), []
    while (data := link.receive()) is not None:
        found = link.split_lines(data)
        lines += found
    return lines, link


def test_a_line_that_never_ends_is_left_out_and_takes_no_memory() -> None:
    source = (
        "import sys; w = sys.stdout.write; w('a\\nb'); w('\\n');"
        f"[w('x' * 1000000) for _ in range({3 * LONGEST_LINE // 1000000})]; w('\\nlast\\n')"
    )
    lines, link = drained(source)
    assert lines == [b"a", b"b", b"last"]
    assert link.dropped_lines == 1
    assert link.close() == 0


def test_the_last_words_of_a_link_say_why_it_ended() -> None:
    lines, link = drained("import sys; sys.exit('Permission denied (publickey).')")
    while link.err_fd >= 0:
        link.read_stderr()
    assert lines == [] and link.last_error_line == "Permission denied (publickey)."
    link.send(b"nobody reads this")
    assert link.close() == 1


def test_what_is_brought_along_is_small_and_needs_nothing() -> None:
    data = bundle()
    assert len(data) <= 1_000_000
    with zipfile.ZipFile(io.BytesIO(zlib.decompress(data))) as file:
        names = file.namelist()
    assert (
        "iopstui/features/fleet/hosts/program_copy.py" in names
        and "iopstui/jobs/randread-4k.fio" in names
    )
    assert not [name for name in names if "/ui/" in name or "/screen/" in name]
    others = [name for name in names if name.startswith("iopstui/features/")]
    assert {name.split("/")[2] for name in others} == {"__init__.py", "fleet"}
    assert bundle() == data


def test_the_command_is_one_line_that_no_shell_reads_otherwise() -> None:
    for bring, sudo in ((True, False), (False, False), (True, True), (False, True)):
        command = remote_command(bring, sudo)
        assert "\n" not in command and "!" not in command
    assert json.dumps(remote_command(True)).isascii()


SUDO = """#!/bin/sh
[ "$1" = -n ] || exit 9
shift
%s
"""


def as_jane(place: Path, sudo: str) -> Row:
    """The answer of a host where the user jane, who is not root, has this sudo."""
    for name, text in (
        ("id", "#!/bin/sh\n[ $1 = -u ] && echo 1000 || echo jane\n"),
        ("sudo", sudo),
    ):
        (place / name).write_text(text)
        (place / name).chmod(0o755)
    path = f"{place}:{os.environ['PATH']}"
    done = subprocess.run(["sh", "-c", remote_command(True, True)], stdin=subprocess.DEVNULL,
                          capture_output=True, env={**os.environ, "PATH": path})  # fmt: skip
    (line,) = done.stdout.splitlines()
    found: Row = json.loads(line)
    return found


def test_root_is_had_by_sudo_or_it_is_said_what_lacks(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    assert as_jane(tmp_path, SUDO % f'echo "$1" >> {mark}; exec "$@"') == {"event": "send"}
    assert mark.read_text() == "true\npython3\n"
    no = as_jane(tmp_path, SUDO % "echo 'sudo: a \"pass\\word\" is required' >&2; exit 1")
    assert no["event"] == "lacks" and no["user"] == "jane"
    assert no["why"] == "sudo: a password is required"
    assert as_jane(tmp_path, SUDO % "exit 7")["why"] == "it ended with 7"


PLANTED = "import sys\nopen({marker!r}, 'a').write(__name__ + '\\n')\n"


def test_what_lies_where_the_launcher_begins_is_not_run(tmp_path: Path) -> None:
    # srun starts in the directory from which it was called, which other users may be able to write
    # to
    marker = tmp_path / "marker"
    here = tmp_path / "here"
    (here / "iopstui").mkdir(parents=True)
    for name in ("base64", "zipfile", "json", "typing", "iopstui/__init__", "iopstui/__main__"):
        (here / f"{name}.py").write_text(PLANTED.format(marker=str(marker)))
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    done = subprocess.run(
        ["sh", "-c", remote_command(True)], input=bundle(), cwd=here, capture_output=True,
        env={**os.environ, "XDG_RUNTIME_DIR": str(run)}, timeout=60,
    )  # fmt: skip
    said = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    assert said == ["send", "hello"], done.stderr
    assert not marker.exists() and not [*run.iterdir()]


def test_the_program_is_unpacked_where_nobody_else_could_swap_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, Any] = {"LEAST": (3, 10)}
    exec(BOOT[: BOOT.index("signal.signal(")], made)
    own, open_to_all = tmp_path / "own", tmp_path / "open"
    own.mkdir(mode=0o700)
    open_to_all.mkdir()
    (open_to_all / "below").mkdir(mode=0o700)
    open_to_all.chmod(0o777)
    for place, used in ((own, True), (open_to_all, False), (open_to_all / "below", False)):
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
        assert (made["base"]() == str(place)) == used
    (tmp_path / "link").symlink_to(open_to_all / "below")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "link"))
    assert made["base"]() not in (str(tmp_path / "link"), str(open_to_all / "below"))
