"""The tally of votes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from foldwise.selection.votes import Tally, Vote, tally, vote_table


def vote(rule: str, chosen: int | None, low: int | None = None, high: int | None = None, weight: float = 1.0) -> Vote:
    return Vote(rule, chosen, low, high, "because", weight=weight)


def test_the_number_with_most_votes_wins() -> None:
    result = tally([vote("a", 3), vote("b", 2), vote("c", 3), vote("d", 5)])
    assert result == Tally(3, 0.5, 2, "2 of 4 rules say 3; the others 2 and 5")


def test_of_equals_the_one_that_more_ranges_contain_wins_then_the_first() -> None:
    assert tally([vote("a", 3, 3, 3), vote("b", 2, 1, 2), vote("c", 4, 2, 5)]).agreed == 3  # 3: a and c; 2: b and c
    assert tally([vote("a", 3, 3, 3), vote("b", 2, 2, 2), vote("c", 1, 1, 2)]).agreed == 2
    assert tally([vote("a", 3), vote("b", 2)]).agreed == 3


def test_weights_count() -> None:
    votes = [vote("a", 1, weight=2.0), vote("b", 4), vote("c", 4, weight=0.5), vote("d", 9, weight=0.0)]
    assert tally(votes) == Tally(1, 2 / 3.5, 4, "1 of 3 rules says 1; the others 4 and 4")


def test_rules_without_an_answer_do_not_count() -> None:
    assert tally([vote("a", None), vote("b", 0)]) == Tally(0, 1.0, None, "the only rule with an answer says 0")
    assert tally([vote("a", None)]) == Tally(None, 0.0, None, "no rule has an answer")
    assert tally([]).agreed is None
    assert tally([vote("a", 2), vote("b", 2)]).sentence == "all 2 rules say 2"
    assert tally([vote("a", 2), vote("b", 2), vote("c", 7)]).sentence == "2 of 3 rules say 2; the other 7"


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 2), st.sampled_from([0.5, 1.0, 2.0])), min_size=1
    )
)
def test_no_number_has_more_votes(given: list[tuple[int, int, int, float]]) -> None:
    votes = [vote(str(i), k, k - less, k + more, weight) for i, (k, less, more, weight) in enumerate(given)]
    result = tally(votes)
    weights = {k: sum(v.weight for v in votes if v.chosen == k) for k in range(6)}
    assert result.agreed is not None
    assert weights[result.agreed] == max(weights.values())
    assert result.strength == weights[result.agreed] / sum(weights.values())
    assert result.runner_up != result.agreed
    assert (result.runner_up is None) == (len({v.chosen for v in votes}) == 1)
    if result.runner_up is not None:
        assert weights[result.runner_up] == max(w for k, w in weights.items() if k != result.agreed)


def test_the_table_lists_every_vote() -> None:
    lines = vote_table([vote("long name", 12, 3, 14), vote("b", None)], "clusters").splitlines()
    assert lines[0].split() == ["rule", "clusters", "range", "reason"]
    assert lines[1].split() == ["long", "name", "12", "3", "to", "14", "because"]
    assert lines[2].split() == ["b", "-", "-", "because"]
    assert len({line.index("because") for line in lines[1:]}) == 1
