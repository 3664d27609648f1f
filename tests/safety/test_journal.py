"""Notes of changes that must be undone."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.linux.kernel_files import Roots
from iopstui.safety import journal, tunables
from iopstui.safety.crash import crash_sentence
from iopstui.safety.leftovers import clean_up


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "iopstui"


def left_by_a_dead_one(state: Path, name: str, content: dict[str, Any]) -> Path:
    owner = {"pid": os.getpid(), "start": 1, "boot": journal.boot_id()}
    path = state / name
    path.write_text(json.dumps({"owner": owner, **content}))
    return path


def test_notes_are_for_this_user_alone(state: Path) -> None:
    note = journal.write_note("kind", {"a": 1})
    assert state.stat().st_mode & 0o777 == 0o700
    assert note.path.stat().st_mode & 0o777 == 0o600
    assert list(journal.abandoned_notes("kind")) == []
    note.update({"a": 2})
    assert json.loads(note.path.read_text())["a"] == 2
    note.remove()
    note.remove()
    assert list(state.iterdir()) == []


def test_another_machine_s_note_in_a_shared_home_is_left_alone(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = state.parent / ".iopstui-theirs"
    scratch.mkdir()
    monkeypatch.setattr(journal, "machine_identity", lambda: "0123 node07")
    monkeypatch.setattr(journal, "boot_id", lambda: "theirs")
    note = journal.write_note("scratch", {"scratch": str(scratch)})
    monkeypatch.undo()
    monkeypatch.setenv("XDG_STATE_HOME", str(state.parent))
    assert clean_up(Roots()) == ([], [])
    assert scratch.is_dir() and note.path.exists()
    assert list(journal.abandoned_notes("scratch")) == []


def test_a_directory_open_to_others_is_closed(state: Path) -> None:
    state.mkdir(parents=True)
    state.chmod(0o777)
    journal.write_note("kind", {}).remove()
    assert state.stat().st_mode & 0o777 == 0o700


def test_a_link_is_no_state_directory(state: Path, tmp_path: Path) -> None:
    (tmp_path / "else").mkdir()
    state.symlink_to(tmp_path / "else")
    with pytest.raises(PermissionError, match="symbolic link"):
        journal.write_note("kind", {})
    assert list((tmp_path / "else").iterdir()) == []
    assert list(journal.abandoned_notes("kind")) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a directory away needs root")
def test_another_user_s_directory_is_not_used(state: Path) -> None:
    state.mkdir(parents=True)
    os.chown(state, 65534, 65534)
    with pytest.raises(PermissionError, match="another user"):
        journal.state_directory()


def test_a_relative_state_home_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert journal.state_directory() == tmp_path / ".local/state/iopstui"


def test_another_user_s_variables_are_ignored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`sudo -E` and `su` keep these variables, and that user could put a link there at any time."""
    (tmp_path / "theirs").mkdir()
    # like another user's directory: anybody can rename files in it
    (tmp_path / "theirs").chmod(0o777)
    for variable in ("XDG_STATE_HOME", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "theirs/home"))
    entry = pwd.struct_passwd(("me", "x", os.geteuid(), 0, "", str(tmp_path / "mine"), ""))
    (tmp_path / "mine").mkdir()
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: entry)
    assert journal.state_directory() == tmp_path / "mine/.local/state/iopstui"
    assert list((tmp_path / "theirs").iterdir()) == []


@pytest.mark.parametrize("home", [None, "", "here", "/nonexistent/home", "/dev/null"])
def test_without_a_home_nothing_is_made_where_one_stands(
    home: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("HOME")
    if home is not None:
        monkeypatch.setenv("HOME", home)

    def unknown(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match="no home directory"):
        journal.write_note("kind", {})
    assert list(journal.abandoned_notes("kind")) == []
    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_one_left_is_found(state: Path) -> None:
    journal.write_note("kind", {})
    path = left_by_a_dead_one(state, "kind-1.json", {"a": 1})
    (state / "kind-2.json").symlink_to(path)
    (state / "kind-3.json").write_bytes(b"\xff{")
    os.mkfifo(state / "kind-4.json")
    assert [note.path for note in journal.abandoned_notes("kind")] == [path]


@given(st.binary(max_size=200))
def test_no_note_makes_it_fall_over(data: bytes) -> None:
    state = journal.state_directory()
    (state / "odd-1.json").write_bytes(data)
    list(journal.abandoned_notes("odd"))


def test_a_zombie_is_not_alive(state: Path) -> None:
    """The zombie's parent never reads its exit code, but what the zombie left must be undone."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    state.mkdir(parents=True, mode=0o700)
    start = int(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[19])
    owner = {"pid": child, "start": start, "boot": journal.boot_id()}
    (state / "kind-1.json").write_text(json.dumps({"owner": owner}))
    assert [note.path.name for note in journal.abandoned_notes("kind")] == ["kind-1.json"]
    os.waitpid(child, 0)


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(),
    st.sampled_from(["\0", "/tmp/.iopstui-\0", "\ud800", "/\udcff", "/x/.iopstui-" + "y" * 5000]),
    st.sampled_from([os.getpid(), 1, 1e400, -1e400, float("nan"), 1 << 70, -1]),
)  # fmt: skip
CONTENT = st.recursive(
    ODD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["owner", "pid", "start", "boot", "scratch", "settings", "device", "name",
                         "path", "value", "diskseq"]), inner, max_size=8),
    max_leaves=20,
)  # fmt: skip
ENTRY = st.fixed_dictionaries(
    {key: ODD | st.sampled_from(["rq_affinity", "irq/1", "/sys/block/x/queue/rq_affinity", "0"])
     for key in ("device", "name", "path", "value", "diskseq")})  # fmt: skip
OWNER = st.fixed_dictionaries({"pid": ODD, "start": ODD, "boot": ODD}) | st.just(
    {"pid": os.getpid(), "start": 1, "boot": journal.boot_id()}
)


@pytest.mark.parametrize("kind", ["scratch", "settings"])
@given(content=st.fixed_dictionaries(
    {"owner": OWNER, "scratch": ODD, "boot": ODD | st.just(journal.boot_id()),
     "settings": st.lists(ENTRY, max_size=2) | CONTENT}) | CONTENT)  # fmt: skip
def test_no_note_keeps_iopstui_from_starting(kind: str, content: Any) -> None:
    state = journal.state_directory()
    (state / f"{kind}-1.json").write_text(json.dumps(content))
    nowhere = Path("/nonexistent")
    done, failed = clean_up(Roots(proc=nowhere, sys=nowhere))
    assert done == failed == []
    list(journal.abandoned_notes(kind))


@pytest.mark.parametrize("text", [
    '{"owner": {"pid": 1e400, "start": 1, "boot": ""}}',
    '{"owner": {"pid": 1, "start": 1, "boot": ""}, "scratch": "/tmp/.iopstui-\\u0000"}',
    '{"owner": {"pid": 1, "start": 1, "boot": ""}, "scratch": "/tmp/.iopstui-\\ud800"}',
])  # fmt: skip
def test_odd_notes_are_passed_over(text: str, state: Path) -> None:
    journal.state_directory()
    (state / "scratch-1.json").write_text(text)
    assert clean_up(Roots()) == ([], [])


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "rq_affinity", "path": "{tmp}/queue/rq_affinity"},
        {"name": "rq_affinity", "path": "{sys}/block/x/../../../queue/rq_affinity"},
        {"name": "rq_affinity", "path": "{sys}/block/x/queue/scheduler"},
        {"name": "irq/1", "path": "{tmp}/queue/rq_affinity"},
        {"name": "evil", "path": "{tmp}/queue/evil"},
        {"name": 7, "path": ["x"]},
    ],
)
def test_a_forged_note_changes_nothing(entry: dict[str, Any], state: Path, tmp_path: Path) -> None:
    victim = tmp_path / "queue/rq_affinity"
    victim.parent.mkdir()
    for file in (victim, tmp_path / "queue/evil", tmp_path / "queue/scheduler"):
        file.write_text("mine")
    (tmp_path / "sys/block/x/queue").mkdir(parents=True)
    roots = Roots(sys=tmp_path / "sys", proc=tmp_path / "proc")
    state.mkdir(exist_ok=True)
    path = str(entry["path"]).format(tmp=tmp_path, sys=tmp_path / "sys")
    full = {"device": "x", "value": "0", "diskseq": None, **entry, "path": path}
    left_by_a_dead_one(state, "settings-1.json", {"settings": [full]})
    tunables.restore_abandoned(roots)
    assert {file.read_text() for file in (tmp_path / "queue").iterdir()} == {"mine"}


def test_a_file_that_is_there_is_never_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal.os, "urandom", bytes)
    path = journal.write_text("crash-", "first")
    with pytest.raises(FileExistsError):
        journal.write_text("crash-", "second")
    assert path.read_text() == "first"


def test_a_note_of_a_process_that_can_not_be_is_passed_over() -> None:
    """PID_MAX_LIMIT is 2^22 (proc(5)); no process here has the last number below it."""
    for pid, found in ((0, 0), (-1, 0), ((1 << 22) - 1, 1), (1 << 22, 0), ("7", 0)):
        note = journal.write_note("odd", {})
        content = json.loads(note.path.read_text())
        content["owner"] |= {"pid": pid, "start": -1}
        note.path.write_text(json.dumps(content))
        assert len(list(journal.abandoned_notes("odd"))) == found, pid
        note.remove()


def test_only_the_newest_texts_are_kept(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(range(1 << 16))
    monkeypatch.setattr(os, "urandom", lambda count: next(names).to_bytes(count, "big"))
    for number in range(journal.MAX_TEXTS + 9):
        path = journal.write_text("crash-", str(number))
        os.utime(path, (number, number))
    texts = {int(path.read_text()) for path in state.iterdir()}
    assert texts == set(range(9, journal.MAX_TEXTS + 9))


def test_the_details_of_an_internal_error_are_limited(state: Path) -> None:
    sentence = crash_sentence(ValueError("x" * (1 << 20)))
    assert len(sentence) < 1000 and max(path.stat().st_size for path in state.iterdir()) < 1 << 17
