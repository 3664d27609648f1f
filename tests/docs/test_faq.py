"""The messages that the FAQ explains are those of the program."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from program_source import modules

ROOT = Path(__file__).parents[2]
FAQ = (ROOT / "docs/guide/faq.md").read_text("utf-8")
MESSAGES = re.findall(r"^\| `([^`]+)`", FAQ.partition("## What you see")[2], re.MULTILINE)


@cache
def _texts() -> str:
    """All texts of the program, with a newline for each value in them."""
    texts = []
    for module in modules().values():
        for node in module.nodes(ast.JoinedStr, ast.Constant):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "\n"
                         for part in node.values]  # fmt: skip
                texts.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return "\n".join(texts)


def _without_a_value(message: str) -> set[str]:
    """The message, also without its first or last word, which may be a name or a number."""
    return {message, message.partition(" ")[2], message.rpartition(" ")[0]} - {""}


def test_the_faq_has_messages() -> None:
    assert len(MESSAGES) >= 2


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_of_the_faq_is_in_the_program(message: str) -> None:
    text = message.removesuffix(" in the flags")
    assert any(part in _texts() for part in _without_a_value(text)), message
