"""A job that names its own files is watched on all of their devices (asked of the real fio)."""

from __future__ import annotations

from pathlib import Path

import pytest

from iopstui.errors import UsageError
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.device import BlockDevice
from iopstui.model.block.target import DIRECTORY, FILE, Target
from iopstui.preflight import targets as module
from iopstui.preflight.targets import target_named_by_job

DEVICES = {name: BlockDevice(name, f"/dev/{name}", 7, 0, "loop", 1) for name in ("loop0", "loop1")}


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two directories, each on its own device."""
    for name in ("cache", "nocache"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)

    def resolve(text: str, cwd: Path, *rest: object, **more: object) -> Target:
        kind = DIRECTORY if Path(text).is_dir() else FILE
        if "/inram" in text:
            return Target(kind, text, None, (), "memory", "tmpfs", "/memory")
        name = "loop1" if "nocache" in text else "loop0"
        return Target(kind, text, name, (name, "vda"), "", "ext4", f"/{name}")

    monkeypatch.setattr(module, "resolve_target", resolve)
    return tmp_path


def job(places: Path, text: str) -> str:
    file = places / "own.fio"
    file.write_text(text)
    return str(file)


def test_azure_s_job_has_two_directories(places: Path) -> None:
    text = (
        f"[global]\nsize=1m\nnumjobs=4\n[reader1]\nrw=randread\ndirectory={places}/cache\n"
        f"[writer1]\nrw=randwrite\ndirectory={places}/nocache\n"
    )
    found = target_named_by_job(job(places, text), DEVICES, Roots())
    assert found is not None and found.opened == ("loop0", "loop1")
    assert [place.path for place in found.places] == [f"{places}/cache", f"{places}/nocache"]
    assert found.tree == ("loop0", "vda", "loop1")


def test_a_directory_that_is_missing_is_named(places: Path) -> None:
    text = f"[a]\nrw=read\nsize=1m\ndirectory={places}/none\n"
    with pytest.raises(UsageError) as caught:
        target_named_by_job(job(places, text), DEVICES, Roots())
    assert f"{places}/none, which does not exist" in caught.value.message and caught.value.hint


def test_kingsoft_s_document_joins_its_files_with_colons(places: Path) -> None:
    for name in ("cache/x", "nocache/y", "cache/z"):
        (places / name).write_bytes(b"x")
    files = f"{places}/cache/x:{places}/nocache/y:{places}/cache/z"
    found = target_named_by_job(job(places, f"[a]\nrw=read\nfilename={files}\n"), DEVICES, Roots())
    assert found is not None and found.opened == ("loop0", "loop1"), "each device once"


def test_files_in_memory_stand_beside_those_on_a_device(places: Path) -> None:
    (places / "inram").mkdir()
    text = f"[a]\nsize=1m\nrw=read\nfilename={places}/inram/x:{places}/cache/y\n"
    found = target_named_by_job(job(places, text), DEVICES, Roots())
    assert found is not None and found.opened == ("loop0",)
    assert [place.no_device for place in found.without_device] == ["memory"]


def test_a_file_to_be_made_in_dev_shm_is_no_mistyped_device(places: Path) -> None:
    roots = Roots.under(places)
    (roots.dev / "shm").mkdir(parents=True)
    assert module._watched_path(roots.dev / "shm/new", roots) == str(roots.dev / "shm")
    for name in ("sdx", "disk/by-id/x"):
        assert module._watched_path(roots.dev / name, roots) == str(roots.dev / name)


def test_one_file_is_one_target(places: Path) -> None:
    found = target_named_by_job(job(places, f"[a]\nsize=1m\nrw=read\nfilename={places}/cache/x\n"),
                                DEVICES, Roots())  # fmt: skip
    assert found is not None and not found.has_several and found.opened == ("loop0",)


def test_a_job_without_files_has_none(places: Path) -> None:
    assert target_named_by_job(job(places, "[a]\nrw=read\nsize=1m\n"), DEVICES, Roots()) is None


def test_each_file_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_bytes(b"x")
    text = f"[a]\nrw=read\nfilename={tmp_path}/a:/dev/no-such-device\n"
    with pytest.raises(UsageError):
        target_named_by_job(job(tmp_path, text), {}, Roots())


def test_a_file_that_can_not_be_looked_at_is_one_to_be_made(places: Path) -> None:
    """A name of 300 letters is too long for any file system; the run will report that it can't be
    made."""
    found = target_named_by_job(
        job(places, f"[a]\nrw=read\nsize=1m\nfilename={'x' * 300}\n"), DEVICES, Roots()
    )
    assert found is not None and found.path == str(places)
