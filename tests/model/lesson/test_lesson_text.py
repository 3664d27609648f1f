"""Texts with figures and conditions in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.features.lessons.model.formula import FormulaError, Value, unit_of
from iopstui.features.lessons.model.pages import (
    FORMS,
    format_value,
    parse_paragraphs,
    parse_template,
    visible_paragraphs,
)

KNOWN: dict[str, Value] = {
    "one.iops": 15_800.0, "one.latency": 62_900.0, "one.in_flight": 0.98, "one.bw": 64.7 * 2**20,
    "one.slower": 0.22, "one.util": 72.4, "one.asked": 1.0, "device.name": "vda",
    "device.rotational": True, "one.merges": 0.0,
}  # fmt: skip


def text(template: str) -> str | None:
    return parse_template(template).fill(KNOWN.get, unit_of)


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        ("{one.iops} IOPS", "15.8k IOPS"),
        ("{one.latency}", "62.9 µs"),
        ("{one.in_flight}", "1.0"),
        ("{one.bw}", "64.7 MiB/s"),
        ("{one.slower}", "22 %"),
        ("{one.util}", "72 %"),
        ("{one.asked}", "1"),
        ("{one.merges}", "0"),
        ("{device.name} {device.rotational}", "vda yes"),
        ("{3.736 * one.asked :x}", "3.74 times"),
        ("{16 * one.asked :x}", "16 times"),
        ("{0.0123 * one.asked :%}", "1.2 %"),
        ("{0.53 * one.asked :+%}", "+53 %"),
        ("{-0.004 * one.asked :+%}", "-0.4 %"),
        ("{1 * ms * one.asked:t}", "1.00 ms"),
        ("{s / one.latency :n}", "15.9k"),
        ("{18.9 * kib * one.asked :b}", "18.9 KiB"),
        ("{one.iops :0} {one.in_flight :1}", "15800 1.0"),
        ("a {{brace}}", "a {brace}"),
        # one unknown figure leaves no text
        ("{one.iops} and {two.iops}", None),
        ("{one.iops / 0}", None),
    ],
)
def test_figures_stand_in_their_unit(template: str, wanted: str | None) -> None:
    assert text(template) == wanted


@pytest.mark.parametrize(
    ("value", "form", "wanted"),
    [
        (True, "", "yes"), (False, "", "no"), ("a\x1b", "", "a?"), (0.0995, "%", "10 %"),
        (0.0994, "%", "9.9 %"), (0.001, "%", "0.1 %"), (0.0009, "%", "0.09 %"), (0.0, "%", "0.0 %"),
        (9.95, "pct", "10 %"), (-0.5, "+%", "-50 %"), (0.5, "+%", "+50 %"), (9.94, "pct", "9.9 %"),
        (999.0, "", "999"), (1000.0, "", "1.00k"), (99.95, "", "100"), (99.94, "", "99.9"),
        (9.995, "", "10.0"), (9.99, "", "9.99"), (0.5, "", "0.50"), (-7.0, "", "-7"),
        (1.26, "1", "1.3"), (1.26, "0", "1"), (2.0, "x", "2 times"), (1024.0, "b/s", "1 KiB/s"),
    ],
)  # fmt: skip
def test_a_value_in_its_form(value: Value, form: str, wanted: str) -> None:
    assert format_value(value, form) == wanted


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ("otherwise: x", '"otherwise:" needs a paragraph with "when" right before it'),
        ("x\n\notherwise: y", '"otherwise:" needs a paragraph with "when" right before it'),
        ("when true:", "a condition without a text after it"),
        ("0123456789012345678901234 { 0123456789012345678901234",
         "a brace without its partner in '6789012345678901234 { 012345678901234567'"),
        ("{a :z}", "{a :z}: the form 'z' is not one of n, t, b, b/s, x, %, +%, pct, 1, 0"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_paragraph(block: str, says: str) -> None:
    with pytest.raises(FormulaError) as caught:
        parse_paragraphs(block)
    assert str(caught.value) == says


@given(st.text(alphabet=st.sampled_from("{}a.b:x% ")))
def test_any_text_is_a_template_or_refused(template: str) -> None:
    try:
        parse_template(template).fill(KNOWN.get, unit_of)
    except FormulaError:
        return


@given(st.sampled_from(sorted(FORMS)), st.floats(-1e15, 1e15))
def test_every_form_shows_every_number(form: str, value: float) -> None:
    assert format_value(value, form).isprintable()


def test_foreign_words_reach_no_terminal_raw() -> None:
    assert format_value("a\x1b[2J\nb", "") == "a?[2J b"


def said(block: str) -> list[str]:
    return [one.text for one in visible_paragraphs(parse_paragraphs(block), KNOWN.get, unit_of)[0]]


CASES = """
when one.iops > 10 * k: many,
in two lines

when one.iops <= 10 * k: few

otherwise: neither

always
"""


def test_conditions_choose_paragraphs() -> None:
    assert said(CASES) == ["many, in two lines", "always"]
    assert said(CASES.replace("10 * k", "20 * k")) == ["few", "always"]
    assert said(CASES.replace("> 10 * k", "> 90 * k").replace("<= 10 * k", "< 1")) == [
        "neither",
        "always",
    ]


def test_otherwise_is_not_said_of_what_is_unknown() -> None:
    found, missing = visible_paragraphs(
        parse_paragraphs("when two.iops > 1: more\n\notherwise: less\n\nthe end"),
        KNOWN.get,
        unit_of,
    )
    assert [one.text for one in found] == ["the end"]
    assert missing == {"two.iops"}


def test_otherwise_belongs_to_the_conditions_right_before_it() -> None:
    block = "when true: a\n\nb\n\nwhen false: c\n\notherwise: d\n\nwhen true: e\n\notherwise: f"
    assert said(block) == ["a", "b", "d", "e"]


def test_a_paragraph_that_keeps_its_lines() -> None:
    (one,) = visible_paragraphs(parse_paragraphs("| a  b\n|   c {one.iops}"), KNOWN.get, unit_of)[0]
    assert one.kept and one.text == "a  b\n  c 15.8k"


@pytest.mark.parametrize("block", ["otherwise: x", "a\n\notherwise: x", "when a.b:", "when : x"])
def test_conditions_that_are_none(block: str) -> None:
    if block == "when : x":
        assert said(block) == ["when : x"]  # plain words
        return
    with pytest.raises(FormulaError):
        parse_paragraphs(block)
