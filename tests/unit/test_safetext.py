"""Whatever a node says, a screen gets printable, bounded lines."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine.safetext import LINE_LIMIT, MARKS_LIMIT, safe, safe_lines

ANYTHING = st.text(st.characters(), max_size=200)  # lone surrogates and unassigned code points included


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain text, as it was", "plain text, as it was"),
        ("naïve 测试 Größe", "naïve 测试 Größe"),
        ("a\x1b[31mred\x1b[0m", r"a\x1b[31mred\x1b[0m"),
        ("\x1b]52;c;Y3VybA==\x07", r"\x1b]52;c;Y3VybA==\x07"),
        ("\x9b31m\x85\x7f\x00", r"\x9b31m\x85\x7f\x00"),
        ("two\nlines\r", r"two\nlines\r"),
        ("a\tb\u00a0c\u3000d", "a b c d"),
        ("user\u202egnp.exe", r"user\u202egnp.exe"),
        ("\u2066\u2069\u200e\u200f\u061c", r"\u2066\u2069\u200e\u200f\u061c"),
        ("a\u200bb\ufeffc\u00add", r"a\u200bb\ufeffc\xadd"),
        ("\U000e0041\ufe0f\u3164\u2800", r"\U000e0041\ufe0f\u3164\u2800"),
        ("\u2028\u2029", r"\u2028\u2029"),
        ("\ud800 \ue000 \U0010ffff", r"\ud800 \ue000 \U0010ffff"),
        ("[bold red]not markup[/]", "[bold red]not markup[/]"),
    ],
)
def test_what_could_act_on_a_terminal_is_shown_not_done(raw: str, shown: str) -> None:
    assert safe(raw) == shown


def test_a_flood_of_combining_marks_is_bounded_and_counted() -> None:
    shown = safe("Z" + "\u0301" * 500 + "!")
    assert shown == "Z" + "\u0301" * MARKS_LIMIT + f"[+{500 - MARKS_LIMIT} marks]!"


def test_a_mark_without_a_letter_of_its_own_cannot_sit_on_a_neighbour() -> None:
    assert safe("\u0301x") == r"\u0301x"
    assert safe("a \u0301") == r"a \u0301"


def test_a_long_line_is_cut_and_the_cut_is_counted() -> None:
    shown = safe("x" * 1_000_000)
    assert len(shown) <= LINE_LIMIT
    head, _, note = shown.partition("…")
    assert note == f" [+{1_000_000 - len(head)} characters]"


def test_a_cut_never_goes_through_an_escape() -> None:
    shown = safe("\u202e" * 5_000, limit=100)
    assert shown.partition("…")[0].replace(r"\u202e", "") == ""


def test_a_block_keeps_its_lines_and_its_columns() -> None:
    assert safe_lines("\tGPU0\tGPU1\r\nGPU0\t X \tNV18\r\n") == [
        "        GPU0    GPU1",
        "GPU0     X      NV18",
    ]
    assert safe_lines("a\n\nb") == ["a", "", "b"]
    assert safe_lines("") == []


def test_a_block_of_too_many_lines_says_how_many_are_not_shown() -> None:
    assert safe_lines("x\n" * 10, most=3) == ["x", "x", "x", "… [+7 lines]"]
    assert safe_lines("x\n" * 3, most=3) == ["x", "x", "x"]
    assert safe_lines("x\n" * 5, most=3, ascii_only=True)[-1] == "... [+2 lines]"


@given(ANYTHING, st.booleans(), st.integers(40, 120))
def test_every_text_comes_out_printable_bounded_and_stable(raw: str, ascii_only: bool, limit: int) -> None:
    shown = safe(raw, ascii_only=ascii_only, limit=limit)
    assert shown.isprintable()
    assert len(shown) <= limit
    assert not ascii_only or shown.isascii()
    assert safe(shown, ascii_only=ascii_only, limit=limit) == shown
    assert all(unicodedata.category(char)[0] != "C" for char in shown)


@given(ANYTHING)
def test_every_block_comes_out_printable(raw: str) -> None:
    for line in safe_lines(raw, most=5, limit=60):
        assert line.isprintable()
        assert len(line) <= 60


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=LINE_LIMIT))
def test_plain_text_is_left_alone(raw: str) -> None:
    assert safe(raw) == raw
