"""DISKSPD commands as fio jobs."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.errors import UsageError
from iopstui.features.diskspd.run import EXAMPLE, translate
from iopstui.model.fio.jobfile import effective_sections

AZURE_WRITE = "diskspd -c200G -w100 -b8K -F4 -r -o128 -W30 -d30 -Sh testfile.dat"
AZURE_READ = "diskspd -c200G -b4K -F4 -r -o128 -W7200 -d30 -Sh testfile.dat"


def options(command: str) -> dict[str, str]:
    (section,) = effective_sections(translate(command).text)
    return dict(section.options)


def test_azure_s_two_commands() -> None:
    write = options(AZURE_WRITE)
    assert write == {
        "ioengine": "libaio", "direct": "1", "sync": "1", "bs": "8k", "rw": "randwrite",
        "norandommap": "1",
        "ramp_time": "30", "runtime": "30", "time_based": "1", "group_reporting": "1",
        "size": "200g", "filename": "testfile.dat", "numjobs": "4", "iodepth": "128",
    }  # fmt: skip
    read = options(AZURE_READ)
    assert (read["rw"], read["bs"], read["ramp_time"]) == ("randread", "4k", "7200")
    assert "sync" not in read, "nothing is written"
    assert translate(AZURE_READ).file_size == 200 << 30


def test_the_defaults_are_diskspd_s() -> None:
    job = options("testfile.dat")
    assert (job["bs"], job["iodepth"], job["numjobs"]) == ("64k", "2", "1")
    assert (job["rw"], job["direct"], job["runtime"], job["ramp_time"]) == ("read", "0", "10", "5")
    assert translate("testfile.dat").file_size is None


@pytest.mark.parametrize(
    ("switch", "expected"),
    [
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
        ("-T1M -t2", {"offset_increment": "1m"}),
        ("-t2 -a0,2", {"cpus_allowed": "0,2", "cpus_allowed_policy": "split"}),
        ("-t2 -a0 -a2", {"cpus_allowed": "0,2"}),
        ("-I1", {"prioclass": "3"}),
        ("-z7", {"randrepeat": "0", "randseed": "7"}),
        ("-z", {"randrepeat": "0"}),
        ("-Z", {"zero_buffers": "1"}),
        ("-Zr", {"refill_buffers": "1"}),
        ("-fr", {"fadvise_hint": "random"}),
        ("-c8192b -b4K", {"size": "32m"}),
        ("-c8192b", {"size": "512m"}),
        ("-w1", {"rw": "rw", "rwmixwrite": "1"}),
        ("-w99", {"rw": "rw", "rwmixwrite": "99"}),
        ("-w100", {"rw": "write", "rwmixwrite": None}),
        ("-w0 -Sw", {"sync": None}),
        ("-b8k", {"bs": "8k"}),
        ("-b2G", {"bs": "2g"}),
        ("-b512", {"bs": "512"}),
        ("-si16K -b8K", {"rw": "read:8192"}),
        ("-rs100", {"percentage_random": None}),
        ("-Sh", {"direct": "1", "sync": None}),
        ("-Sb", {"direct": "0"}),
        ("-Sm", {"direct": "0", "sync": None}),
        ("-g1", {"rate": "1000"}),
        ("-g1i", {"rate_iops": "1", "rate": None}),
        ("-i1 -j1", {"thinktime_blocks": "1", "thinktime": "1ms"}),
        ("-B0", {"offset": None}),
        ("-I2", {"prioclass": "2", "prio": "7"}),
        ("-I3", {"prioclass": None, "prio": None}),
        ("-z4611686018427387904", {"randrepeat": "0", "randseed": "4611686018427387904"}),
        ("-fs", {"fadvise_hint": "sequential"}),
        ("-frt", {"fadvise_hint": "random"}),
        ("-frs", {"fadvise_hint": None}),
        ("-Z1M", {"zero_buffers": None, "refill_buffers": None}),
        ("-t4096", {"numjobs": "4096"}),
        ("-t1", {"numjobs": "1"}),
        ("-F4096", {"numjobs": "4096"}),
        ("-F1", {"numjobs": "1", "iodepth": "2"}),
        ("-o1", {"iodepth": "1"}),
        ("-o1048576", {"iodepth": "1048576"}),
        ("-F1 -O1", {"iodepth": "1"}),
        ("-F1 -O1048576", {"iodepth": "1048576"}),
        ("-d1", {"runtime": "1"}),
        ("-d2147483648", {"runtime": "2147483648"}),
        ("-W0", {"ramp_time": None}),
        ("-W1", {"ramp_time": "1"}),
        ("-c1G -f1M", {"size": "1m"}),
        ("-t3 -a0,2,3", {"cpus_allowed": "0,2,3"}),
    ],
)
def test_switches(switch: str, expected: dict[str, str]) -> None:
    found = options(f"{switch} testfile.dat")
    assert {name: found.get(name) for name in expected} == expected


NOTES = {
    "-C5": "-C5 has no equivalent: fio ends with the measured time: there is no cool-down",
    "-D500": "-D500 has no equivalent: statistics come every --interval seconds",
    "-L": "-L has no equivalent: latencies are always measured",
    "-Sm -Nv": "-Nv has no equivalent: mapped memory is not flushed",
    "-P": "-P has no equivalent: there are no progress dots",
    "-Rxml": "-Rxml has no equivalent: the output's form is --format",
    "-t1": "DISKSPD binds its threads to CPUs in turn unless -n is given; fio's are not bound "
           "(to bind them: -aCPU,... or --bind queues)",
    "-eDISK_IO": "-eDISK_IO has no equivalent: only Windows has event tracing",
    "-l": "-l has no equivalent: large pages are not used for the buffers",
    "-:1": "-:1 has no equivalent: experimental flags are DISKSPD's own",
    "-p": "-p has no equivalent: fio can't start several I/Os at the same offset",
    "-v": "-v has no equivalent: there is no further detail to show",
    "-x": "-x has no equivalent: completion routines are Windows' own; completions are reaped as "
          "libaio does",
    "-ysEvent": "-ysEvent has no equivalent: events are Windows' own",
    "-t2 -si64K": "-si: fio's jobs share no offset, so each goes through the file by itself",
    "-w1 -Z1M": "-Z1M has no equivalent: fio writes random data of its own",
    "-ft": "-ft has no full equivalent: fio gives one hint, r or s",
    "-frs": "-frs has no full equivalent: fio gives one hint, r or s",
    "-frt": "-frt has no full equivalent: fio gives one hint, r or s",
    "-Sr": "-Sr: r (the cache of a remote file system) has no equivalent",
    "-s4K -b8K": "-s: a stride below the block size has no equivalent; the block size is used",
    "-Sw": "write-through changes nothing: the job only reads",
    "-b4K": "without -Su or -Sh I/O goes through the page cache, where libaio waits for each: the "
            "depth is not reached",
    "-w1": "written data is random here; DISKSPD writes the bytes 0 to 255 in turn",
    "-O4": "-O is only used with -F",
}  # fmt: skip


@pytest.mark.parametrize(("switch", "note"), NOTES.items())
def test_what_has_no_equivalent_is_named(switch: str, note: str) -> None:
    assert note in translate(f"{switch} testfile.dat").notes


@pytest.mark.parametrize(
    "switches",
    ["-Su -w30 -Z -d5", "-Su -w100 -Zr -g5", "-Su -s8K -b8K", "-Su -fr", "-Su -fs -r4K -b8K",
     "-Su -F2 -O4", "-Sm", "-Su -B1G", "-Suw -w1 -Z", "-Su -w0 -g5i"],
)  # fmt: skip
def test_what_has_an_equivalent_needs_no_note(switches: str) -> None:
    assert translate(f"-n {switches} testfile.dat").notes == ()


def test_quoting_is_the_shell_s_but_no_shell_is_run() -> None:
    found = translate("-d5 'my file.dat'")
    assert found.targets == ("my file.dat",)
    assert translate("-d5 '$(touch x)'").targets == ("$(touch x)",)
    assert translate("-d5 -").targets == ("-",)


def test_a_file_s_name_is_escaped_for_fio() -> None:
    """fio(1): filename= takes several names with colons between them."""
    job = translate("one:b c\\d").text
    assert "[target1]\nfilename=one\\:b\n" in job
    assert "[target2]\nfilename=c\\\\d\n" in job
    assert "[threads]\nfilename=one\\:b:c\n" in translate("-F1 one:b c").text


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("", "The DISKSPD command names no file to work on."),
        ("-d5", "The DISKSPD command names no file to work on."),
        ("diskspd.exe -d5", "The DISKSPD command names no file to work on."),
        ("C:/tools/DiskSpd -d5", "The DISKSPD command names no file to work on."),
        ("-Xprofile.xml x", "-Xprofile.xml: an XML profile of DISKSPD can't be translated."),
        ("-q x", "'-q' is not a known switch of DISKSPD."),
        ("-b0 x", "'-b0': a size such as 8K or 1G is needed."),
        ("-b8X x", "'-b8X': a size such as 8K or 1G is needed."),
        ("-w101 x", "'-w101': a whole number from 0 to 100 is needed."),
        ("-rs101 x", "'-rs101': a whole number from 1 to 100 is needed."),
        ("-I4 x", "'-I4': a whole number from 1 to 3 is needed."),
        ("-I0 x", "'-I0': a whole number from 1 to 3 is needed."),
        ("-F4097 x", "'-F4097': a whole number from 1 to 4096 is needed."),
        ("-F0 x", "'-F0': a whole number from 1 to 4096 is needed."),
        ("-t4097 x", "'-t4097': a whole number from 1 to 4096 is needed."),
        ("-t0 x", "'-t0': a whole number from 1 to 4096 is needed."),
        ("-o0 x", "'-o0': a whole number from 1 on is needed."),
        ("-o1048577 x", "'-o1048577': a whole number from 1 on is needed."),
        ("-O0 x", "'-O0': a whole number from 1 on is needed."),
        ("-O1048577 x", "'-O1048577': a whole number from 1 on is needed."),
        ("-d0 x", "'-d0': a whole number from 1 on is needed."),
        ("-d2147483649 x", "'-d2147483649': a whole number from 1 on is needed."),
        ("-dlong x", "'-dlong': a whole number from 1 on is needed."),
        ("-g0 x", "'-g0': a whole number from 1 on is needed."),
        ("-i0 x", "'-i0': a whole number from 1 on is needed."),
        ("-j0 x", "'-j0': a whole number from 1 on is needed."),
        ("-Wlong x", "'-Wlong': a whole number from 0 on is needed."),
        ("-z4611686018427387905 x", "'-z4611686018427387905': a whole number from 0 on is needed."),
        ("-zlong x", "'-zlong': a whole number from 0 on is needed."),
        ("-Sq x", "'-Sq': -S takes b, h, m, r, u and w."),
        ("-d5 'x", "The DISKSPD command can't be read: No closing quotation."),
        ("-d5 'x\ny'", "The DISKSPD command contains control characters."),
    ],
)
def test_what_can_t_be_translated(command: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        translate(command)
    assert (caught.value.message, caught.value.hint) == (says, EXAMPLE)


@pytest.mark.parametrize("target", ["#1", "c:", "C:\\test\\file.dat"])
def test_a_windows_disk_is_given_as_the_target(target: str) -> None:
    with pytest.raises(UsageError) as caught:
        translate(f"-d5 {target}")
    assert caught.value.message == f"{target!r} is a Windows disk."
    assert caught.value.hint == (
        "Put any name in its place and give the disk as TARGET: iopstui run /dev/sdX ..."
    )


@given(st.text(max_size=60))
def test_any_text_is_a_job_or_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert effective_sections(translate(text).text)


@pytest.mark.parametrize(
    "command",
    [AZURE_WRITE, AZURE_READ, "-t2 -w30 -r4K -Sh -g100 a.dat b.dat", "-F2 -O4 -Su -Z x.dat",
     "-s256K -b64K -fs -I2 -z3 -T1M -t2 x.dat", "-r -rdpct90/10:0/10:5/20 -B16M -f32M x.dat",
     "-r -rdabs90/1M:0/1M -c32M -w30 -g500i x.dat", "-rs40 -i10 -j5 -a0 -B1M -f64M x.dat"],
)  # fmt: skip
def test_fio_takes_every_job(command: str, fio: str, tmp_path: Path) -> None:
    job = tmp_path / "job.fio"
    job.write_text(translate(command).text)
    done = subprocess.run([fio, "--parse-only", str(job)], capture_output=True, text=True,
                          cwd=tmp_path, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def sections(text: str) -> list[list[str]]:
    return [part.splitlines() for part in text.split("\n\n")[1:]]


def test_threads_apart_share_one_end() -> None:
    """fio adds offset_increment= to the end, too: beyond the file for all threads but the first."""
    text = translate("-c64M -T16M -t4 x").text
    assert "offset_increment" not in text and "size=64m" in text.split("\n\n")[0]
    assert [part[0] for part in sections(text)] == [f"[target1.{n}]" for n in (1, 2, 3, 4)]
    assert [part[3:] for part in sections(text)] == [
        ["offset=0", "size=64m"], ["offset=16m", "size=48m"], ["offset=32m", "size=32m"],
        ["offset=48m", "size=16m"],
    ]  # fmt: skip
    text = translate("-B1M -f8M -T2M -F3 x y").text
    assert [part[1:] for part in sections(text)] == [
        ["filename=x:y", "iodepth=4", f"offset={start}m", f"size={size}m"]
        for start, size in ((1, 7), (3, 5), (5, 3))
    ]


@pytest.mark.parametrize("words", ["-c64M -T16M -t5", "-c64M -T32768b -b1k -t3", "-f1M -T1M -t2"])
def test_a_thread_that_would_start_beyond_the_end_is_refused(words: str) -> None:
    with pytest.raises(UsageError, match=r"-T: thread \d of \d would start at"):
        translate(f"{words} x")
    assert translate("-c64M -b64K -T65472K -t2 x").text.count("size=64k") == 1
