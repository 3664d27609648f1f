"""Makes the single-file program of a directory with iopstui and all it needs.

    python .ci/single/build.py SITE OUT

The same files give the same bytes: sorted, of one time and mode, compressed in one way.
"""

from __future__ import annotations

import hashlib
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

LINE = b"#!/usr/bin/env python3\n"
# the first that a zip archive can say
TIME = (1980, 1, 1, 0, 0, 0)
MODE = 0o100644 << 16
LEFT_OUT = {"__pycache__", "bin"}


def files(site: Path) -> Iterator[tuple[str, bytes]]:
    """What belongs to the program, by its path in it; not what only pip needs."""
    for path in sorted(site.rglob("*"), key=lambda path: path.relative_to(site).as_posix()):
        inside = path.relative_to(site)
        if path.is_file() and not LEFT_OUT & {*inside.parts} and _belongs(inside):
            yield inside.as_posix(), path.read_bytes()


def _belongs(inside: Path) -> bool:
    """Of a distribution's own notes, its name and its licence."""
    notes = next((part for part in inside.parts if part.endswith(".dist-info")), None)
    return notes is None or inside.name in ("METADATA", "WHEEL") or "licen" in str(inside).lower()


def build(site: Path, out: Path) -> None:
    """Write it; executable."""
    packed = list(files(site))
    digest = hashlib.sha256()
    for name, data in packed:
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    main = Path(__file__).with_name("main.py").read_bytes()
    members = [("__main__.py", main), ("name", digest.hexdigest()[:16].encode("ascii"))]
    with open(out, "wb") as file:
        file.write(LINE)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, data in [*members, *((f"site/{n}", d) for n, d in packed)]:
                info = zipfile.ZipInfo(name, TIME)
                info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, MODE
                archive.writestr(info, data)
    out.chmod(0o755)


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]))
