import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.files.build import fields

from paimon_py.codec.binary_row import decode
from paimon_py.errors import OptionError
from paimon_py.files.stats import StatsMode, parse_mode, stats_of, truncate_bytes, truncate_text, value_modes
from paimon_py.formats.base import ColumnBounds
from paimon_py.spec.data_file import EMPTY_STATS
from paimon_py.spec.type_text import parse_type

COLUMNS = fields((0, "a", "INT"), (1, "b", "STRING"), (2, "c", "STRING"))
SHORT = StatsMode("truncate", 16)


def test_the_default_keeps_sixteen_characters_of_every_column():
    assert value_modes({}, COLUMNS, 0) == (SHORT, SHORT, SHORT)


def test_a_columns_own_mode_beats_the_first_n_columns_and_the_level():
    options = {
        "metadata.stats-mode": "full",
        "metadata.stats-mode.per.level": "0:counts,5:none",
        "metadata.stats-keep-first-n-columns": "1",
        "fields.c.stats-mode": "TRUNCATE(4)",
    }
    own, nothing = StatsMode("truncate", 4), StatsMode("none")
    assert value_modes(options, COLUMNS, 0) == (StatsMode("counts"), nothing, own)
    assert value_modes(options, COLUMNS, 1) == (StatsMode("full"), nothing, own)
    assert value_modes(options, COLUMNS, 5) == (nothing, nothing, own)


@pytest.mark.parametrize("text", ["some", "truncate(0)", "truncate(-1)", "truncate()", ""])
def test_a_bad_mode_is_refused_with_its_option(text):
    with pytest.raises(OptionError, match="metadata.stats-mode"):
        parse_mode(text, "metadata.stats-mode")


@pytest.mark.parametrize(
    ("value", "length", "bounds"),
    [
        ("hello world this is long", 16, ("hello world this", "hello world thit")),
        ("short", 16, ("short", "short")),
        ("ab\U0010ffff\U0010ffffx", 4, ("ab\U0010ffff\U0010ffff", "ac")),
        ("\U0010ffff" * 3, 2, None),
        ("z\ud7ff\ud7ff", 2, ("z\ud7ff", "z\ue000")),
        ("中文字", 2, ("中文", "中斈")),
    ],
)
def test_text_bounds_are_cut_by_code_points_and_step_over_surrogates(value, length, bounds):
    assert truncate_text(value, value, length) == bounds


def test_byte_bounds_are_cut_by_bytes():
    assert truncate_bytes(b"\x01\x02\x03", b"\x01\xff\x03", 2) == (b"\x01\x02", b"\x02")
    assert truncate_bytes(b"\xff", b"\xff\xff\xff", 2) is None
    assert truncate_bytes(b"a", b"a", 2) == (b"a", b"a")


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.integers(1, 5),
)
def test_cut_bounds_are_never_narrower_than_the_values(one, other, length):
    low, high = sorted([one, other], key=str.encode)
    cut = truncate_text(low, high, length)
    if cut is not None:
        assert cut[0].encode() <= low.encode() and high.encode() <= cut[1].encode()
        assert len(cut[0]) <= length and len(cut[1]) <= length


def test_statistics_have_a_slot_for_every_column():
    types = [parse_type(text) for text in ("INT", "STRING", "ARRAY<INT>", "STRING", "STRING")]
    long = pa.array(["x" * 20] * 2)
    bounds = [
        ColumnBounds(pa.array([-1, 7], pa.int32()), 2),
        ColumnBounds(long, 0),
        ColumnBounds(null_count=None),
        ColumnBounds(long, 3),
        ColumnBounds(long, 4),
    ]
    modes = [SHORT, SHORT, SHORT, StatsMode("counts"), StatsMode("none")]
    stats = stats_of(bounds, types, modes)
    decoded = decode([stats.min_values, stats.max_values], types)
    assert [column.to_pylist() for column in decoded] == [
        [-1, 7],
        ["x" * 16, "x" * 15 + "y"],
        [None, None],
        [None, None],
        [None, None],
    ]
    assert stats.null_counts == (2, 0, None, 3, None)


def test_without_columns_there_are_empty_statistics():
    assert stats_of([], [], []) == EMPTY_STATS
