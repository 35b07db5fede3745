"""The rows of the table of ops: which, in which order, on which page, and what ticking does."""

import itertools
import math

import numpy as np
import pytest

from placement.core import formatting
from placement.costs.op_times import placed_seconds
from placement.drawing import op_rows, op_values
from tests.pages.problems import diamond, everywhere


@pytest.fixture(scope="module")
def table():
    problem = diamond()
    placement = everywhere(problem, b="cpu:1")
    device = op_values.device_indices(problem, placement)
    seconds = placed_seconds(problem, placement)
    return op_rows.columns(problem, device, seconds, {"a_conv", "a_relu"}, ["d_conv", "a_conv"])


def names(table, ops):
    return [table.name[i] for i in ops]


def test_words_of_the_filter_are_found_in_name_type_or_block(table):
    assert names(table, op_rows.matching(table, "CONV b_", "all", (), ())) == ["b_conv"]
    assert len(op_rows.matching(table, "", "all", (), ())) == 8
    assert op_rows.matching(table, "nothing like it", "all", (), ()) == []


def test_only_some_ops_are_shown(table):
    def found(shown):
        return names(table, op_rows.matching(table, "", shown, ("c_relu", "gone"), (0, 5)))

    assert found("selected") == ["c_relu"]
    assert found("visible") == [table.name[0], table.name[5]]
    assert found("path") == ["a_conv", "d_conv"]
    assert found("pinned") == ["a_conv", "a_relu"]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("by", op_rows.Columns.__annotations__)
def test_every_column_sorts_and_equal_rows_stay_in_the_order_of_the_model(table, by, descending):
    order = op_rows.ordered(table, [5, 0, 3, 7, 1, 2, 6, 4], by, descending)
    assert sorted(order) == list(range(8))
    values = [getattr(table, by)[i] for i in order]
    # Ticks come first.
    upwards = descending == (by in ("pinned", "on_path"))
    for (i, a), (j, b) in itertools.pairwise(zip(order, values, strict=True)):
        assert a <= b if upwards else a >= b
        assert a != b or i < j
    assert op_rows.ordered(table, [2, 0, 1], "", descending) == [0, 1, 2]


def test_rows_are_sorted_by_what_ops_take_on_a_device(table):
    each_s = np.array([[float(i % 3), float(-i)] for i in range(8)])
    assert op_rows.ordered(table, range(8), "on 1", False, each_s) == list(range(7, -1, -1))
    assert op_rows.ordered(table, range(8), "on 0", True, each_s) == [2, 5, 1, 4, 7, 0, 3, 6]


def test_pages_hold_all_rows_once_and_stay_within_their_number():
    for size in (0, 1, 49, 50, 51, 100, 271):
        ops = list(range(size))
        pages = [op_rows.page(ops, k) for k in range(op_rows.page(ops, 0).num_pages)]
        assert [i for page in pages for i in page.ops] == ops
        assert all(len(page.ops) <= op_rows.PAGE_ROWS for page in pages)
        assert op_rows.page(ops, 99).number == len(pages) - 1
        assert op_rows.page(ops, -3).number == 0


def test_the_page_turns_to_what_was_selected_elsewhere():
    ops = list(range(200))
    assert op_rows.page_with(ops, {120, 199}, 0) == 2
    assert op_rows.page_with(ops, {3, 120}, 0) == 0, "the page has one of them"
    assert op_rows.page_with(ops, set(), 3) == 3
    assert op_rows.page_with(ops, {999}, 1) == 1


def test_ticking_adds_and_takes_away_and_leaves_other_pages_alone():
    all_names = ("a", "b", "c", "d")
    assert op_rows.picked(all_names, ("d", "a"), [1], []) == ("a", "b", "d")
    assert op_rows.picked(all_names, ("d", "a"), [], [0]) == ("d",)
    assert op_rows.picked(all_names, (), [2, 0], []) == ("a", "c")


def test_totals_leave_out_what_cannot_run():
    assert op_rows.total(np.array([1.0, math.inf, 2.0]), [0, 1, 2]) == 3.0
    assert op_rows.total(np.array([1.0]), []) == 0.0


def test_bytes_have_three_digits_below_the_next_unit():
    assert formatting.num_bytes(1000 * 1024) == "1000 KiB"
    assert formatting.num_bytes(1023 * 1024) == "1023 KiB"
    assert formatting.num_bytes(99.96 * 1024) == "100 KiB"
    assert formatting.num_bytes(999 * 1024) == "999 KiB"
    assert formatting.num_bytes(1536) == "1.5 KiB"
