"""How sure a group is: one verdict for each, in the same words wherever it is told."""

from __future__ import annotations

from foldwise.report.explore.words import listed
from foldwise.selection.explore.result import Exploration

GOOD, BAD = ("stable", "very stable"), ("could be noise", "dissolves")
_SHORT = {"could be noise": "could be chance", "dissolves": "not found again"}  # the others are said as they are
_WHOLE = {
    "very stable": "Very stable: found again nearly unchanged when other rows are drawn.",
    "stable": "Stable: found again when other rows are drawn.",
    "doubtful": "Doubtful: not always found again when other rows are drawn.",
    "could be noise": "Could be chance: it is found again when other rows are drawn, but so would parts of one cloud be.",
    "dissolves": "Not found again when other rows are drawn.",
}


def verdict_words(verdict: str) -> str:
    """The verdict in a word or two.

    >>> verdict_words("dissolves"), verdict_words("stable"), verdict_words("")
    ('not found again', 'stable', 'not checked')
    """
    return _SHORT.get(verdict, verdict) or "not checked"


def verdict_sentence(verdict: str) -> str:
    """The verdict, and what it means."""
    return _WHOLE.get(verdict, verdict)


def by_verdict(found: Exploration) -> dict[str, list[int]]:
    """The numbers of the groups with each verdict in words, the surest first."""
    order = [*_WHOLE, ""]
    groups: dict[str, list[int]] = {}
    for one in sorted(found.summaries, key=lambda one: order.index(one.verdict) if one.verdict in order else 9):
        groups.setdefault(verdict_words(one.verdict), []).append(one.number)
    return groups


def counts_in_words(found: Exploration) -> str:
    """How many groups have each verdict, as in "3 are stable and 1 is doubtful"; "both are" if all have the same."""
    groups, k = by_verdict(found), len(found.summaries)
    if len(groups) == 1:
        words = next(iter(groups))
        return f"{'both' if k == 2 else f'all {k:,}'} {_are(k, words)}"
    return listed([f"{len(numbers):,} {_are(len(numbers), words)}" for words, numbers in groups.items()], 5)


def _are(count: int, words: str) -> str:
    return words if words.startswith("could") else f"{'is' if count == 1 else 'are'} {words}"


def groups_in_words(found: Exploration) -> str:
    """Which groups have each verdict, as in "groups 0 and 2 are stable; group 1 could be chance"."""
    told = []
    for words, numbers in by_verdict(found).items():
        shown = listed([str(number) for number in numbers], 8)
        told.append(f"group{'s' * (len(numbers) > 1)} {shown} {_are(len(numbers), words)}")
    return "; ".join(told)
