"""What is told about columns, one note for each topic: a sentence that names the columns, values and counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from foldwise.data.column_dates import DateFormat
from foldwise.data.column_text import NumberFormat, WordFormat
from foldwise.data.notes import Note
from foldwise.prepare import column_names
from foldwise.prepare.duplicates import Pair
from foldwise.prepare.sentinels import Sentinel

if TYPE_CHECKING:
    from foldwise.prepare.kinds import Decision, Facts

MOSTLY = 0.5  # the share of missing cells from which a column is mostly missing
_MOST_NAMED = 12
_ALIKE = 0.8


def notes(
    facts: Sequence[Facts],
    decisions: Sequence[Decision],
    sentinels: Sequence[tuple[Sentinel, ...]],
    pairs: Sequence[Pair],
    *,
    decimal: str,
    stored: bool,
    commas: bool = False,
) -> tuple[Note, ...]:
    """The notes about the columns of a table; `stored`: it keeps types, so that numbers as text are worth a word.

    `commas`: cells are separated by commas, so that one within a cell hardly is a decimal mark.
    """
    both = list(zip(facts, decisions, strict=True))
    made = [
        _note("decimal-comma", "the decimal mark is a comma" if decimal == "," else ""),
        _listed("missing-tokens", "read as missing: {}", [_tokens(one) for one in facts]),
        _listed(
            "token-may-be-a-level",
            "may be a value of its own: {}",
            [text for one, d in both for text in _levels(one, d)],
        ),
        _listed(
            "sentinel",
            "may stand for missing: {}",
            [_sentinel(d.name, found) for d, found in zip(decisions, sentinels, strict=True)],
        ),
        _listed("infinite", "infinite numbers, which models refuse: {}", [_infinite(d) for d in decisions]),
        _listed(
            "mixed-units",
            "several units in a column, so that it is not taken for numbers: {}",
            [_units(one) for one in facts],
        ),
        _listed("mixed-types", "{}", [_mixed(one, d, stored) for one, d in both]),
        _names("identifier", "identifiers, which are no measurements: {}", decisions, lambda d: d.kind == "identifier"),
        _listed("integer-codes", "whole numbers that seem to be codes: {}", [_codes(one, d) for one, d in both]),
        _listed("leading-zeros", "digits with zeros in front, so no numbers: {}", [_zeros(one, d) for one, d in both]),
        _names("constant", "one value in all rows: {}", decisions, lambda d: d.kind == "constant"),
        _names("empty-column", "no value in any row: {}", decisions, lambda d: d.kind == "empty"),
        _listed("mostly-missing", "mostly missing: {}", [_sparse(d) for d in decisions]),
        _listed(
            "near-duplicate",
            "say the same: {}",
            [f"{decisions[p.first].name} and {decisions[p.second].name} ({p.how})" for p in pairs],
        ),
        _listed(
            "ambiguous-dates", "day and month could be the other way round: {}", [_ambiguous(one, d) for one, d in both]
        ),
        _listed(
            "ambiguous-numbers",
            "the mark may be the decimal one or stand between thousands (decimal='.' or decimal=',' says which): {}",
            [] if commas else [_ambiguous_number(one, d) for one, d in both],
        ),
        _names("nested", "lists or objects, left out: {}", decisions, lambda d: d.kind == "nested"),
        _names("left-out", "not used as numbers unless asked for: {}", decisions, lambda d: d.kind in ("date", "text")),
    ]
    return tuple(note for note in made if note is not None)


def _note(topic: str, text: str) -> Note | None:
    return Note(topic, text) if text else None


def _listed(topic: str, text: str, items: Sequence[str]) -> Note | None:
    named = [item for item in items if item]
    if not named:
        return None
    shown = "; ".join(named[:_MOST_NAMED]) if any("," in item for item in named) else ", ".join(named[:_MOST_NAMED])
    more = f" and {len(named) - _MOST_NAMED:,} more columns" if len(named) > _MOST_NAMED else ""
    return Note(topic, text.format(shown + more))


def _names(topic: str, text: str, decisions: Sequence[Decision], which: Callable[[Decision], bool]) -> Note | None:
    return _listed(topic, text, [d.name for d in decisions if which(d)])


def _counts(counts: dict[str, int], most: int = 6) -> str:
    items = [f"{word!r} {n:,}" if n > 1 else f"{word!r}" for word, n in list(counts.items())[:most]]
    return ", ".join(items) + (", ..." if len(counts) > most else "")


def _tokens(facts: Facts) -> str:
    return f"{facts.name} ({_counts(facts.text.tokens)})" if facts.text is not None and facts.text.tokens else ""


def _levels(facts: Facts, decision: Decision) -> list[str]:
    """Tokens that look like the levels beside them, and "none" where it was kept."""
    if (
        facts.text is None
        or not isinstance(facts.text.format, WordFormat)
        or decision.kind not in ("category", "boolean")
    ):
        return []
    levels = [level for level, _ in facts.profile.levels if level.lower() != "none"]
    told = [
        f"{token!r} of {facts.name} ({n:,} cells, read as missing)"
        for token, n in facts.text.tokens.items()
        if token.isalpha()
        and levels
        and sum(_shape(level) == _shape(token) for level in levels) >= _ALIKE * len(levels)
    ]
    kept = [
        f"{level!r} of {facts.name} ({n:,} cells, kept)" for level, n in facts.profile.levels if level.lower() == "none"
    ]
    return [*told, *(kept if levels else [])]


def _shape(word: str) -> tuple[int, bool, bool]:
    return len(word), word.isupper(), word.isalpha()


def _sentinel(name: str, found: Sequence[Sentinel]) -> str:
    return f"{', '.join(f'{one.value} of {name} ({one.count:,} cells)' for one in found)}" if found else ""


def _infinite(decision: Decision) -> str:
    count = decision.profile.infinite
    return f"{decision.name} ({count:,} {'cell' if count == 1 else 'cells'})" if count else ""


def _units(facts: Facts) -> str:
    return f"{facts.name} ({', '.join(facts.text.units)})" if facts.text is not None and facts.text.units else ""


def _mixed(facts: Facts, decision: Decision, stored: bool) -> str:
    if facts.text is None:
        return ""
    if facts.text.words:
        what = "numbers" if isinstance(facts.text.format, NumberFormat) else "dates"
        return f"{facts.name} has words among {what}, read as missing: {_counts(facts.text.words)}"
    if stored and decision.kind == "number":
        return f"{facts.name} has numbers stored as text"
    return ""


def _codes(facts: Facts, decision: Decision) -> str:
    digits = facts.profile.holds == "numbers" and facts.profile.whole
    if not digits or decision.kind not in ("number", "category") or not column_names.says_code(decision.name):
        return ""
    return decision.name if decision.kind == "category" else f"{decision.name} (kept as numbers)"


def _zeros(facts: Facts, decision: Decision) -> str:
    return (
        f"{decision.name} ({facts.text.leading_zeros:,} cells)"
        if facts.text is not None and facts.text.leading_zeros
        else ""
    )


def _sparse(decision: Decision) -> str:
    share = decision.profile.missing_share
    return (
        f"{decision.name} ({100 * share:.0f} %)" if share >= MOSTLY and decision.kind not in ("empty", "nested") else ""
    )


def _ambiguous_number(facts: Facts, decision: Decision) -> str:
    text = facts.text
    if text is None or not text.ambiguous or not isinstance(text.format, NumberFormat) or decision.kind != "number":
        return ""
    value = text.format.parse(text.ambiguous)
    return f"{decision.name} ({text.ambiguous!r} was taken for {value:.15g})"


def _ambiguous(facts: Facts, decision: Decision) -> str:
    form = facts.text.format if facts.text is not None else None
    if not isinstance(form, DateFormat) or not form.ambiguous or decision.kind != "date":
        return ""
    first = "month" if form.pattern.index("%m") < form.pattern.index("%d") else "day"
    return f"{decision.name} (the {first} was taken to come first)"
