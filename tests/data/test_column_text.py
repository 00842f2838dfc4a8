"""Formats of text columns: the SQL and the Python of each read the same cells alike; what a column is written in is found."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import foldwise as fw
from foldwise.data.column_dates import DateFormat, candidates
from foldwise.data.column_text import TOKENS, BooleanFormat, MisfitError, NumberFormat, WordFormat
from foldwise.data.duckdb_sql import quoted
from foldwise.data.reading import Reading
from foldwise.data.text_columns import TextTable, read_text
from foldwise.errors import DataError


@pytest.fixture(scope="module")
def connection() -> Any:
    return duckdb.connect(config={"threads": 2})


def by_sql(connection: Any, form: Any, cells: list[str | None]) -> list[Any]:
    """The values by SQL; the word "misfit" for cells that it refuses."""
    rows = connection.execute(
        f"SELECT c, {form.misfit('c')}, CASE WHEN {form.misfit('c')} THEN NULL ELSE {form.sql('c')} END "
        "FROM (SELECT unnest($1::VARCHAR[]) AS c)",
        [cells],
    ).fetchall()
    return ["misfit" if bad else value for _, bad, value in rows]


def by_python(form: Any, cells: list[str | None]) -> list[Any]:
    found: list[Any] = []
    for cell in cells:
        try:
            found.append(form.parse(cell))
        except MisfitError:
            found.append("misfit")
    return found


def same(a: list[Any], b: list[Any]) -> bool:
    """Equal but that NaN is as good as None: a query need not look for a NaN that was not seen before."""
    return [None if x != x else x for x in a] == [None if y != y else y for y in b]


NUMBERS = [
    NumberFormat(),
    NumberFormat(thousands=","),
    NumberFormat(thousands=",", prefix="$", parentheses=True),
    NumberFormat(decimal=",", thousands="."),
    NumberFormat(decimal=",", thousands=" ", suffix="€"),
    NumberFormat(suffix="%"),
    NumberFormat(suffix="kg", words=("trace",)),
    NumberFormat(thousands="'", prefix="CHF"),
    NumberFormat(missing=(*TOKENS, "-9", "0"), seen=("NA", "nan")),
]
PIECES = [
    "1",
    "23",
    "456",
    "0",
    "7890",
    ",",
    ".",
    " ",
    "\u202f",
    "'",
    "$",
    "€",
    "%",
    "kg",
    "CHF",
    "(",
    ")",
    "-",
    "+",
    "\u2212",
    "e5",
]
PIECES += ["e-3", "NA", "trace", "nan", "_", "inf", "-9", "\u00a0", "x"]


@given(
    st.sampled_from(NUMBERS),
    st.lists(
        st.lists(st.sampled_from(PIECES), max_size=6).map("".join) | st.none() | st.sampled_from(PIECES), max_size=60
    ),
)
def test_numbers_in_sql_and_python_agree(connection: Any, form: NumberFormat, cells: list[str | None]) -> None:
    assert same(by_sql(connection, form, cells), by_python(form, cells))


@given(
    st.floats(-1e12, 1e12),
    st.sampled_from(["", ",", " ", "'"]),
    st.sampled_from(["", "$", "EUR"]),
    st.sampled_from(["", "%", "kg"]),
)
def test_what_is_written_is_read(value: float, thousands: str, prefix: str, suffix: str) -> None:
    value = round(value, 2)
    text = f"{abs(value):,.2f}".replace(",", thousands)
    text = f"{'-' if value < 0 else ''}{prefix}{text} {suffix}".strip()
    form = NumberFormat(thousands=thousands, prefix=prefix, suffix=suffix)
    assert form.parse(text) == value
    if thousands != ",":
        turned = text.replace(".", ",")
        assert NumberFormat(decimal=",", thousands=thousands, prefix=prefix, suffix=suffix).parse(turned) == value


def test_a_cell_that_does_not_fit_is_an_error_of_the_query(connection: Any) -> None:
    for form, bad in (
        (NumberFormat(), "twelve"),
        (NumberFormat(suffix="kg"), "5 lb"),
        (BooleanFormat("yes", "no"), "maybe"),
    ):
        with pytest.raises(duckdb.Error, match=bad):
            connection.execute(f"SELECT {form.sql('c')} FROM (VALUES ('{bad}')) AS t(c)").fetchall()
    with pytest.raises(duckdb.Error, match=r"31\.02\.2020"):
        connection.execute(f"SELECT {DateFormat('%d.%m.%Y').sql('c')} FROM (VALUES ('31.02.2020')) AS t(c)").fetchall()


@given(st.lists(st.sampled_from(["yes", "NO", " Yes ", "no", "NA", "-", "", "none", "x", None]), max_size=10))
def test_booleans_and_words_in_sql_and_python_agree(connection: Any, cells: list[str | None]) -> None:
    for form in (BooleanFormat("yes", "no"), WordFormat(), WordFormat(("x",))):
        assert by_sql(connection, form, cells) == by_python(form, cells)


ODD = ["1.0", "01", " 2. ", "x", "1e3", "NA", "-0"]


@given(st.lists(st.floats().map(repr) | st.integers().map(str) | st.sampled_from(ODD)))
def test_numbers_as_words_in_sql_and_python_agree(connection: Any, cells: list[str]) -> None:
    form = WordFormat(numbers=True)
    assert by_sql(connection, form, cells) == by_python(form, cells)


DATES = ["%m/%d/%Y", "%d.%m.%Y", "%d %b %Y", "%Y-%m", "%Y/%m/%d %H:%M", "%b %d, %Y", "%d-%m-%Y %I:%M:%S %p"]


@given(
    st.sampled_from(DATES),
    st.lists(st.datetimes(dt.datetime(1950, 1, 1), dt.datetime(2049, 12, 31)), min_size=1, max_size=20),
)
def test_dates_in_sql_and_python_agree(connection: Any, pattern: str, moments: list[dt.datetime]) -> None:
    form = DateFormat(pattern)
    cells = [moment.strftime(pattern) for moment in moments] + ["NA", "", "99/99/2020", None]
    found = by_sql(connection, form, cells)
    assert found == by_python(form, cells)
    assert found[0] == dt.datetime.strptime(cells[0] or "", pattern)
    assert pattern in [one.pattern for one in candidates(cell for cell in cells[: len(moments)] if cell)]


@given(
    st.lists(st.datetimes(dt.datetime(1600, 1, 1), dt.datetime(2200, 1, 1)), min_size=1, max_size=20),
    st.integers(-23, 23),
    st.sampled_from(["T", " "]),
)
def test_iso_dates_in_sql_and_python_agree(
    connection: Any, moments: list[dt.datetime], hours: int, between: str
) -> None:
    zone = dt.timezone(dt.timedelta(hours=hours))
    for zoned in (False, True):
        form = DateFormat(zoned=zoned)
        written = [moment.replace(tzinfo=zone) if zoned else moment for moment in moments]
        cells = [moment.isoformat(between) for moment in written] + ["NA", "2020-02-30", "2020-13-01T00:00:00Z", "soon"]
        found = by_sql(connection, form, cells)
        assert found == by_python(form, cells)
        whole = written[0].astimezone(dt.UTC).replace(tzinfo=None) if zoned else written[0]
        assert found[0] == whole


# Finding the format


def read(connection: Any, reading: Reading = Reading(), **columns: list[str | None]) -> TextTable:  # noqa: B008
    listed = ", ".join(f"unnest($c{j}::VARCHAR[]) AS {quoted(name)}" for j, name in enumerate(columns))
    relation = connection.sql(f"SELECT {listed}", params={f"c{j}": cells for j, cells in enumerate(columns.values())})
    return read_text(relation, [quoted(name) for name in columns], reading)


@pytest.mark.parametrize("odd", ["+5", "1_000", "true", "7 ", " 7", "7\u00a0", "\u22127", "1e3", ".5", "5.", "NA"])
def test_one_odd_cell_does_not_make_words_of_numbers(connection: Any, odd: str) -> None:
    (found,) = read(connection, x=[str(k) for k in range(40)] + [odd]).columns
    assert isinstance(found.format, NumberFormat)
    value = found.format.parse(odd)
    expected = {"+5": 5, "1_000": 1000, "true": None, "\u22127": -7, "1e3": 1000, ".5": 0.5, "5.": 5, "NA": None}.get(
        odd, 7
    )
    assert value == expected
    assert found.words == ({"true": 1} if odd == "true" else {})


def test_the_file_decides_what_a_point_before_three_digits_means(connection: Any) -> None:
    comma = read(connection, a=["1,5", "2,25", "3"], b=["1.234", "12.345", "7"])
    assert comma.decimal == ","
    assert [c.format.parse("12.345") for c in comma.columns[1:]] == [12345.0]
    point = read(connection, a=["1.5", "2.25", "3"], b=["1.234", "12.345", "7"])
    assert [c.format.parse("12.345") for c in point.columns[1:]] == [12.345]
    grouped = read(connection, a=["1,234", "12,345", "7"])
    assert grouped.columns[0].format.parse("12,345") == 12345.0
    told = read(connection, Reading(decimal=","), a=["1,234", "12,345", "7"])
    assert told.columns[0].format.parse("12,345") == 12.345


def test_two_units_are_no_numbers(connection: Any) -> None:
    (found,) = read(connection, dose=["250 mg", "1 g", "500 mg", "1.5 g"]).columns
    assert isinstance(found.format, WordFormat)
    assert set(found.units) == {"mg", "g"}


@pytest.mark.parametrize(
    "cells",
    [["1st", "2nd", "3rd"], ["3 pm", "10 am"], ["A12", "B7"], ["1.2.3", "1.2.4"], ["007", "012"], ["12:30", "9:15"]],
)
def test_no_numbers(connection: Any, cells: list[str | None]) -> None:
    (found,) = read(connection, x=cells * 5).columns
    assert isinstance(found.format, WordFormat)
    assert not found.units


def test_day_and_month_are_told_apart_by_the_whole_column(connection: Any) -> None:
    us, british, vague = read(
        connection, us=["1/2/2020", "1/13/2020"], uk=["01/02/2020", "13/01/2020"], vague=["01/02/2020", "03/04/2020"]
    ).columns
    assert isinstance(us.format, DateFormat)
    assert isinstance(british.format, DateFormat)
    assert isinstance(vague.format, DateFormat)
    assert (us.format.pattern, us.format.ambiguous) == ("%m/%d/%Y", False)
    assert (british.format.pattern, british.format.ambiguous) == ("%d/%m/%Y", False)
    assert vague.format.ambiguous


def test_words_of_the_user_are_missing_too(connection: Any) -> None:
    (numbers, words) = read(
        connection,
        Reading(missing_values=("-9", "unknown", "none")),
        x=["1", "2", "-9", "NA"],
        y=["a", "none", "unknown", "NA"],
    ).columns
    assert [numbers.format.parse(cell) for cell in ("1", "-9", "NA")] == [1.0, None, None]
    assert [words.format.parse(cell) for cell in ("a", "none", "unknown", "NA")] == ["a", None, None, None]
    assert by_sql(connection, numbers.format, ["1", "-9", "NA"]) == [1.0, None, None]


def test_many_columns_are_judged_as_few_are(connection: Any) -> None:
    cells: list[list[str | None]] = [
        ["1", "NA", "2.5"],
        ["a", "b", "a"],
        ["$1", "$2,000", "-"],
        ["2020-01-01", "2020-02-02", None],
    ]
    few = read(connection, **{f"c{j}": one for j, one in enumerate(cells)})
    many = read(connection, **{f"c{j}": cells[j % 4] for j in range(120)})
    assert many.columns == few.columns * 30


def test_infinity_stays_and_nan_is_missing(connection: Any) -> None:
    seen = NumberFormat(seen=("nan",))
    assert (
        by_sql(connection, seen, ["inf", "nan", "-inf"])
        == by_python(seen, ["inf", "nan", "-inf"])
        == [math.inf, None, -math.inf]
    )


def test_a_mark_before_an_exponent_is_the_decimal_mark(connection: Any) -> None:
    relation = connection.sql("SELECT unnest(['1,374e-01', '-4,342e+05', '6,760E-01', '1,000e+00']) AS x")
    found = read_text(relation, ["x"])
    assert found.decimal == ","
    form = found.columns[0].format
    assert by_sql(connection, form, ["1,374e-01", "-4,342e+05"]) == [0.1374, -434200.0]


@pytest.mark.parametrize("token", ["NaN", "nan"])
def test_nan_is_missing_among_dates_and_words_for_yes_and_no(connection: Any, token: str) -> None:
    dates, yes, numbers = read(
        connection,
        d=["2020-01-01", token, "2020-01-03", token],
        b=["yes", token, "no", token],
        n=["1", token, "2", "x"] + ["3"] * 20,
    ).columns
    assert isinstance(dates.format, DateFormat)
    assert isinstance(yes.format, BooleanFormat)
    assert isinstance(numbers.format, NumberFormat)
    assert [one.tokens for one in (dates, yes, numbers)] == [{token: 2}, {token: 2}, {token: 1}]
    assert by_sql(connection, dates.format, [token]) == by_sql(connection, yes.format, [token]) == [None]
    assert numbers.words == {"x": 1}


def test_a_column_of_nan_is_one_of_numbers(connection: Any) -> None:
    (found,) = read(connection, x=["NaN", "nan", "NA"]).columns
    assert isinstance(found.format, NumberFormat)


def test_more_digits_than_a_double_has_are_words(connection: Any) -> None:
    accounts: list[str | None] = [f"1234567890123456789{j}" for j in range(10)]
    account, few, decimals = read(
        connection,
        account=[*accounts, "NA"],
        few=["5", "7", "12345678901234567", "8"] + ["9"] * 7,
        decimals=["0.12345678901234567890"] * 11,
    ).columns
    assert isinstance(account.format, WordFormat)
    assert account.long_digits == 10
    assert isinstance(few.format, NumberFormat)  # a number that lost digits, among others
    assert isinstance(decimals.format, NumberFormat)


def test_the_decimal_mark_of_the_user_decides(connection: Any) -> None:
    cells: dict[str, list[str | None]] = {"a": ["1,5", "2,25", "3,5"], "b": ["1.5", "2.25", "3.5"], "c": ["1,234"] * 3}
    a, b, c = read(connection, Reading(decimal="."), **cells).columns
    assert isinstance(a.format, WordFormat)
    assert [one.format.parse(cell) for one, cell in ((b, "2.25"), (c, "1,234"))] == [2.25, 1234.0]
    a, b, c = read(connection, Reading(decimal=","), **cells).columns
    assert isinstance(b.format, WordFormat)
    assert [one.format.parse(cell) for one, cell in ((a, "2,25"), (c, "1,234"))] == [2.25, 1.234]
    (late,) = read(connection, Reading(decimal=","), x=["1.234", "5", "7.5"] + ["8"] * 40).columns
    assert late.words == {"7.5": 1}
    assert by_sql(connection, late.format, ["1.234", "7.5", "8"]) == [1234.0, None, 8.0]


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"a": ["1,234", "5,678"], "b": ["5", "6"]}, {"a": "1,234"}),
        ({"a": ["1,234", "5,678"], "b": ["74.891", "74.892"]}, {"a": "1,234", "b": "74.891"}),
        ({"a": ["$1,234", "5"], "b": ["x", "y"]}, {"a": "$1,234"}),
        ({"a": ["1,234", "5,678"], "b": ["0.5", "6"]}, {}),
        ({"a": ["1,234", "5,678"], "b": ["0,5", "6"]}, {}),
        ({"a": ["1,234", "1,234,567"]}, {}),
        ({"a": ["1,234", "1,234.5"]}, {}),
        ({"a": ["1.234", "5.678"]}, {}),  # plain numbers
        ({"a": ["1 234", "5 678"]}, {}),
    ],
)
def test_a_mark_that_may_be_either_is_remembered(
    connection: Any, columns: dict[str, list[str | None]], found: dict[str, str]
) -> None:
    made = read(connection, **columns).columns
    assert {name: one.ambiguous for name, one in zip(columns, made, strict=True) if one.ambiguous} == found


def test_missing_numbers_of_the_user_are_counted(connection: Any) -> None:
    numbers, yes = read(
        connection,
        Reading(missing_values=("-9", "-99")),
        x=["-9", "7", " -9", "5", "-99"],
        y=["yes", "no", "-9", "no", ""],
    ).columns
    assert numbers.tokens == {"-9": 2, "-99": 1}
    assert by_sql(connection, numbers.format, ["-9", " -9", "7", "-99"]) == [None, None, 7.0, None]
    assert isinstance(yes.format, BooleanFormat)
    assert yes.tokens == {"-9": 1}


def test_one_cell_with_a_unit_among_plain_numbers_is_a_stray(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "".join(f"{i}.5,{i % 7}\n" for i in range(50)) + "12kg,3\n")
    source = fw.prepare(path)
    assert source.names == ("a", "b")
    assert any(note.topic == "mixed-types" and "12kg" in note.text for note in source.recipe.notes)
    with pytest.raises(DataError, match="'12kg' is not a number"):
        fw.scan(path)
