"""Where jobs run: targets that disappear, jobs that need a target and have none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from evidence_frames import device

from iopstui.cli import main
from iopstui.errors import UsageError
from iopstui.experiment import setup as experiment
from iopstui.experiment.background import BackgroundExperiments
from iopstui.experiment.runner import ExperimentRunner, common_scratch_bytes
from iopstui.fio.inspect import find_fio
from iopstui.linux.devices.sysfs import read_devices
from iopstui.linux.devices.target import resolve_target
from iopstui.linux.kernel_files import Roots
from iopstui.model.block.target import DEVICE, DIRECTORY, Target
from iopstui.model.block.tunable import TunableRequest
from iopstui.model.experiment.plan import Plan, parse_axis, parse_variant
from iopstui.model.experiment.run_request import RunRequest
from iopstui.model.fio.jobfile import effective_sections
from iopstui.preflight.in_place import check_block_sizes
from iopstui.preflight.job import prepare
from iopstui.preflight.targets import choose_targets
from iopstui.session.live import LiveSession
from iopstui.ui.start import run_screen

OWN = "[global]\nrw=randread\nsize=1m\n[a]\nfilename={}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return directory


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A job that names its own file."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/x").write_bytes(bytes(1 << 20))
    job = tmp_path / "own.fio"
    job.write_text(OWN.format(tmp_path / "data/x"))
    return job


@pytest.mark.parametrize("place", ["{}", "{}/in-it", "./{}"])
def test_a_target_that_can_not_be_looked_at_is_a_sentence(place: str) -> None:
    """A directory that the user may not enter gives the same message, but root can enter all."""
    with pytest.raises(UsageError, match=r"Cannot examine .*File name too long"):
        choose_targets([place.format("x" * 300)], "randread-4k", {}, Roots())


def test_a_directory_that_is_gone_is_a_sentence(tmp_path: Path) -> None:
    gone = Target(DIRECTORY, str(tmp_path / "gone"), None, ())
    plan = Plan(("randread-4k",), {}, (parse_axis("iodepth=1,2"),))
    with pytest.raises(UsageError, match="gone"):
        common_scratch_bytes(plan, gone)


@pytest.mark.parametrize("job", ["randread-4k", "vng-randrw"])
def test_a_job_without_a_place_works_nowhere(job: str, here: Path, tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir()
    with pytest.raises(UsageError, match="names no files"):
        prepare(RunRequest(job), None, find_fio(), private, read_devices(Roots()), Roots())
    assert list(here.iterdir()) == []


def test_an_experiment_leaves_no_files_of_such_a_job(own: Path, here: Path) -> None:
    devices = read_devices(Roots())
    target = resolve_target(str(own.parent / "data/x"), here, Roots(), devices)
    session = LiveSession(target, devices, None)
    background = BackgroundExperiments(session, None, RunRequest())
    variants = (parse_variant(f"job={own}"), parse_variant("job=randread-4k"))
    for plan in (
        Plan(("randread-4k",), {}, (parse_axis("iodepth=1,2"),)),
        Plan((str(own),), {}, variants=variants, repeats=2),
    ):
        with pytest.raises(UsageError, match="names no files"):
            background.preview(plan)
    assert list(here.iterdir()) == []


def test_a_job_on_another_device_is_not_measured_by_this_one(
    own: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices = read_devices(Roots())
    target = resolve_target(str(own.parent / "data/x"), here, Roots(), devices)
    other = replace(target, device="sdx", tree=("sdx",))
    background = BackgroundExperiments(LiveSession(target, devices, None), None, RunRequest())
    plan = Plan((str(own),), {}, (parse_axis("iodepth=1,2"),))
    assert background.preview(plan).setup.target == target
    monkeypatch.setattr(experiment, "target_named_by_job", lambda *given: other)
    with pytest.raises(UsageError, match="uses sdx"):
        background.preview(plan)


def test_compare_refuses_variants_on_different_targets(
    own: Path, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = own.with_name("other.fio")
    (own.parent / "data/y").write_bytes(bytes(1 << 20))
    other.write_text(OWN.format(own.parent / "data/y"))
    for job in (other, "randread-4k"):
        code = main(["compare", "--job", str(own), "--variant", f"job={own}",
                     "--variant", f"job={job}", "--dry-run"])  # fmt: skip
        assert code == 2, job
        assert "target" in capfd.readouterr().err


def test_a_size_that_was_asked_for_holds_on_a_file_too(own: Path, tmp_path: Path) -> None:
    devices = read_devices(Roots())
    file = own.parent / "data/x"
    target = resolve_target(str(file), tmp_path, Roots(), devices)
    for asked, given in (("64k", 65536), ("8m", 1 << 20)):
        request = RunRequest("randread-4k", {"size": asked})
        ready = prepare(request, target, find_fio(), tmp_path, devices, Roots())
        ready.close()
        sizes = {int(line.split("=")[1]) for line in ready.text.splitlines() if line[:5] == "size="}
        assert sizes == {given}, "never more than the file has"


def test_a_setting_that_the_scheduler_resets_comes_behind_it(own: Path) -> None:
    target = Target(DIRECTORY, str(own.parent), None, ())
    plan = Plan((str(own),), {}, (parse_axis("scheduler=none,mq-deadline"),))
    session = LiveSession(target, {}, None)
    fixed = RunRequest(knobs=(TunableRequest("nr_requests", "64"),))
    runner = ExperimentRunner(session, plan, None, fixed, lambda event: None)
    for step in runner.points.steps:
        names = [knob.name for knob in runner.request(step, "").knobs]
        assert names == ["scheduler", "nr_requests"]


@pytest.fixture
def collected() -> Iterator[None]:
    yield
    gc.enable()


@pytest.mark.usefixtures("collected")
def test_no_recording_is_left_of_a_screen_that_never_opened(here: Path) -> None:
    options = RunRequest(
        "randread-4k",
        targets=(str(here),),
        record=str(here / "r.iops"),
        expect=("no.such.figure>=1",),
    )
    with pytest.raises(UsageError, match="figure"):
        run_screen(options)
    assert list(here.iterdir()) == [], "its name is free for the next try"


def test_on_a_directory_the_document_s_runtime_holds(tmp_path: Path) -> None:
    """The scratch file is smaller than the document's, and fio would stop at its end."""
    target = Target(DIRECTORY, str(tmp_path), None, ())
    request = RunRequest("azure-read", {"direct": "0"}, size="4m")
    ready = prepare(request, target, find_fio(), tmp_path, {}, Roots())
    ready.close()
    (job,) = effective_sections(ready.text)
    assert (job.options["time_based"], job.options["runtime"]) == ("1", "30")


@pytest.mark.parametrize(("options", "larger"), [
    ("bs=512", "4k"), ("bs=4k,6k\nrw=randrw", "8k"), ("bs=4k,6k", ""), ("bs=8k", ""),
    ("bs=512\ndirect=0", ""), ("bs=512\nioengine=null", ""), ("bsrange=512-8k", ""),
])  # fmt: skip
def test_direct_ios_smaller_than_a_logical_block_are_refused_before_fio(
    options: str, larger: str
) -> None:
    disk = device(logical_block_size=4096)
    text = f"[a]\nrw=randread\ndirect=1\nioengine=libaio\n{options}\n"
    for name, devices in (
        ("vda", {"vda": disk}),
        ("vda1", {"vda": disk, "vda1": replace(disk, name="vda1", queue=None, disk="vda")}),
    ):
        target = Target(DEVICE, f"/dev/{name}", name)
        if not larger:
            check_block_sizes(text, target, devices)
            continue
        with pytest.raises(UsageError, match="multiples of 4096") as refusal:
            check_block_sizes(text, target, devices)
        assert refusal.value.hint == f"Try bs={larger}, or direct=0."
