"""DISKSPD commands as fio jobs."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.errors import UsageError
from iopstui.model.fio.diskspd import translate
from iopstui.model.fio.jobfile import effective

AZURE_WRITE = "diskspd -c200G -w100 -b8K -F4 -r -o128 -W30 -d30 -Sh testfile.dat"
AZURE_READ = "diskspd -c200G -b4K -F4 -r -o128 -W7200 -d30 -Sh testfile.dat"


def options(command: str) -> dict[str, str]:
    (section,) = effective(translate(command).text)
    return dict(section.options)


def test_azure_s_two_commands() -> None:
    write = options(AZURE_WRITE)
    assert write == {
        "ioengine": "libaio", "direct": "1", "sync": "1", "bs": "8k", "rw": "randwrite",
        "ramp_time": "30", "runtime": "30", "time_based": "1", "group_reporting": "1",
        "size": "200g", "filename": "testfile.dat", "numjobs": "4", "iodepth": "128",
    }  # fmt: skip
    read = options(AZURE_READ)
    assert (read["rw"], read["bs"], read["ramp_time"]) == ("randread", "4k", "7200")
    assert "sync" not in read, "nothing is written"
    assert translate(AZURE_READ).creates == 200 << 30


def test_the_defaults_are_diskspd_s() -> None:
    job = options("testfile.dat")
    assert (job["bs"], job["iodepth"], job["numjobs"]) == ("64k", "2", "1")
    assert (job["rw"], job["direct"], job["runtime"], job["ramp_time"]) == ("read", "0", "10", "5")
    assert translate("testfile.dat").creates is None


@pytest.mark.parametrize(
    ("switch", "expected"),
    [
        ("-w", {"rw": "read"}),
        ("-w0", {"rw": "read"}),
        ("-w30", {"rw": "rw", "rwmixwrite": "30"}),
        ("-w30 -r", {"rw": "randrw", "rwmixwrite": "30"}),
        ("-r8K -b4K", {"rw": "randread", "blockalign": "8k"}),
        ("-rs40", {"rw": "randread", "percentage_random": "40"}),
        ("-s256K -b64K", {"rw": "read:196608"}),
        ("-s64K -b64K", {"rw": "read"}),
        ("-s2b -b8K", {"rw": "read:8192"}),
        ("-Su", {"direct": "1"}),
        ("-S", {"direct": "1"}),
        ("-h -w100", {"direct": "1", "sync": "1"}),
        ("-Suw -w100", {"direct": "1", "sync": "1"}),
        ("-Sbw -w100", {"direct": "0", "sync": "1"}),
        ("-Sm", {"ioengine": "mmap"}),
        ("-t4", {"numjobs": "4"}),
        ("-F4 -O16", {"numjobs": "4", "iodepth": "16"}),
        ("-W0", {"runtime": "10"}),
        ("-g1000", {"rate": "1000000"}),
        ("-g500i", {"rate_iops": "500"}),
        ("-i10 -j5", {"thinktime_blocks": "10", "thinktime": "5ms"}),
        ("-B1G -f512M", {"offset": "1g", "size": "512m"}),
        ("-T1M -t2", {"offset_increment": "1m"}),
        ("-a0,2", {"cpus_allowed": "0,2", "cpus_allowed_policy": "split"}),
        ("-a0 -a2", {"cpus_allowed": "0,2"}),
        ("-I1", {"prioclass": "3"}),
        ("-z7", {"randseed": "7"}),
        ("-z", {"randrepeat": "0"}),
        ("-Z", {"zero_buffers": "1"}),
        ("-Zr", {"refill_buffers": "1"}),
        ("-fr", {"fadvise_hint": "random"}),
        ("-c8192b -b4K", {"size": "32m"}),
        ("-c8192b", {"size": "512m"}),
    ],
)
def test_switches(switch: str, expected: dict[str, str]) -> None:
    found = options(f"{switch} testfile.dat")
    assert {name: found.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    "switch", ["-C5", "-D500", "-L", "-P", "-Rxml", "-ag", "-ag0,1", "-eDISK_IO", "-l", "-n",
               "-p", "-v", "-x", "-ysEvent", "-rdpct10/90", "-si64K", "-Z1M", "-ft", "-Sr",
               "-N5"],
)  # fmt: skip
def test_what_has_no_equivalent_is_named(switch: str) -> None:
    notes = translate(f"{switch} testfile.dat").notes
    assert any(note.startswith(switch) for note in notes), notes


def test_each_target_has_its_own_threads_unless_f_says_all() -> None:
    own = effective(translate("-t2 -o8 a.dat b.dat").text)
    assert [job.options["filename"] for job in own] == ["a.dat", "b.dat"]
    assert [job.options["numjobs"] for job in own] == ["2", "2"]
    (shared,) = effective(translate("-F2 -o8 a.dat b.dat").text)
    assert (shared.options["filename"], shared.options["iodepth"]) == ("a.dat:b.dat", "16")


def test_quoting_is_the_shell_s_but_no_shell_is_run() -> None:
    found = translate("-d5 'my file.dat'")
    assert found.targets == ("my file.dat",)
    assert translate("-d5 '$(touch x)'").targets == ("$(touch x)",)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("", "no file"),
        ("-d5", "no file"),
        ("diskspd.exe -d5", "no file"),
        ("-d5 #1", "Windows"),
        ("-d5 c:", "Windows"),
        ("-d5 C:\\test\\file.dat", "Windows"),
        ("-Xprofile.xml x", "XML"),
        ("-q x", "not a known switch"),
        ("-b0 x", "size"),
        ("-b8X x", "size"),
        ("-w101 x", "to 100"),
        ("-d0 x", "from 1"),
        ("-dlong x", "from 1"),
        ("-Sq x", "-S takes"),
        ("-d5 'x", "read"),
        ("-d5 x\ny", "control"),
    ],
)
def test_what_can_t_be_translated(command: str, words: str) -> None:
    if "\n" in command:
        command = "-d5 'x\ny'"
    with pytest.raises(UsageError, match=words):
        translate(command)


@given(st.text(max_size=60))
def test_any_text_is_a_job_or_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert effective(translate(text).text)


@pytest.mark.parametrize(
    "command",
    [AZURE_WRITE, AZURE_READ, "-t2 -w30 -r4K -Sh -g100 a.dat b.dat", "-F2 -O4 -Su -Z x.dat",
     "-s256K -b64K -fs -I2 -z3 -T1M -t2 x.dat", "-rs40 -i10 -j5 -a0 -B1M -f64M x.dat"],
)  # fmt: skip
def test_fio_takes_every_job(command: str, fio: str, tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text(translate(command).text)
    done = subprocess.run([fio, "--parse-only", str(job)], capture_output=True, text=True,
                          cwd=tmp_path, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
