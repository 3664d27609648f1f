"""Generate docs/reference and docs/man: `make docs`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from manual import manual  # noqa: E402
from reference import pages  # noqa: E402


def write(folder: str, texts: Mapping[str, str]) -> None:
    """Write changed pages and remove pages that no longer exist."""
    place = ROOT / "docs" / folder
    place.mkdir(parents=True, exist_ok=True)
    for path in sorted(place.iterdir()):
        if path.name not in texts:
            path.unlink()
            print(f"removed: docs/{folder}/{path.name}")
    for name, text in texts.items():
        path = place / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(f"written: docs/{folder}/{name}")


write("reference", pages())
write("man", manual())
