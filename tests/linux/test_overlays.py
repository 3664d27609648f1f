"""One file with several names: overlayfs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iopstui.linux.devices.aliases import Overlays, parse_layers
from iopstui.linux.devices.usage.mounts import parse_mountinfo
from iopstui.linux.devices.usage.openers import file_identity

NONE = (0, 0), 1
"""A file that no name leads to."""


def mounted(point: str, options: str, root: str = "/") -> Overlays:
    return Overlays(
        parse_mountinfo(f"44 27 0:39 {root} {point} rw - overlay overlay rw,{options}\n")
    )


@pytest.mark.parametrize(
    ("options", "layers"),
    [
        ("lowerdir=/a:/b,upperdir=/u,workdir=/w", ["/u", "/a", "/b"]),
        (r"upperdir=/u\040x\054y,lowerdir=/a\134:b:/c", ["/u x,y", "/a:b", "/c"]),
        ("lowerdir+=/a,lowerdir+=/b,datadir+=/d,upperdir=/u", ["/u", "/a", "/b", "/d"]),
        ("lowerdir=/a::/d", ["/a", "/d"]), ("ro,xino=off", []), ("upperdir=", []),
    ],
)  # fmt: skip
def test_the_layers(options: str, layers: list[str]) -> None:
    assert list(parse_layers(options)) == layers


def test_both_ways() -> None:
    found = mounted("/m", "upperdir=/u,lowerdir=/l")
    assert list(found.names_below("/m/d/img")) == ["/u/d/img", "/l/d/img"]
    assert list(found.names_above("/l/d/img")) == ["/m/d/img"]
    for path in ("/mm/img", "/img", "/u2/img"):
        assert [*found.names_below(path), *found.names_above(path)] == []


def test_a_part_of_an_overlay_that_is_mounted_elsewhere() -> None:
    found = mounted("/bound", "upperdir=/u", root="/d")
    assert list(found.names_below("/bound/img")) == ["/u/d/img"]
    assert list(found.names_above("/u/d/img")) == ["/bound/img"]
    assert list(found.names_above("/u/img")) == []


def test_the_root_is_an_overlay() -> None:
    found = mounted("/", "upperdir=/u")
    assert next(iter(found.names_below("/srv/img"))) == "/u/srv/img"
    # /u is in / itself, so names could be found endlessly
    assert len(list(found.names_below("/u/img"))) <= 3
    assert len(list(found.names_above("/u/img"))) <= 3


def test_files_are_found_by_number(tmp_path: Path) -> None:
    (tmp_path / "u").mkdir()
    (tmp_path / "u/img").write_text("")
    os.symlink(tmp_path / "u", tmp_path / "link")
    found = mounted("/nowhere", f"upperdir={tmp_path}/link,lowerdir=relative")
    assert found.files("/nowhere/img") == {file_identity((tmp_path / "u/img").stat())}
    assert found.files("/nowhere/none") == set()
    assert not found.may_hide("/nowhere/img", NONE)


@pytest.mark.parametrize("upper", ["u", "/of/another/namespace"])
def test_an_upper_directory_that_no_name_leads_to(upper: str) -> None:
    found = mounted("/m", f"upperdir={upper},lowerdir=/l")
    assert found.may_hide("/m/img", NONE) and not found.may_hide("/img", NONE)


def test_what_is_mounted_over_an_overlay_is_not_in_it(tmp_path: Path) -> None:
    """Like a volume in a container: the overlay at / does not hide the volume's files."""
    image = tmp_path / "img"
    image.write_text("")
    file = file_identity(image.stat())
    lines = "30 1 0:50 / / rw - overlay overlay rw,upperdir=/of/another/namespace,lowerdir=/l\n"
    volume = f"31 30 8:1 / {tmp_path} rw - ext4 /dev/sda1 rw\n"
    assert Overlays(parse_mountinfo(lines)).may_hide(str(image), file)
    assert not Overlays(parse_mountinfo(lines + volume)).may_hide(str(image), file)
    # the path leads to another file than the kernel's, or the volume is in another namespace
    assert Overlays(parse_mountinfo(lines + volume)).may_hide(str(image), NONE)
    elsewhere = parse_mountinfo(volume, elsewhere=True)
    assert Overlays([*parse_mountinfo(lines), *elsewhere]).may_hide(str(image), file)
