"""What is read from a job's text, and messages about files that are not job files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from iopstui.errors import IopstuiError, Refused, UsageError
from iopstui.fio import job_text
from iopstui.fio.inspect import JobFacts, SectionFiles
from iopstui.fio.job_text import (
    MAX_JOB_FILE,
    check_directories,
    check_options,
    check_section_names,
    check_streams,
    check_variables,
    count_of,
    describe_job,
    escape_path,
    expand_variables,
    join_paths,
    largest_block,
    read_job,
    split_paths,
    uses_direct_io,
)
from iopstui.model.fio.jobfile import Section


def said(error: IopstuiError) -> tuple[str, str]:
    return error.message, error.hint


def refused(path: Path) -> tuple[str, str]:
    with pytest.raises(UsageError) as caught:
        read_job(path)
    return said(caught.value)


def facts(*sections: SectionFiles) -> JobFacts:
    return JobFacts(sections, False, ())


def test_files_that_are_no_job(tmp_path: Path) -> None:
    file = tmp_path / "j.fio"
    assert refused(file) == (f"No such file or directory: the job file {file} can't be read.", "")
    assert refused(tmp_path) == (f"{tmp_path} is not a regular file.", "")
    nothing = (
        f"The job file {file} is empty.",
        "Choose a job from `iopstui jobs`, or add at least one [name] section.",
    )
    for text in ("", " \n\t\n"):
        file.write_text(text)
        assert refused(file) == nothing
    file.write_bytes(b"[a]\n\0")
    assert refused(file) == (f"{file} is not a fio job file (it contains binary data).", "")
    file.write_text("[a]\nrw=read\n[global\n")
    assert refused(file) == (
        "The job file is not accepted: line 3: '[global': a section is [name], alone on its line "
        f"(in {file}).",
        "Rewrite that line without ambiguity, or run the file with fio itself.",
    )


def test_a_byte_order_mark_is_told_with_what_takes_it_away(tmp_path: Path) -> None:
    file = tmp_path / "of mine.fio"
    file.write_bytes(b"\xef\xbb\xbf[global]\nrw=read\n[a]\n")
    message, hint = refused(file)
    assert message.endswith("starts with a byte order mark, which fio does not understand.")
    # the command in the hint works
    subprocess.run(hint.partition(": ")[2], shell=True, check=True)
    assert file.read_bytes() == b"[global]\nrw=read\n[a]\n"


def test_the_largest_job_file_there_may_be(tmp_path: Path) -> None:
    file = tmp_path / "j.fio"
    file.write_bytes(b"[a]\n" + b"\n" * (MAX_JOB_FILE - 4))
    assert read_job(file).startswith("[a]\n")
    with file.open("ab") as more:
        more.write(b"\n")
    assert refused(file) == (f"{file} is too large for a fio job file (1048577 bytes).", "")


def test_a_job_keeps_bytes_that_are_no_utf_8_and_reads_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", "p")
    file = tmp_path / "j.fio"
    file.write_bytes(b"[\xff]\nfilename=${PLACE}\n")
    assert read_job(file) == "[\udcff]\nfilename=p\n"


def test_a_variable_that_is_not_set() -> None:
    check_variables("[a]\nbs=4k\n", "The job")
    with pytest.raises(UsageError) as caught:
        check_variables("[a]\n bs=${BS}\n", "The job")
    assert said(caught.value) == (
        "The job needs the variable BS, which is not set: bs=${BS}",
        "Set it for the command: BS=... iopstui ...",
    )


def test_what_no_job_may_do() -> None:
    check_options("[a]\nrw=read\n", "The job")
    with pytest.raises(Refused) as caught:
        check_options("[a]\nexec_prerun=x\n[b]\ncgroup=y\n", "The job")
    assert said(caught.value) == (
        "The job is not run: exec_prerun= runs a command, and jobs get no shell; cgroup= creates "
        "a control group.",
        "Remove it from the job file, or run the file with fio.",
    )


def test_a_section_that_has_the_name_of_its_file() -> None:
    for text, path, bad in (
        ("[sda]\n", "/dev/sda", False), ("[/dev/sda]\n", "/dev/sda", True), ("[x]\n", "A/x", True),
        ("[x]\nfilename=x\n", "A/x", False), ("[x]\n", "A/x.0.0", False), ("[x]\n", "x", True),
    ):  # fmt: skip
        one = facts(SectionFiles("s", (path,)))
        if not bad:
            check_section_names(text, one)
            continue
        with pytest.raises(UsageError) as caught:
            check_section_names(text, one)
        assert said(caught.value) == (
            f"The section {text.strip()} has the name of an existing file or directory, which "
            "fio would use.",
            "Say which file to use: filename=...",
        )


def test_a_file_called_minus() -> None:
    check_streams(facts(SectionFiles("s", ("./-", "a"))))
    with pytest.raises(UsageError) as caught:
        check_streams(facts(SectionFiles("s", ("a", "-"))))
    assert said(caught.value) == (
        "The job opens -, which means standard input or output to fio.",
        "For a file of that name: filename=./-",
    )


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "a:b").mkdir()
    check_directories(f"[a]\ndirectory=a\\:b:{tmp_path}\n[b]\n", tmp_path)
    with pytest.raises(UsageError) as caught:
        check_directories("[a]\ndirectory=none\n", tmp_path)
    assert said(caught.value) == (
        f"The job uses the directory {tmp_path}/none, which does not exist.",
        "Create it, or choose another target: iopstui run TARGET --job ...",
    )


def test_names_with_colons() -> None:
    assert split_paths("a:b\\:c::d") == ["a", "b:c", "d"] and split_paths("") == []
    assert escape_path("/a:b") == "/a\\:b" and join_paths(["/a", "/b:c\\"]) == "/a:/b\\:c\\"
    advice = "Create a symbolic link with a plain name and use that."
    for paths, shown, why in (
        (["a\\:b"], "a\\:b", "fio reads a backslash before a colon as an escape"),
        (["a\\", "b"], "a\\:", "fio reads a backslash before a colon as an escape"),
        (["a;b"], "a;b", "fio cuts a value at # and ;"),
    ):
        with pytest.raises(UsageError) as caught:
            join_paths(paths)
        assert said(caught.value) == (f"{shown} cannot be used in a job file: {why}.", advice)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[a]\n", "read 4k  QD 1 × 1 job"),
        ("[a]\nrw=randread\nbs=8k\niodepth=32\nnumjobs=2\n", "randread 8k  QD 32 × 2 jobs"),
        ("[a]\nreadwrite=write\nbsrange=1k-2k\n", "write 1k-2k  QD 1 × 1 job"),
        ("[a]\nbssplit=4k/50:8k/50\n", "read 4k/50:8k/50  QD 1 × 1 job"),
        ("[a]\nrw=${RW}\n", "trim 4k  QD 1 × 1 job"),
        ("[a]\n[b]\n", "2 jobs: a, b"),
    ],
)
def test_a_job_in_one_line(text: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RW", "trim")
    assert describe_job(text) == line


def test_variables_are_replaced_as_fio_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A", "1")
    monkeypatch.delenv("NONE", raising=False)
    texts = {"x${A}y${A}": "x1y1", "${NONE}": "", "${A": "${A", "$A}": "$A}", "": ""}
    assert {text: expand_variables(text) for text in texts} == texts
    assert [count_of(text) for text in ("${A}2", "0", "x", None, "")] == [12, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({}, 4096), ({"bs": "512"}, 4096), ({"bs": "8k,16k,4k"}, 16384),
        ({"blocksize": "8k"}, 8192), ({"bsrange": "4k-8k"}, 8192),
        ({"blocksize_range": "4k-8k,16k-32k"}, 32768), ({"bssplit": "4k/50:64k/50"}, 65536),
        ({"bssplit": "4k/50:8k/50,16k/"}, 16384), ({"bs": "junk"}, 4096),
    ],
)  # fmt: skip
def test_the_largest_block(options: dict[str, str], size: int) -> None:
    assert largest_block(Section("a", options)) == size


@pytest.mark.parametrize(
    ("options", "past_the_cache"),
    [
        ({}, False), ({"direct": "1"}, True), ({"direct": ""}, True), ({"direct": "0"}, False),
        ({"buffered": "0"}, True), ({"buffered": "1", "direct": "1"}, False),
    ],
)  # fmt: skip
def test_direct_and_buffered_are_one_option(options: dict[str, str], past_the_cache: bool) -> None:
    assert uses_direct_io(Section("a", options)) is past_the_cache


def test_files_are_below_where_fio_runs() -> None:
    found = job_text.absolute_files(facts(SectionFiles("s", ("a", "/b", "a"))), Path("/w"))
    assert found == (f"/w{os.sep}a", "/b")
    assert job_text.sets_filename("[a]\ndirectory=x\n")
    assert job_text.sets_filename("[a]\nfilename=x\n")
    assert not job_text.sets_filename("[a]\nrw=read\n")
