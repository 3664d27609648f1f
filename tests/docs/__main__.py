"""Writes docs/reference anew: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from reference import pages  # noqa: E402

for name, text in pages().items():
    path = ROOT / "docs" / "reference" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
        print(f"written: docs/reference/{name}")
