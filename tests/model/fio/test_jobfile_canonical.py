"""Job files are read so that fio can't understand them otherwise."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.errors import UsageError
from iopstui.fio.inspect import END
from iopstui.model.fio import jobfile
from iopstui.model.fio.jobfile import Unclear, canonical

PLAIN = """\
# a comment stays
[global]
  rw = randread ; inline
bs=4k	# with a tab
filename=/dev/${DISK}

[a]
numjobs=4 ; four
time_based
"""


def test_one_option_a_line_without_its_comment() -> None:
    assert canonical(PLAIN, {"DISK": "sdz"}).split("\n") == [
        "# a comment stays", "[global]", "rw=randread", "bs=4k", "filename=/dev/sdz", "",
        "[a]", "numjobs=4", "time_based", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("[iopstui-end]", "marks the end"),
        ("include more.inc", "not included"),
        ("includex=1", "not included"),
        ("numjobs=0x2", "plain decimal"),
        ("nrfiles=(2*3)", "plain decimal"),
        ("iodepth=1e2", "plain decimal"),
        ("size=0x10", "plain size"),
        ("size=$mb_memory*1024", "replace $mb_memory"),
        ("bs=$pagesize", "replace $pagesize"),
        ("description=see $ncpus", "replace $ncpus"),
        ("[globals]", "for [global]"),
        ("[a", "alone on its line"),
        ("[a] rw=read", "alone on its line"),
        ("[a]]", "alone on its line"),
        ("[" + "x" * 200 + "]", "longer than"),
        ("description=" + "x" * 3000, "longer than"),
        ("filename=a\x0bb", "control characters"),
        ("filename=a\rb", "control characters"),
        ("FILENAME=a", "not the name of a fio option"),
        ("${NAME}=a", "not the name of a fio option"),
        ("file name=a", "not the name of a fio option"),
    ],
)
def test_what_is_not_clear_is_refused_with_its_line(line: str, why: str) -> None:
    with pytest.raises(Unclear) as caught:
        canonical(f"[a]\n# two\n{line}\nrw=read\n", {})
    assert caught.value.line == 3
    assert "line 3" in caught.value.message and why in caught.value.message


def test_an_option_before_any_section_is_refused() -> None:
    with pytest.raises(Unclear, match="before the first"):
        canonical("rw=read\n[a]\n", {})


def test_a_variable_brings_nothing_but_a_value() -> None:
    for value in ("x#y", "x;y", "a\nrw=write", "${OTHER}", "$ncpus", " x"):
        with pytest.raises(Unclear):
            canonical("[a]\nfilename=${V}\n", {"V": value, "OTHER": "o"})


def test_variables_that_are_not_set_are_named() -> None:
    text = canonical("[a]\nfilename=${NOWHERE}/x\n#${NOT_THIS}\nbs=${BS}\n", {"BS": "4k"})
    assert list(jobfile.unset(text)) == [("NOWHERE", "filename=${NOWHERE}/x")]
    assert not list(jobfile.unset(jobfile.changed(text, {"filename": "/dev/x"})))


@pytest.mark.parametrize(
    "text", ["bs=4k#", "filename=a;b", "numjobs=0x2", "include=x", "bs=$ncpus"]
)
def test_set_takes_nothing_unclear(text: str) -> None:
    with pytest.raises(UsageError):
        jobfile.checked_override(text)


def test_only_some_sections() -> None:
    text = "[global]\nbs=4k\n[a]\nrw=read\n[b]\nrw=write\n[global]\nbs=8k\n[c]\n"
    assert jobfile.only(text, [0, 2]) == "[global]\nbs=4k\n[a]\nrw=read\n[global]\nbs=8k\n[c]\n"


LINE = st.text(alphabet="ab[]#;=$ {}\t\r\x0b\n0x", max_size=12)


@given(st.lists(LINE, max_size=6).map("\n".join))
def test_what_is_taken_means_the_same_when_read_again(text: str) -> None:
    try:
        once = canonical(text, {"a": "1"})
    except Unclear:
        return
    assert canonical(once, {}) == once
    for section in jobfile.sections(once):
        for value in section.options.values():
            assert not set("#;\r\x0b") & set(value)


HEAD = st.sampled_from(["[a]", "[b x]", " [c]", "[d] # x", "[e", "[global]", "[globalx]", "# [f]"])
OPTION = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["bs", "numjobs", "nrfiles", "size", "description", "rw", "time_based", "x"]),
    st.sampled_from(["=", " = ", "", "=="]),
    st.sampled_from(["4k", "2", "0x2", "read", "randread", "a b", "$ncpus", "(1+1)"]),
    st.sampled_from(["", "\t", "\r", " "]),
    st.sampled_from(["", "#c", " ; c", ";#"]),
)


@given(st.lists(st.one_of(HEAD, OPTION), max_size=7).map("\n".join))
def test_fio_understands_the_very_same(
    tmp_path_factory: pytest.TempPathFactory, fio: str, text: str
) -> None:
    """What fio reports of our text is what our reader finds in it, and no more."""
    try:
        ours = canonical(text, {})
    except Unclear:
        return
    file = tmp_path_factory.mktemp("job") / "x.fio"
    file.write_text(ours + END)
    said = subprocess.run([fio, "--parse-only", "--debug=parse", str(file)], capture_output=True,
                          text=True).stdout  # fmt: skip
    names = re.findall(r"^parse +\d+ Parsing section \[(.*)\]$", said, re.M)
    found = [section.name for section in jobfile.sections(ours)]
    # fio stops at the first section it does not accept
    assert names == [*found, "iopstui-end"][: len(names)]


def test_the_end_is_no_option_of_any_fio(fio: str) -> None:
    listed = subprocess.run([fio, "--cmdhelp=all"], capture_output=True, text=True).stdout
    assert "iopstui" not in listed and END.count("[") == 1
    assert Path(fio).exists()
