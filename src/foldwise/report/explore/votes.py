"""How the votes for a number of groups went, in plain words."""

from __future__ import annotations

from foldwise.selection.clusters.result import ClusterChoice
from foldwise.selection.votes import listed


def vote_words(number: ClusterChoice) -> str:
    """How many ways of counting agree, and what the others say."""
    said = [one.chosen for one in number.votes if one.counts and one.chosen is not None]
    agree = sum(one == number.n_clusters for one in said)
    if not said:
        return "no way of counting has an answer"
    if len(said) == 1:
        return "by the only way of counting that was asked"
    if agree == len(said):
        return f"all {len(said)} ways of counting agree"
    others = sorted({one for one in said if one != number.n_clusters})
    some = listed(others) if len(others) <= 4 else f"{others[0]} to {others[-1]}"
    head = f"{agree} of {len(said)} ways of counting say{'s' * (agree == 1)} so"
    return f"{head}, {'the other says' if len(said) - agree == 1 else 'the others say'} {some}"
