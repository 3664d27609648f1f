"""Logs that a job has fio write: they overwrite nothing, and are written only where the user
said."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from iopstui.errors import Refused, UsageError
from iopstui.fio.logs import FioLogs


def logs(text: str, cwd: Path, label: str = "randread") -> FioLogs:
    return FioLogs(text, label, cwd)


def values(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def test_a_job_without_logs_is_left_as_it_is(tmp_path: Path) -> None:
    text = "[a]\nrw=read\nlog_avg_msec=100\n"
    found = logs(text, tmp_path)
    assert found.text == text and found.directory is None
    assert found.publish() == []
    found.close()


def test_fio_writes_apart_and_the_logs_get_their_names_afterwards(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    text = "[a]\nrw=read\nwrite_bw_log=one\nwrite_lat_log=sub/two\nwrite_iolog=io\n"
    found = logs(text, tmp_path)
    directory = found.directory
    assert directory is not None and directory.parent != tmp_path
    told = values(found.text)
    assert told.pop("rw") == "read"
    assert set(told) == {"write_bw_log", "write_lat_log", "write_iolog"}
    assert {Path(value).parent for value in told.values()} == {directory}
    # fio(1): write_bw_log=foo gives foo_bw.1.log, write_iolog=foo gives foo
    Path(told["write_bw_log"] + "_bw.1.log").write_text("bw")
    Path(told["write_lat_log"] + "_clat.2.log").write_text("lat")
    Path(told["write_iolog"]).write_text("io")
    assert found.publish() == []
    assert (tmp_path / "one_bw.1.log").read_text() == "bw"
    assert (tmp_path / "sub/two_clat.2.log").read_text() == "lat"
    assert (tmp_path / "io").read_text() == "io"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["io", "one_bw.1.log", "sub"]
    found.close()
    assert not directory.exists() and found.directory is None
    found.close()


def test_a_log_without_a_name_has_the_job_s(tmp_path: Path) -> None:
    found = logs("[a]\nwrite_bw_log=\n", tmp_path, "mixed")
    Path(values(found.text)["write_bw_log"] + "_bw.1.log").write_text("bw")
    assert found.publish() == []
    assert (tmp_path / "mixed_bw.1.log").read_text() == "bw"
    found.close()


def test_what_came_to_be_in_the_meantime_is_not_written_over(tmp_path: Path) -> None:
    found = logs("[a]\nwrite_iolog=io\nwrite_bw_log=one\n", tmp_path)
    told = values(found.text)
    Path(told["write_iolog"]).write_text("fio's")
    Path(told["write_bw_log"] + "_bw.1.log").write_text("fio's")
    (tmp_path / "io").write_text("mine")
    (tmp_path / "one_bw.1.log").symlink_to(tmp_path / "elsewhere")
    assert found.publish() == [
        f"{tmp_path}/io can't be written: File exists",
        f"{tmp_path}/one_bw.1.log can't be written: File exists",
    ]
    assert (tmp_path / "io").read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()
    found.close()


@pytest.mark.parametrize(
    ("option", "there", "against"),
    [
        ("write_iolog=io", "io", True),
        ("write_iolog=io", "io_bw.1.log", False),
        ("write_bw_log=one", "one_bw.1.log", True),
        ("write_bw_log=one", "one", False),
        ("write_bw_log=one", "one_bw.1.txt", False),
        ("write_bw_log=one", "two_bw.1.log", False),
        ("write_hist_log=one", "one_clat_hist.1.log", True),
    ],
)
def test_a_log_over_what_exists_is_refused(
    option: str, there: str, against: bool, tmp_path: Path
) -> None:
    (tmp_path / there).write_text("mine")
    if not against:
        logs(f"[a]\n{option}\n", tmp_path).close()
        return
    with pytest.raises(Refused, match=f"log would overwrite .*/{there}, which exists"):
        logs(f"[a]\n{option}\n", tmp_path)


def test_a_directory_that_can_not_be_looked_at_is_not_called_absent(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="which can't be examined: File name too long"):
        logs(f"[a]\nwrite_bw_log={'x' * 300}/z\n", tmp_path)


def test_a_broken_link_is_in_the_way_too(tmp_path: Path) -> None:
    (tmp_path / "io").symlink_to(tmp_path / "nowhere")
    with pytest.raises(Refused):
        logs("[a]\nwrite_iolog=io\n", tmp_path)


def test_a_directory_that_is_none_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"the directory {tmp_path}/no, which does not exist"):
        logs("[a]\nwrite_bw_log=no/one\n", tmp_path)


def test_of_a_run_that_never_started_there_are_no_logs(tmp_path: Path) -> None:
    found = logs("[a]\nwrite_lat_log=x", tmp_path)
    assert found.directory is not None
    # the guard removes all directories of a run that was stopped
    shutil.rmtree(found.directory)
    assert found.publish() == [] and list(tmp_path.iterdir()) == []
    found.close()


def test_a_log_of_each_io_is_read_and_published_nowhere(tmp_path: Path) -> None:
    text = "[a]\nrw=read\n"
    found = FioLogs(text, "a", tmp_path, each_io=True)
    assert found.text == text and found.directory is not None
    prefix = found.options["write_lat_log"]
    assert Path(prefix).parent == found.directory and found.options["log_offset"] == "1"
    for job, latency in ((1, 3000), (2, 5000)):
        Path(f"{prefix}_clat.{job}.log").write_text(f"7, {latency}, 0, 4096, 8192, 0\n")
        Path(f"{prefix}_lat.{job}.log").write_text("7, 9000, 0, 4096, 8192, 0\n")
    slow = found.slow_ios(one_file=True)
    assert slow["ios"] == 2
    assert [(one["latency_ns"], one["job"]) for one in slow["slowest"]] == [(5000, 2), (3000, 1)]
    assert found.publish() == [] and list(tmp_path.iterdir()) == []
    found.close()
    assert found.options == {} and found.slow_ios(one_file=True) == {}


def test_its_memory_has_a_limit_and_the_job_no_log_of_its_own(tmp_path: Path) -> None:
    found = FioLogs("[a]\nrw=read\n", "a", tmp_path, each_io=True)
    assert found.overrun(100_000) == ""
    assert "the most that --io-log may take" in found.overrun(100_000_000)
    found.close()
    assert logs("[a]\nwrite_lat_log=x\n", tmp_path).overrun(100_000_000) == ""
    for option in ("write_lat_log=x", "write_bw_log", "log_avg_msec=100", "log_max_value=1"):
        with pytest.raises(UsageError, match=f"logs of its own .{option.partition('=')[0]}="):
            FioLogs(f"[a]\n{option}\n", "a", tmp_path, each_io=True)
    for option in ("disable_clat=1", "gtod_reduce"):
        with pytest.raises(UsageError, match="switches off what --io-log lists"):
            FioLogs(f"[a]\n{option}\n", "a", tmp_path, each_io=True)
    FioLogs("[a]\ndisable_clat=0\n", "a", tmp_path, each_io=True).close()


def test_where_logs_go_is_announced(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    found = logs("[a]\nwrite_bw_log=one\nwrite_iolog=sub/io\n", tmp_path)
    assert found.announcement.endswith(f": {tmp_path}/one_*.log, {tmp_path}/sub/io")
    found.close()
    many = "".join(f"[s{n}]\nwrite_bw_log=log{n}\n" for n in range(6))
    found = logs(many, tmp_path)
    assert found.announcement.endswith(f"{tmp_path}/log3_*.log and 2 more")
    found.close()
    assert logs("[a]\nrw=read\n", tmp_path).announcement == ""
