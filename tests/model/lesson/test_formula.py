"""The small language of lessons: what it can say, what it refuses, what it does with unknowns."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iopstui.features.lessons.model.formula import FormulaError, Value, parse_formula

FIGURES: dict[str, Value] = {
    "one.iops": 100.0, "deep.iops": 400.0, "zero.iops": 0.0, "device.name": "vda",
    "device.rotational": False, "lat": 2.5e6,
}  # fmt: skip


def value(text: str) -> Value | None:
    return parse_formula(text).value(FIGURES.get)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1 + 2 * 3", 7.0),
        ("-(2 - 5) / 2", 1.5),
        ("deep.iops / one.iops", 4.0),
        ("deep.iops > 3 * one.iops", True),
        ("1 < deep.iops / one.iops <= 4", True),
        ("lat > 2 * ms and lat < 3*ms", True),
        ("device.name == 'vda'", True),
        ("device.name != 'sda'", True),
        ("not device.rotational", True),
        ("device.rotational == false", True),
        ("abs(one.iops - deep.iops)", 300.0),
        ("max(1, one.iops, 7) - min(3, 4)", 97.0),
        ("known(one.iops) and not known(two.iops)", True),
        ("128 * kib == 131072", True),
        ("k", 1000.0),
        ("mib", 1048576.0),
        ("gib", 1073741824.0),
        ("ns", 1.0),
        ("us", 1000.0),
        ("ms", 1000000.0),
        ("s", 1000000000.0),
        ("true", True),
        ("false", False),
        ("+one.iops", 100.0),
        ("2 <= 2", True),
        ("2 >= 2", True),
        ("2 < 2", False),
        ("2 > 2", False),
        ("2 != 2", False),
        # what is unknown decides nothing, unless the rest does
        ("two.iops", None),
        ("two.iops + 1 > 0", None),
        ("two.iops > 1 or one.iops > 1", True),
        ("two.iops > 1 and one.iops < 1", False),
        ("two.iops > 1 and one.iops > 1", None),
        ("two.iops > 1 or one.iops < 1", None),
        ("5 < 3 < two.iops", False),
        ("3 < 5 < two.iops", None),
        ("not two.iops", None),
        ("max(1, two.iops)", None),
        # nothing that could be taken for a figure
        ("one.iops / zero.iops", None),
        ("1e308 * 10", None),
        ("device.name + 1", None),
        ("device.name < 3", None),
        ("device.name == 3", False),
        ("device.rotational == 0", False),
        ("one.iops and true", None),
    ],
)
def test_it_says_what_it_means(text: str, wanted: Value | None) -> None:
    found = value(text)
    assert found == wanted and type(found) is type(wanted)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("1 +", "not a formula"),
        ("a = 1", "equal is written =="),
        ("a ** 9", "a formula has"),
        ("9 // 2", "a formula has"),
        ("a % 2", "a formula has"),
        ("a if b else c", "a formula has"),
        ("[1][0]", "a formula has"),
        ("lambda: 1", "a formula has"),
        ("f'{a}'", "a formula has"),
        ("a is b", "compare with"),
        ("a in b", "compare with"),
        ("abs", "arguments"),
        ("open('x')", "the functions are"),
        ("a.b.c()", "the functions are"),
        ("__import__('os').system('x')", "the functions are"),
        ("(1).real", "only names"),
        ("min(1)", "two values"),
        ("abs(1, 2)", "one value"),
        ("max(*a)", "plain values"),
        ("abs(x=1)", "plain values"),
        ("1j", "neither a number"),
        ("b'x'", "neither a number"),
        ("...", "neither a number"),
        ("9" * 400, "too large"),
        ("1" + " + 1" * 200, "longer than"),
        ("\0", "not a formula"),
        ("a.await > 1", "not a formula"),
    ],
)
def test_what_it_refuses(text: str, words: str) -> None:
    with pytest.raises(FormulaError, match=words):
        parse_formula(text)


@given(st.text(max_size=600))
def test_any_text_is_a_formula_or_is_refused(text: str) -> None:
    try:
        formula = parse_formula(text)
    except FormulaError:
        return
    formula.value(lambda name: None)


names = st.sampled_from(["a", "b.c", "d.e.f"])
numbers = st.floats(0, 1e300).map(lambda x: f"{x!r}")
terms = st.recursive(
    names | numbers,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda t: f"({' '.join(t)})"),
        st.tuples(inner, st.sampled_from(["<", "<=", "==", "!="]), inner).map(
            lambda t: f"({' '.join(t)})"
        ),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({' '.join(t)})"),
        inner.map(lambda t: f"(not {t})"),
        inner.map(lambda t: f"abs({t})"),
    ),
    max_leaves=8,
)
values = st.none() | st.booleans() | st.floats() | st.text(max_size=3)


@given(terms, st.tuples(values, values, values))
def test_it_never_fails_and_never_gives_what_is_no_number(
    text: str, figures: tuple[Value | None, ...]
) -> None:
    try:
        formula = parse_formula(text)
    except FormulaError:
        assert len(text) > 400
        return
    known = dict(zip(("a", "b.c", "d.e.f"), figures, strict=True))
    found = formula.value(known.get)
    assert found is None or isinstance(found, (bool, str)) or math.isfinite(found)
    assert formula.names <= known.keys()
    assert formula.as_boolean(known.get) in (True, False, None)


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_arithmetic_is_python_s(a: float, b: float) -> None:
    known = {"a": a, "b": b}
    assert parse_formula("a + b * a - b").value(known.get) == a + b * a - b
    assert parse_formula("a < b").value(known.get) is (a < b)
    if abs(b) > 1e-200:
        assert parse_formula("a / b").value(known.get) == pytest.approx(a / b)
