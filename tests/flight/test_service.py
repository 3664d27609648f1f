"""The systemd unit, and what doctor reports about it."""

from __future__ import annotations

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

from iopstui.cli.program import build_parser, parse_arguments
from iopstui.features.flight import doctor_check
from iopstui.features.flight.directory import Name, Ring
from iopstui.linux.kernel_files import Roots

UNIT = Path(doctor_check.__file__).parent / "systemd" / doctor_check.UNIT


def service() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNIT)
    return parser["Service"]


def test_the_unit_starts_a_recorder_with_few_rights() -> None:
    unit = service()
    program, *words = unit["ExecStart"].replace("%S", "/var/lib").split()
    arguments = parse_arguments(build_parser(), words)
    assert program == "/usr/bin/iopstui" and arguments.keep == 7 * 86400
    assert arguments.record.rstrip("/") == f"/{doctor_check.STATE}"
    assert set(unit["CapabilityBoundingSet"].split()) == {
        "CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH",
    }  # fmt: skip
    for name in ("NoNewPrivileges", "ProtectKernelModules", "MemoryDenyWriteExecute"):
        assert unit[name] == "yes"
    assert unit["ProtectSystem"] == "strict" and unit["StateDirectoryMode"] == "0700"


def analysed(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """systemd's own check of the unit, with an existing program in it."""
    program = shutil.which("systemd-analyze")
    assert program is not None
    copy = tmp_path / doctor_check.UNIT
    text = UNIT.read_text().replace("/usr/bin/iopstui", "/bin/true")
    copy.write_text(text.replace("Documentation=man:iopstui-watch(1)\n", ""))
    return subprocess.run([program, *words, str(copy)], capture_output=True, text=True, check=False)


if shutil.which("systemd-analyze"):

    def test_systemd_takes_the_unit_and_finds_it_hardened(tmp_path: Path) -> None:
        verified = analysed(tmp_path, "verify")
        assert doctor_check.UNIT not in verified.stderr, verified.stderr
        security = analysed(tmp_path, "security", "--offline=yes", "--threshold=35")
        # systemd before version 250 lacks this option
        if "unrecognized option" not in security.stderr:
            assert security.returncode == 0, security.stdout


if shutil.which("systemctl"):

    def test_a_preset_leaves_it_disabled(tmp_path: Path) -> None:
        """`systemctl preset` enables units that no preset names, on Debian and in an empty root
        directory."""
        for source in UNIT.parent.iterdir():
            kind = "system" if source.suffix == ".service" else "system-preset"
            place = tmp_path / "usr/lib/systemd" / kind
            place.mkdir(parents=True)
            shutil.copy(source, place)
        for words in ("preset", "is-enabled"):
            done = subprocess.run(
                ["systemctl", f"--root={tmp_path}", words, UNIT.name], capture_output=True,
                text=True, check=False,
            )  # fmt: skip
        assert done.stdout == "disabled\n", done.stderr


def said(top: Path) -> tuple[str, str, str]:
    result = doctor_check.check(Roots(proc=top / "proc"))
    assert result is not None
    return result.state, result.message, result.fix


def test_doctor_knows_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor_check.check(Roots(proc=tmp_path / "proc")) is None
    units = tmp_path / "usr/lib/systemd/system"
    units.mkdir(parents=True)
    shutil.copy(UNIT, units)
    state, message, fix = said(tmp_path)
    assert state == "ok" and "not enabled" in message and "enable --now" in fix

    wants = tmp_path / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    (wants / doctor_check.UNIT).symlink_to("/usr/lib/systemd/system/x")
    state, message, _ = said(tmp_path)
    assert state == "lacks" and "is enabled and does not record" in message

    place = tmp_path / doctor_check.STATE
    place.mkdir(parents=True)
    ring = Ring(place, 60, 1000)
    state, message, _ = said(tmp_path)
    assert state == "lacks" and "has written nothing" in message

    file = place / str(Name(1_790_474_400))
    file.write_bytes(bytes(3 << 20))
    now = file.stat().st_mtime
    monkeypatch.setattr(doctor_check.time, "time", lambda: now)
    state, message, _ = said(tmp_path)
    assert state == "ok" and message.startswith("records to /var/lib/iopstui-flight")
    assert message.endswith("3 MiB")
    ring.unlock()
