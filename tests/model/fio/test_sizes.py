"""Sizes and switches as fio reads them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from iopstui.model.fio.jobfile import effective_sections
from iopstui.model.sizes import fixed_block_size, part_bytes, size_bytes


@pytest.mark.parametrize("text", ["10%", "-4k", "k", "4.5k", "0x1000", "4k:8k"])
def test_what_is_left_to_fio(text: str) -> None:
    assert size_bytes(text, {}) is None


def test_it_is_the_one_that_fio_takes(fio: str) -> None:
    asked = [
        {"bs": bs, "rw": rw}
        for bs in (
            "8k",
            "8k,16k",
            "8k,16k,32k",
            ",16k",
            "8k,",
            ",,32k",
            ",16k,",
            "8k/4k",
            "4KiB",
            "4ki",
            "4x",
            "4kk",
            "1KB",
            "4e",
        )
        for rw in ("read", "randread:4", "randwrite", "randtrim", "readwrite", "trimwrite")
    ]
    sections = [f"[{n}]\nrw={one['rw']}\nbs={one['bs']}\n" for n, one in enumerate(asked)]
    text = "[global]\nioengine=null\nsize=256k\n" + "".join(sections)
    done = subprocess.run([fio, "--output-format=json", "-"], input=text, capture_output=True,
                          text=True, check=True)  # fmt: skip
    for one, job in zip(asked, json.loads(done.stdout)["jobs"], strict=True):
        did = [job[name] for name in ("read", "write", "trim") if job[name]["total_ios"]]
        sizes = {part["io_bytes"] / part["total_ios"] for part in did}
        told = fixed_block_size(one)
        assert sizes == {told} if told is not None else len(sizes) > 1, (one, sizes)


def test_a_part_of_what_is_there_is_rounded_up() -> None:
    assert part_bytes("50%", 9) == 5 and part_bytes("100%", 9) == 9
    assert part_bytes("4k", None) == part_bytes("4k", 9) == 4096
    assert part_bytes("50%", None) is part_bytes("half%", 9) is part_bytes("junk", 9) is None


@pytest.mark.parametrize("option", ["bssplit=4k/50:64k/50", "bsrange=4k-64k", "blocksize=16k"])
def test_a_section_s_bs_replaces_what_it_replaces_for_fio(option: str, tmp_path: Path) -> None:
    """Compared with fio itself, which counts bytes and I/Os."""
    text = f"[global]\nioengine=null\nsize=4m\n{option}\n[a]\nrw=randread\nbs=8k\n"
    job = tmp_path / "a.fio"
    job.write_text(text)
    done = subprocess.run(
        ["fio", "--output-format=json", str(job)], capture_output=True, check=True, cwd=tmp_path
    )
    read = json.loads(done.stdout)["jobs"][0]["read"]
    fixed = read["io_bytes"] == 8192 * read["total_ios"]
    (section,) = effective_sections(text)
    assert fixed_block_size(section.options) == (8192 if fixed else None)
    assert fixed == option.startswith("blocksize")
