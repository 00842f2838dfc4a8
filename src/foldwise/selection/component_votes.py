"""What each rule for the number of components says of a spectrum, in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from foldwise.models.pca.rank import RULES, RankChoice, by_minka, by_rule, by_share
from foldwise.models.pca.solver import dimensions
from foldwise.models.pca.spectrum import Spectrum
from foldwise.selection.votes import Vote

SHARE = 0.9
ALL: tuple[str | float, ...] = (*RULES, SHARE)
# Parallel analysis is right most often where ranks were planted (benchmarks/accuracy/planted_ranks.py). How much of the
# variance to show, or what a task needs, is another question than what is noise.
WEIGHTS = {"parallel": 2.0, "share": 0.0}
_MOST_FOR_MLE = 2000


def label(rule: str | float) -> str:
    """The name of a rule, or of a share of variance."""
    return rule if isinstance(rule, str) else f"share {rule:g}"


def vote_of(choice: RankChoice, reason: str) -> Vote:
    """What a rule chose, as a vote."""
    weight = WEIGHTS.get(choice.rule.split()[0], 1.0)
    return Vote(choice.rule, choice.chosen, choice.low, choice.high, reason, choice.figures, weight)


def spectral_vote(rule: str | float, found: Spectrum) -> Vote:
    """The vote of a rule that needs the variances alone."""
    name = label(rule)
    most = dimensions(len(found.mean), found.indicators)
    whole = found.whole
    if not found.total_variance > 0:
        return without_answer(name, "all rows are equal")
    if rule in ("mle", "gavish-donoho") and not whole:
        return without_answer(name, "needs the variances of all components, which are too many to compute")
    if rule == "mle":
        if found.weight < most:
            return without_answer(name, "needs at least as many rows as columns")
        if most > _MOST_FOR_MLE:
            return without_answer(name, f"takes long for more than {_MOST_FOR_MLE:,} columns")
        choice = by_minka(found.variances, found.weight, most, found.floor, none=True)
    elif isinstance(rule, str):
        made = by_rule(rule, found)
        assert made is not None
        choice = made
    else:
        choice = by_share(found.variances, found.total_variance, rule, found.weight)
        if float(choice.figures["cumulative_share"][-1]) <= rule and not whole:
            return without_answer(name, f"takes more than the {len(found.variances)} components that were computed")
    ends = isinstance(rule, str) and not whole and choice.chosen >= len(found.variances)
    vote = vote_of(choice, _REASONS[choice.rule.split()[0]](choice))
    return replace(vote, reason=f"{vote.reason}; no more were computed") if ends else vote


def without_answer(rule: str, reason: str) -> Vote:
    """A rule that cannot be asked, and why."""
    return Vote(rule, None, None, None, reason, weight=WEIGHTS.get(rule.split()[0], 1.0))


def held_out_vote(choice: RankChoice) -> Vote:
    """The vote of the rule that predicts held-out cells."""
    numbers, errors = choice.figures["n_components"], choice.figures["held_out_error"]
    error = errors[int(np.searchsorted(numbers, choice.chosen))]
    reason = (
        f"predicts left-out cells within one standard error of the best (errors of {error:.3g} standard deviations)"
    )
    share = float(choice.figures["share_of_rows"][0])
    if choice.chosen == 0:
        reason = "no component helps to predict left-out cells"
    return vote_of(choice, reason + (f" (judged on {share:.2g} of the rows)" if share < 1 else ""))


def _components(k: int, verb: str) -> str:
    return f"no component {verb}s" if k == 0 else f"1 component {verb}s" if k == 1 else f"{k} components {verb}"


def _parallel(choice: RankChoice) -> str:
    return f"{_components(choice.chosen, 'varie' if choice.chosen < 2 else 'vary')} more than unrelated columns would"


def _mle(choice: RankChoice) -> str:
    chance = choice.figures["probability"][choice.chosen]
    return f"has probability {chance:.2g} if noise is normal and equal in all columns"


def _gavish_donoho(choice: RankChoice) -> str:
    return f"{_components(choice.chosen, 'exceed')} equal noise by enough to improve a reconstruction"


def _broken_stick(choice: RankChoice) -> str:
    return f"{_components(choice.chosen, 'ha' if choice.chosen < 2 else 'have')} a larger share than a stick broken at random"


def _share(choice: RankChoice) -> str:
    share = choice.rule.split()[1]
    return f"shows more than {float(share):.4g} of the variance (not counted: this says nothing of noise)"


_REASONS: dict[str, Callable[[RankChoice], str]] = {
    "parallel": _parallel,
    "mle": _mle,
    "gavish-donoho": _gavish_donoho,
    "broken-stick": _broken_stick,
    "share": _share,
}
