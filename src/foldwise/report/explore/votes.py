"""How the votes for a number of groups or directions went, in plain words; and how sure they make it."""

from __future__ import annotations

from foldwise.report.explore.words import share_of
from foldwise.selection.clusters.result import ClusterChoice
from foldwise.selection.components import ComponentChoice
from foldwise.selection.votes import Vote, decided, listed

HALF, CLEARLY = 0.5, 0.75  # shares of the votes
SURENESS = 'Less than half of the votes is "perhaps", three quarters or more "clearly", and "probably" what is between'


def vote_words(number: ClusterChoice) -> str:
    """How many ways of counting agree, their share of the votes, and what the others say."""
    said = _said(number.votes)
    agree = sum(one == number.n_clusters for one in said)
    if not said:
        return "no way of counting has an answer"
    if len(said) == 1:
        return "by the only way of counting that was asked"
    if agree == len(said):
        return f"all {len(said)} ways of counting agree"
    share = f"{share_of(number.strength)} of the votes, from {agree} of {len(said)} ways of counting"
    return f"{share}; {'the other says' if len(said) - agree == 1 else 'the others say'} {_others(said, number.n_clusters)}"


def direction_votes(choice: ComponentChoice) -> str:
    """The same for directions, with what decided if several numbers have as many votes."""
    said = _said(choice.votes)
    agree = sum(one == choice.agreed for one in said)
    if not said:
        return "no rule has an answer"
    if len(said) == 1:
        return "by the only rule that has an answer"
    if agree == len(said):
        return f"all {len(said)} rules agree"
    share = f"{share_of(choice.strength)} of the votes, from {agree} of {len(said)} rules"
    others = f"{'the other says' if len(said) - agree == 1 else 'the others say'} {_others(said, choice.agreed)}"
    tie = decided(choice.votes)
    return f"{share}; {tie}" if tie else f"{share}; {others}"


def sure_of(strength: float) -> int:
    """How sure a share of the votes makes it: 0 perhaps, 1 probably, 2 clearly."""
    return 2 if strength >= CLEARLY else 1 if strength >= HALF else 0


def _said(votes: tuple[Vote, ...]) -> list[int]:
    return [one.chosen for one in votes if one.counts and one.chosen is not None]


def _others(said: list[int], chosen: int | None) -> str:
    others = sorted({one for one in said if one != chosen})
    return listed(others) if len(others) <= 4 else f"{others[0]} to {others[-1]}"
