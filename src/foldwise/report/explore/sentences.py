"""The exploration in five plain sentences: the data, the directions, the groups, what sets them apart, what to mind."""

from __future__ import annotations

import numpy as np

from foldwise.data.image_shape import said_as
from foldwise.report.explore.cautions import caution_sentence
from foldwise.report.explore.images import image_shape_in, without_pixels
from foldwise.report.explore.meaning import directions_of, mainly
from foldwise.report.explore.units import Units, level_words, rule_words, traits_sentence, traits_told
from foldwise.report.explore.verdicts import BAD, GOOD, counts_in_words
from foldwise.report.explore.votes import HALF, direction_votes, sure_of, vote_words
from foldwise.report.explore.words import (
    NUMBERS,
    ORDINALS,
    group_count,
    listed,
    name_of,
    of_hundred,
    place_of,
    rows_words,
    share_of,
)
from foldwise.report.formats import counted
from foldwise.selection.clusters.result import ClusterChoice
from foldwise.selection.explore.result import ClusterSummary, Exploration

_SURE = ("perhaps", "probably", "clearly")
_TOLD = 3  # groups that the sentence tells
_STRONG = 1.0  # deviations: a second difference as large as this is told, too
_TELLING = 0.85  # a rule is told if it is right, and finds its rows, this often


def sentences(found: Exploration) -> list[str]:
    """Five sentences."""
    found = without_pixels(found)
    return [_data(found), _directions(found), _groups(found), _differences(found), caution_sentence(found)]


def _data(found: Exploration) -> str:
    seen, columns, shape = found.overview, found.overview.columns, image_shape_in(found)
    if shape is not None:
        return f"The data ({place_of(seen.where)}) are {counted(seen.rows, 'image')} of {said_as(shape)}."
    size = f"The data ({place_of(seen.where)}) have {rows_words(seen.rows)} and {counted(len(columns), 'column')}"
    by_role: dict[str, list[str]] = {}
    for one in columns:
        by_role.setdefault(one.role, []).append(name_of(one.name, 30))
    used, describing = by_role.get("used", []), by_role.get("describing", []) + by_role.get("label", [])
    out = by_role.get("left out", []) + by_role.get("identifier", []) + by_role.get("weight", [])
    if len(used) == len(columns):
        which = "which is used" if len(used) == 1 else f"all of which are used ({listed(used)})"
        return f"{size}, {which}." if columns else f"{size}."
    parts = [f"{len(used):,} {'is' if len(used) == 1 else 'are'} used to compare the rows ({listed(used)})"]
    if describing:
        verb = "describes" if len(describing) == 1 else "describe"
        parts.append(f"{len(describing):,} only {verb} them ({listed(describing)})")
    if out:
        parts.append(f"{len(out):,} {'is' if len(out) == 1 else 'are'} left out of the comparison ({listed(out)})")
    return f"{size}: {listed(parts)}."


_MOST_COMPUTED, _ALL_COMPUTED = (
    100,
    5000,
)  # directions of a table larger than that both ways; see `fw.choose_components`


def _directions(found: Exploration) -> str:
    shares, vectors = found.pca.explained_variance_ratio_, directions_of(found)
    agreed, columns = found.n_components, len(found.names)
    if columns == 1:
        return "There is a single column to compare, so rows differ in one direction only."
    if not len(shares) or not float(found.pca.explained_variance_.sum()) > 0:
        return "No direction matters, for the rows do not vary in the columns used."
    first = f"{share_of(float(shares[0]))} of the variation"
    means = [] if image_shape_in(found) is not None else [mainly(each, found.names) for each in vectors[:2]]
    about = f" and is {means[0]}" if means else ""
    if found.components is None and columns == 2:
        return f"With two columns there are two directions: the first holds {first}{about}."
    if agreed is None:
        why = "was not worked out" if found.components is None else "could not be told"
        return f"How many directions matter {why}; the strongest one holds {first}{about}."
    assert found.components is not None
    sure = _SURE[sure_of(found.components.strength)]
    votes = direction_votes(found.components)
    if agreed == 0:
        head = "No direction stands" if sure == "clearly" else f"{sure.capitalize()} no direction stands"
        strongest = f"the strongest one, {means[0]}," if means else "the strongest one"
        return f"{head} out from chance ({votes}): {strongest} holds only {first}."
    if agreed == 1:
        return f"There is {sure} one direction that matters ({votes}): it holds {first}{about}."
    known = min(agreed, len(shares))
    held = share_of(float(shares[:known].sum()))
    which = "which hold" if known == agreed else f"the first {known:,} of which hold"
    told = [f"the {ORDINALS[i]} is {words}" for i, words in enumerate(means[:known])]
    more = f"; {agreed - 2:,} more add detail" if agreed > 3 else "; one more adds detail" if agreed == 3 else ""
    many = NUMBERS[agreed] if agreed < len(NUMBERS) else f"{agreed:,}"
    if agreed == _MOST_COMPUTED and min(found.overview.rows, columns) > _ALL_COMPUTED:
        many = f"at least {many}, the most that were computed,"
    head = f"There are {sure} {many} directions that matter ({votes})"
    if not means:
        return f"{head}, {which} {held} of the variation, the first alone {share_of(float(shares[0]))}."
    return f"{head}, {which} {held} of the variation: {'; '.join(told)}{more}."


def _groups(found: Exploration) -> str:
    number, k = found.number, group_count(found)
    if found.settings.get("n_clusters") is not None:
        return _asked(found, int(found.settings["n_clusters"]))
    if number is None and k is None:
        return "How many groups there are was not worked out."
    if number is None:
        return f"The rows are in {counted(k or 0, 'group')}, {_again(found)}."
    if k is None:
        return "How many groups there are was not worked out: there was not enough time to judge any number."
    if not any(one.counts for one in number.votes):
        return "No groups can be told apart: there are too few different rows to look for any."
    if k == 1:
        return _one_cloud(number)
    most = ", the most that was tried" if number.n_clusters == number.ks[-1] else ""
    rest = "but which rows belong to which was not worked out" if found.labels is None else _again(found)
    return f"There are {_sure(found, number)} {k:,} groups{most} ({vote_words(number)}), {rest}."


def _asked(found: Exploration, k: int) -> str:
    """The groups, if their number was given."""
    if k == 1:
        return "The rows were taken as one group, as asked, so no groups were looked for."
    if found.labels is None:
        return f"{NUMBERS[k].capitalize() if k < len(NUMBERS) else f'{k:,}'} groups were asked for, but they were not made."
    voted = None if found.number is None else found.number.n_clusters
    other = "no groups" if voted == 1 else f"{voted:,}" if voted is not None else ""
    but = f" (the ways of counting would say {other})" if voted not in (None, k) else ""
    return f"The rows were divided into {k:,} groups, as asked{but}, {_again(found)}."


def _one_cloud(number: ClusterChoice) -> str:
    if number.strength >= HALF:
        return f"There are no separate groups: the rows form one cloud ({vote_words(number)})."
    counted_ = [one for one in number.votes if one.counts]
    others = sum(one.chosen != 1 for one in counted_)
    gaps = any(one.rule == "dip" and (one.chosen or 1) > 1 for one in counted_)
    why = "though there are gaps between some rows" if gaps else "since no gaps part the rows"
    return (
        f"There are no clear groups, {why}; {'' if gaps else 'yet '}"
        f"{others} of {len(counted_)} ways of counting see groups, most often {number.runner_up}."
    )


def _sure(found: Exploration, number: ClusterChoice) -> str:
    """How sure the number is: by the votes, and less so if groups are not found again."""
    verdicts = [one.verdict for one in found.summaries if one.verdict]
    good = sum(one in GOOD for one in verdicts)
    by_verdicts = 2 if good == len(verdicts) else 0 if all(one in BAD for one in verdicts) else 1
    return _SURE[min(sure_of(number.strength), by_verdicts)]


def _again(found: Exploration) -> str:
    """Whether the groups are found again, after a comma."""
    if found.stability is None or not any(one.verdict for one in found.summaries):
        return "but whether other rows would give the same was not checked"
    verdicts = [one.verdict for one in found.summaries]
    good = sum(one in GOOD for one in verdicts)
    if good == len(verdicts):
        return f"and {counts_in_words(found)}: found again when other rows are drawn"
    if set(verdicts) == {"could be noise"}:
        return f"but {counts_in_words(found)}: parts of one cloud would be found again as well"
    if len(set(verdicts)) == 1:
        return f"but {counts_in_words(found)} when other rows are drawn"
    return f"of which {counts_in_words(found)} when other rows are drawn"


def _differences(found: Exploration) -> str:
    if not found.summaries:
        return _in_degree(found)
    units = Units.of(found)
    order = sorted(found.summaries, key=lambda one: (one.verdict in BAD, -_strength(one)))[:_TOLD]
    told = sorted((one for one in order if one.traits or one.categories), key=lambda one: one.number)
    if not told:
        if image_shape_in(found) is not None:
            return "No label sets a group apart from the others; the page shows what the groups look like."
        return "No single column sets a group apart from the others."
    parts = [_told(one, units, len(told)) for one in told]
    head = "Most distinct are these: " if len(found.summaries) > _TOLD else ""
    telling = [one for one in told if one.rule is not None and min(one.rule.precision, one.rule.recall) >= _TELLING]
    more = ""
    if telling:
        best = max(telling, key=lambda one: 0.0 if one.rule is None else min(one.rule.precision, one.rule.recall))
        assert best.rule is not None
        more = f"; {of_hundred(best.rule.precision)} rows where {rule_words(best, units)} are in group {best.number}"
    text = f"{head}{'; '.join(parts)}{more}."
    return text[0].upper() + text[1:]


def _told(one: ClusterSummary, units: Units, told: int) -> str:
    traits = traits_told(one, units, 2)
    if told > 2 and len(traits) > 1 and abs(traits[1].difference) < _STRONG:
        traits = traits[:1]
    head = f"group {one.number} ({rows_words(one.rows)})"
    return f"{head}{traits_sentence(traits, units)}" if traits else f"{head}: {level_words(one.categories[0], units)}"


def _strength(one: ClusterSummary) -> float:
    shares = [level.share for level in one.categories]  # which tell groups of images apart
    return max([abs(trait.difference) for trait in one.traits] or shares, default=0.0)


def _in_degree(found: Exploration) -> str:
    """What rows differ in where there are no groups."""
    if (found.n_clusters or 0) != 1:
        return "What sets groups apart is not known, because none were made."
    vectors = directions_of(found)
    if not len(vectors) or not float(np.sum(found.pca.explained_variance_)) > 0:
        return "Nothing sets rows apart in the columns used."
    different = found.overview.judged_rows - found.overview.repeated
    if found.number is not None and not any(one.counts for one in found.number.votes):
        return f"There are only {counted(different, 'different row')}; all others repeat them."
    words = mainly(vectors[0], found.names)
    if image_shape_in(found) is not None:
        return "Images differ by degree rather than in kind; the page shows the directions as images."
    what = f"most of all in {words.removeprefix('mainly ')}" if words.startswith("mainly ") else f"in {words}"
    if found.number is None:  # nobody asked whether there are groups
        return f"Rows differ {what}."
    return f"Rows differ by degree rather than in kind, {what}."
