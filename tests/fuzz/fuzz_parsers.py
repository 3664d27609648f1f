"""`make fuzz`: coverage-guided random input for every parser, with atheris (not in the lock).

The first byte chooses the parser. The arguments are libFuzzer's, e.g. -max_total_time=60."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]


def main() -> int:
    try:
        import atheris
    except ImportError:
        print("atheris is missing: .venv/bin/pip install atheris", file=sys.stderr)
        return 5
    with atheris.instrument_imports(include=["iopstui"]):
        from parsers import PARSERS, seeds
    chosen = list(PARSERS.values())

    def one(data: bytes) -> None:
        if data:
            chosen[data[0] % len(chosen)](data[1:])

    corpus = Path(tempfile.mkdtemp(prefix="iopstui-fuzz-"))
    for number, seed in enumerate(seeds()):
        for parser in range(len(chosen)):
            (corpus / f"{number}-{parser}").write_bytes(bytes([parser]) + seed)
    atheris.Setup([*sys.argv, str(corpus)], one)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
