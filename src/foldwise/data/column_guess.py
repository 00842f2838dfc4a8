"""How a column of numbers is written, guessed from some of its cells; the query that follows tests the guess on all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from foldwise.data.column_text import BLANKS, CURRENCIES, SYMBOLS, TOKENS, BooleanFormat, MisfitError, NumberFormat

PAIRS = (
    ("yes", "no"),
    ("true", "false"),
    ("y", "n"),
    ("t", "f"),
    ("on", "off"),
    ("ja", "nein"),
    ("oui", "non"),
    ("si", "no"),
)
FEW = 10  # different words among numbers that are still taken for remarks
FEW_SHARE = 0.1  # and the share of cells that they may take

_SIGN = "[+\u2212\u2013-]?"
_PREFIX = rf"(?:[A-Z]{{0,3}}[{SYMBOLS}]|{'|'.join(map(re.escape, CURRENCIES[len(SYMBOLS) :]))})"
_UNIT = rf"[A-Za-zÀ-ÿ°º%‰µμΩ{SYMBOLS}][A-Za-zÀ-ÿ°%‰µμΩ/²³·^.\- ]{{0,14}}[23]?"
_DIGITS = r"(?:[0-9](?:[0-9.,'\u2019_ \u00a0\u202f\u2007\u2009]*[0-9.,])?|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?"
_LOOSE = re.compile(
    rf"(?P<open>\()?\s*{_SIGN}\s*(?P<prefix>{_PREFIX})?\s*{_SIGN}\s*(?P<digits>{_DIGITS})\s*(?P<suffix>{_UNIT})?\s*(?P<close>\))?"
)
_NO_UNITS = {"st", "nd", "rd", "th", "am", "pm", "a.m.", "p.m."}

NO_UNIT = "no unit"  # beside units, for cells that have none

Mark = Literal[",", ".", None]


@dataclass(frozen=True)
class Guess:
    """What the cells of a column show: a format but for the decimal mark, which the file may have to decide.

    `decimal` is the mark that the cells prove. `points` and `commas` tell whether there are such marks that could be either.
    """

    prefix: str = ""
    suffix: str = ""
    parentheses: bool = False
    spaces: str = ""  # thousands mark that is neither point nor comma
    decimal: Mark = None
    points: bool = False
    commas: bool = False
    units: tuple[str, ...] = ()  # all that occur, if there are several

    @property
    def unit(self) -> str:
        """The suffix, unless that is a currency: without it, a number may mean something else."""
        return "" if self.suffix in CURRENCIES else self.suffix

    def format(self, file_decimal: str, missing: tuple[str, ...] = TOKENS, *, given: bool = False) -> NumberFormat:
        """The format, where the decimal mark of the file decides what the cells leave open, or all if it was `given`."""
        decimal = (not given and self.decimal) or (file_decimal if self.points or self.commas else ".")
        other = "." if decimal == "," else ","
        grouped = self.points if other == "." else self.commas
        thousands = self.spaces or (other if grouped else "")
        return NumberFormat(decimal, thousands, self.prefix, self.suffix, self.parentheses, missing)


def guess_number(cells: Iterable[tuple[str, int]], numbers: int) -> Guess | None:
    """What these cells (with their counts), none of them a plain number or missing, show beside so many plain numbers.

    None if they are no numbers.

    >>> guess_number([("$1,234.50", 1), ("-$5", 2)], 0)
    Guess(prefix='$', suffix='', parentheses=False, spaces='', decimal='.', points=True, commas=True, units=())
    """
    seen = 0
    prefixes: Counter[str] = Counter()
    suffixes: Counter[str] = Counter()
    proofs: Counter[str] = Counter()
    spaces, parentheses, points, commas, total, lacking = "", False, False, False, numbers, False
    for cell, count in cells:
        total += count
        found = _LOOSE.fullmatch(cell.strip(BLANKS))
        if found is None or bool(found["open"]) != bool(found["close"]):
            continue
        digits = found["digits"]
        if re.match(r"0[0-9]", digits):  # a code
            continue
        seen += count
        prefixes[found["prefix"] or ""] += count
        suffix = (found["suffix"] or "").strip()
        suffixes[suffix] += count
        lacking = lacking or (not suffix and re.search("[1-9]", digits) is not None)
        parentheses = parentheses or bool(found["open"])
        if gap := re.search(r"[0-9]([ '\u2019\u00a0\u202f\u2007\u2009])[0-9]", digits):
            spaces = "'" if gap.group(1) in "'\u2019" else " "
        proof = _decimal_mark(digits)
        if proof is not None:
            proofs[proof] += count
        points, commas = points or "." in digits, commas or "," in digits
    if not seen or seen + numbers < (1 - FEW_SHARE) * total:
        return None
    units = tuple(unit for both in (prefixes, suffixes) for unit, _ in both.most_common() if unit)
    if any(unit.lower() in _NO_UNITS for unit in units):
        return None
    prefix, suffix = (next((unit for unit, _ in both.most_common() if unit), "") for both in (prefixes, suffixes))
    several = len([unit for unit in prefixes if unit]) > 1 or len([unit for unit in suffixes if unit]) > 1
    decimal: Mark = None
    if proofs:
        decimal = "," if proofs[","] > proofs["."] else "."
    guess = Guess(prefix, suffix, parentheses, spaces, decimal, points, commas, units if several else ())
    return replace(guess, units=(*units, NO_UNIT)) if lacking and guess.unit else guess


def _decimal_mark(digits: str) -> Mark:
    """The decimal mark that the digits prove; None if they have none, or one that may stand between thousands.

    >>> [_decimal_mark(text) for text in ("1.234,5", "12,5", "0,125", "1,234", "1,234,567", "12.345", "1,234e5")]
    [',', ',', ',', None, '.', None, ',']
    """
    last = max(digits.rfind("."), digits.rfind(","))
    if last < 0:
        return None
    mark, other = digits[last], "." if digits[last] == "," else ","
    whole, part = digits[:last], re.match(r"[0-9]*", digits[last + 1 :])
    assert part is not None
    if mark in whole:  # more than once: between thousands
        return "," if mark == "." else "."
    exponent = last + 1 + part.end() < len(digits)  # which follows no thousands
    if exponent or other in whole or len(part.group()) != 3 or whole in ("", "0") or _count_digits(whole) > 3:
        return "," if mark == "," else "."
    return None


def _count_digits(text: str) -> int:
    return len(re.sub(r"[^0-9]", "", text))


def file_decimal(guesses: Iterable[Guess]) -> str:
    """The decimal mark of a file, by what its columns prove; a point if they prove nothing."""
    proofs = Counter(guess.decimal for guess in guesses if guess.decimal is not None)
    return "," if proofs[","] > proofs["."] else "."


def guess_boolean(words: Iterable[str], missing: tuple[str, ...] = TOKENS) -> BooleanFormat | None:
    """The pair of yes and no to which all these words belong, if both occur.

    >>> guess_boolean(["Y", "N", "?"], ("?",))
    BooleanFormat(yes='y', no='n', missing=('?',))
    """
    low = {word.strip(BLANKS).lower() for word in words if word.strip(BLANKS) not in ("", *missing)}
    pair = next(((yes, no) for yes, no in PAIRS if low == {yes, no}), None)
    return None if pair is None else BooleanFormat(*pair, missing=missing)


def fitting(form: NumberFormat, cells: Iterable[str]) -> tuple[list[str], list[str]]:
    """The cells that the format reads, and those that it does not."""
    good: list[str] = []
    bad: list[str] = []
    for cell in cells:
        try:
            form.parse(cell)
            good.append(cell)
        except MisfitError:
            bad.append(cell)
    return good, bad


def with_words(form: NumberFormat, words: Iterable[str]) -> NumberFormat:
    """The format in which these words, too, are missing cells."""
    return replace(form, words=tuple(dict.fromkeys((*form.words, *(word.strip(BLANKS) for word in words)))))
