"""What the name of a column says about it."""

from __future__ import annotations

import re

_IDENTIFIERS = {
    "id",
    "ids",
    "uid",
    "uuid",
    "guid",
    "key",
    "pk",
    "index",
    "idx",
    "row",
    "rowid",
    "rowname",
    "rownames",
    "rownum",
}
_ENDS = {"id", "uuid", "guid", "key", "no", "nr", "num", "number", "nummer", "serial", "sku", "iban", "isbn", "ssn"}
_PHONES = {"phone", "tel", "telephone", "telefon", "mobile", "fax"}
_NAMES = {"name", "names", "title", "label", "model"}
_CODES = {
    "code",
    "codes",
    "zip",
    "zipcode",
    "postcode",
    "postal",
    "plz",
    "class",
    "klass",
    "pclass",
    "type",
    "category",
    "group",
}
_CODES |= {"cluster", "segment", "fips", "label", "stratum", "species"}
_YEARS = {
    "year",
    "years",
    "yr",
    "jahr",
    "annee",
    "année",
    "ano",
    "año",
    "anno",
    "date",
    "day",
    "month",
    "time",
    "week",
    "quarter",
}
_DAYS = {"date", "day", "days", "datum", "fecha", "ymd", "yyyymmdd"}
_REMARKS = {
    "comment",
    "comments",
    "remark",
    "remarks",
    "note",
    "notes",
    "description",
    "text",
    "message",
    "review",
    "abstract",
}


def parts(name: str) -> list[str]:
    """The words of a name, in small letters.

    >>> parts("customerID"), parts("Sample Number"), parts("zip_code")
    (['customer', 'id'], ['sample', 'number'], ['zip', 'code'])
    """
    spaced = re.sub(r"(?<=[a-zà-ÿ])(?=[A-Z])", " ", name)
    return [part.lower() for part in re.split(r"[^A-Za-zÀ-ÿ0-9]+", spaced) if part]


def says_identifier(name: str) -> bool:
    """Whether a name says that the column names its rows: id, customer_no, row, key.

    >>> [says_identifier(name) for name in ("id", "customer_no", "orderID", "number", "no", "paid")]
    [True, True, True, False, False, False]
    """
    words = parts(name)
    if not words:
        return False
    alone = len(words) == 1 and (words[0] in _IDENTIFIERS or words[0] in _PHONES)
    return alone or (len(words) > 1 and (words[-1] in _ENDS or words[-1] in _PHONES))


def says_name(name: str) -> bool:
    """Whether a name says that the column has the names of things."""
    words = parts(name)
    return bool(words) and (words[-1] in _NAMES or says_identifier(name))


def says_code(name: str) -> bool:
    """Whether a name says that whole numbers are codes: zip, region_code, class, customer_id.

    >>> [says_code(name) for name in ("zip", "region_code", "pclass", "cylinders", "type")]
    [True, True, True, False, True]
    """
    words = parts(name)
    return bool(words) and (words[-1] in _CODES or words[0] in ("zip", "plz", "postcode") or says_identifier(name))


def says_time(name: str) -> bool:
    """Whether a name says that running numbers are years or the like, which are quantities."""
    return any(word in _YEARS for word in parts(name))


def says_day(name: str) -> bool:
    """Whether a name says that whole numbers such as 20240131 are days.

    >>> [says_day(name) for name in ("order_date", "Datum", "update", "amount")]
    [True, True, False, False]
    """
    return any(word in _DAYS for word in parts(name))


def says_remarks(name: str) -> bool:
    """Whether a name says that cells are free text."""
    words = parts(name)
    return bool(words) and words[-1] in _REMARKS
