"""Job files and names that try to write where they must not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from machine import digest, loop
from program import iopstui

JOBS = {
    "by a detour": "rw=write\nfilename=/dev/../dev/./{name}",
    "two at once": "rw=write\nfilename={here}/new:{node}",
    "by a variable": "rw=write\nfilename=${{VICTIM}}",
    "by a link": "rw=write\nfilename={here}/link",
    "relative": "rw=write\nfilename={relative}",
    "through a directory": "rw=write\ndirectory=/dev\nfilename={name}",
    "included": "rw=read\nsize=4k\ninclude {here}/more.inc",
    "a command before": "rw=read\nfilename={node}\nexec_prerun=dd if=/dev/urandom of={node}",
    "a command after": "rw=read\nfilename={node}\nexec_postrun=dd if=/dev/urandom of={node}",
    "a replayed log": "rw=read\nread_iolog={here}/log",
    "a log onto it": "rw=read\nfilename={node}\nwrite_iolog={node}",
    "buffers in it": "rw=read\nfilename={here}/new\nmem=mmapshared:{node}",
    "all of a directory": "rw=write\nopendir={here}/files",
    "removed at the end": "rw=read\nfilename={here}/files/keep\nunlink=1",
    "removed by an engine": "rw=read\nioengine=filedelete\nfilename={here}/files/keep",
    "an existing file": "rw=write\nfilename={here}/files/keep",
    "a link to a file": "rw=write\nfilename={here}/files/link",
    "an engine from a file": "rw=read\nioengine=external:{here}/evil.so\nfilename={node}",
    "the scheduler": "rw=read\nfilename={node}\nioscheduler=none",
}  # fmt: skip


@pytest.mark.parametrize("how", JOBS)
def test_a_job_file_cannot_write_what_was_not_allowed(how: str, here: Path) -> None:
    files = here / "files"
    files.mkdir()
    (files / "keep").write_bytes(b"keep me" * 1000)
    (files / "link").symlink_to(files / "keep")
    with loop(here / "disk.img") as node:
        (here / "link").symlink_to(node)
        (here / "more.inc").write_text(f"rw=write\nfilename={node}\n")
        (here / "log").write_text(f"fio version 2 iolog\n{node} add\n{node} open\n"
                                  f"{node} write 0 4096\n{node} close\n")  # fmt: skip
        job = here / "evil.fio"
        relative = os.path.relpath(node, here)
        text = JOBS[how].format(node=node, name=Path(node).name, here=here, relative=relative)
        job.write_text(f"[a]\nsize=64k\n{text}\n")
        before = digest(node), digest(str(files / "keep"))
        done = iopstui("run", "--job", str(job), cwd=here, VICTIM=node)
        assert (digest(node), digest(str(files / "keep"))) == before
        assert done.returncode in (2, 3), done.stderr


OPTIONS = [
    ("rw=write",), ("rw=randtrim",), ("rw=read", "verify=crc32c", "rw=write"),
    ("readwrite=write",), ("rw=write", "filename=/dev/null"), ("rw=write", "directory=/tmp"),
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS)
def test_set_cannot_make_a_reading_job_write(options: tuple[str, ...], here: Path) -> None:
    words = [word for option in options for word in ("--set", option)]
    with loop(here / "disk.img") as node:
        before = digest(node)
        done = iopstui("run", node, "--job", "randread-4k", *words, "--set", "runtime=1", cwd=here)
        assert digest(node) == before
        assert done.returncode in (2, 3), done.stderr


def test_set_filename_names_no_other_device(here: Path) -> None:
    with loop(here / "one.img") as one, loop(here / "two.img") as two:
        before = digest(one), digest(two)
        for words in (("filename", two), ("directory", "/dev")):
            done = iopstui("run", one, "--job", "randwrite-4k", "--set", "=".join(words),
                           "--set", "runtime=1", "--destroy-data", two, cwd=here)  # fmt: skip
            assert done.returncode in (2, 3), done.stderr
        done = iopstui("run", ".", "--job", "randwrite-4k", "--set", f"filename={two}",
                       "--set", "runtime=1", "--size", "8m", cwd=here)  # fmt: skip
        assert (digest(one), digest(two)) == before


@pytest.mark.parametrize("name", ["\x1b[2Jwipe", "[red]x[/red]", "a\rb", "tab\there", "ü\udcff"])
def test_names_reach_no_terminal_raw(name: str, here: Path) -> None:
    job = os.fsencode(str(here / "odd.fio"))
    with open(job, "wb") as file:
        file.write(b"[" + os.fsencode(name) + b"]\nrw=read\nsize=1m\nioengine=null\n")
    done = iopstui("run", "--job", os.fsdecode(job), "--size", "1m", cwd=here)
    for raw in ("\x1b", "\x07", "\r"):
        assert raw not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_state_directory_that_is_a_link_is_not_used(here: Path) -> None:
    elsewhere = here / "elsewhere"
    elsewhere.mkdir()
    state = here.parent / "state"
    state.mkdir()
    (state / "iopstui").symlink_to(elsewhere)
    with loop(here / "disk.img") as node:
        done = iopstui("run", node, "--job", "randread-4k", "--set", "runtime=1",
                       "--knob", "rq_affinity=2", cwd=here)  # fmt: skip
    assert list(elsewhere.iterdir()) == []
    assert done.returncode != 0 and "symbolic link" in done.stderr, done.stderr


def test_a_forged_note_writes_nowhere_else(here: Path) -> None:
    state = here.parent / "state" / "iopstui"
    state.mkdir(parents=True)
    victim = here / "queue" / "rq_affinity"
    victim.parent.mkdir()
    victim.write_text("mine")
    entry = f'{{"device": "x", "name": "%s", "value": "0", "path": "{victim}"}}'
    owner = '{"pid": 1, "start": 0, "boot": "x"}'
    for number, name in enumerate(("rq_affinity", "irq/1")):
        text = f'{{"owner": {owner}, "settings": [{entry % name}]}}'
        (state / f"settings-{number}.json").write_text(text)
    iopstui("doctor", cwd=here)
    assert victim.read_text() == "mine"


def test_a_second_one_on_the_same_device_is_told(here: Path) -> None:
    from program import start, wait_for_fio

    with loop(here / "disk.img") as node:
        first = start("run", node, "--job", "randread-4k", "--set", "runtime=30", cwd=here)
        wait_for_fio(first.pid)
        second = iopstui("run", node, "--job", "randread-4k", "--set", "runtime=1", cwd=here)
        assert second.returncode == 3
        assert f"another iopstui (pid {first.pid})" in second.stderr
        first.terminate()
        first.communicate(timeout=15)
        third = iopstui("run", node, "--job", "randread-4k", "--set", "runtime=1", cwd=here)
        assert third.returncode == 0, third.stderr


def test_nothing_can_mount_it_while_it_is_written(here: Path) -> None:
    import subprocess

    from program import start, wait_for_fio

    with loop(here / "disk.img") as node:
        process = start("run", node, "--job", "randwrite-4k", "--set", "runtime=30",
                        "--destroy-data", node, cwd=here)  # fmt: skip
        wait_for_fio(process.pid)
        fd_error = None
        try:
            os.close(os.open(node, os.O_RDONLY | os.O_EXCL))
        except OSError as error:
            fd_error = error.strerror
        swap = subprocess.run(["swapon", node], capture_output=True)
        process.terminate()
        process.communicate(timeout=15)
        assert fd_error == "Device or resource busy"
        assert swap.returncode != 0
