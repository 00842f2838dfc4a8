"""Answers of several rules to "how many?", and the number they agree on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from foldwise.reportable import Reportable


@dataclass(frozen=True)
class Vote(Reportable):
    """One rule's answer: a number with the range it would also accept, and why.

    `chosen` is None if the rule has no answer; `reason` then says why not. `figures` holds what the rule looked at. A vote with
    `weight` 0 is listed but does not count; ties between numbers are broken by weight.
    """

    rule: str
    chosen: int | None
    low: int | None
    high: int | None
    reason: str
    figures: dict[str, Any] = field(default_factory=dict, repr=False)
    weight: float = 1.0

    @property
    def counts(self) -> bool:
        """Whether the vote plays a part in the agreed number."""
        return self.chosen is not None and self.weight > 0


@dataclass(frozen=True)
class Tally:
    """The number that most votes are for, the share of the votes that are (0 to 1), the next number, and a sentence.

    `agreed` is None if no rule has an answer, `runner_up` if all say the same.
    """

    agreed: int | None
    strength: float
    runner_up: int | None
    sentence: str


def tally(votes: Iterable[Vote]) -> Tally:
    """Count votes: the number with the largest weight of votes; of equals the one that more ranges contain, then the first.

    >>> say = {"a": (3, 2, 3), "b": (3, 3, 4), "c": (2, 2, 2), "d": (5, 3, 6)}
    >>> tally(Vote(rule, *numbers, reason="") for rule, numbers in say.items())
    Tally(agreed=3, strength=0.5, runner_up=2, sentence='2 of 4 rules say 3; the others 2 and 5')
    """
    counted = [vote for vote in votes if vote.counts]
    if not counted:
        return Tally(None, 0.0, None, "no rule has an answer")
    numbers = list(dict.fromkeys(vote.chosen for vote in counted if vote.chosen is not None))
    votes_for = {k: sum(vote.weight for vote in counted if vote.chosen == k) for k in numbers}
    accept = {k: sum(vote.weight for vote in counted if _accepts(vote, k)) for k in numbers}
    ranked = sorted(numbers, key=lambda k: (-votes_for[k], -accept[k]))  # stable: of equals the first
    agreed = ranked[0]
    return Tally(
        agreed=agreed,
        strength=votes_for[agreed] / sum(votes_for.values()),
        runner_up=ranked[1] if len(ranked) > 1 else None,
        sentence=_sentence(agreed, [vote.chosen for vote in counted if vote.chosen is not None]),
    )


def decided(votes: Iterable[Vote]) -> str:
    """What decided between numbers with as many votes, in words; "" if one has more than the others.

    >>> say = {"a": (1, 1, 1), "b": (2, 1, 2), "c": (3, 3, 3)}
    >>> decided(Vote(rule, *numbers, reason="") for rule, numbers in say.items())
    '1, 2 and 3 have as many votes each, and 1 is in the range of most rules'
    """
    counted = [vote for vote in votes if vote.counts]
    numbers = list(dict.fromkeys(vote.chosen for vote in counted if vote.chosen is not None))
    votes_for = {k: sum(vote.weight for vote in counted if vote.chosen == k) for k in numbers}
    most = max(votes_for.values(), default=0.0)
    equals = [k for k in numbers if votes_for[k] == most]
    if len(equals) < 2:
        return ""
    accept = {k: sum(vote.weight for vote in counted if _accepts(vote, k)) for k in equals}
    widest = [k for k in equals if accept[k] == max(accept.values())]
    head = f"{listed(sorted(equals))} have as many votes each, and"
    if len(widest) == 1:
        most_of = "most" if 2 * accept[widest[0]] > sum(vote.weight for vote in counted) else "more"
        return f"{head} {widest[0]} is in the range of {most_of} rules"
    return f"{head} {widest[0]} is that of the rule listed first"


def _accepts(vote: Vote, k: int) -> bool:
    low = vote.chosen if vote.low is None else vote.low
    high = vote.chosen if vote.high is None else vote.high
    return low is not None and high is not None and low <= k <= high


def _sentence(agreed: int, said: list[int]) -> str:
    others = sorted(k for k in said if k != agreed)
    rules = f"{len(said)} rule{'s' * (len(said) != 1)}"
    if not others:
        return f"all {rules} say {agreed}" if len(said) > 1 else f"the only rule with an answer says {agreed}"
    agreeing = len(said) - len(others)
    head = f"{agreeing} of {rules} say{'s' * (agreeing == 1)} {agreed}"
    return f"{head}; the other{'s' * (len(others) > 1)} {listed(others)}"


def listed(numbers: Iterable[object]) -> str:
    """Numbers or names as they are said.

    >>> listed([2, 5]), listed([1, 2, 2])
    ('2 and 5', '1, 2 and 2')
    """
    words = [str(number) for number in numbers]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def vote_table(votes: Iterable[Vote], things: str, what: str = "rule") -> str:
    """The votes as aligned text, one to a line; `things` is what is counted, `what` who votes.

    >>> print(vote_table([Vote("a", 3, 2, 4, "three peaks"), Vote("b", None, None, None, "needs more rows")], "components"))
    rule  components  range   reason
    a              3  2 to 4  three peaks
    b              -  -       needs more rows
    """
    rows = [(what, things, "range", "reason"), *((v.rule, said(v), accepted(v), v.reason) for v in votes)]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    return "\n".join(
        f"{rule:<{widths[0]}}  {number:>{widths[1]}}  {span:<{widths[2]}}  {reason}".rstrip()
        for rule, number, span, reason in rows
    )


def said(vote: Vote) -> str:
    """The answer as text."""
    return "-" if vote.chosen is None else str(vote.chosen)


def accepted(vote: Vote) -> str:
    """The range as text."""
    return "-" if vote.low is None or vote.high is None else f"{vote.low} to {vote.high}"
