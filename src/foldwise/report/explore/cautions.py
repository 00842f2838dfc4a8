"""What to be careful about, the most important first."""

from __future__ import annotations

import numpy as np

from foldwise.report.explore.images import image_shape_in
from foldwise.report.explore.notes import serious_notes
from foldwise.report.explore.units import levels_of
from foldwise.report.explore.verdicts import BAD, GOOD, verdict_words
from foldwise.report.explore.votes import CLEARLY, HALF
from foldwise.report.explore.words import listed, name_of, rows_words, share_of
from foldwise.report.formats import counted
from foldwise.selection.explore.result import Exploration, Outliers

_SAID = 3  # cautions in the sentence, beside those on how the table was understood
_SAID_NOTES = 2
_NAMED = 6  # groups that are named by their numbers
_FEW_ROWS = 5  # per column
_FAR_FROM_NORMAL = 0.02  # the share of rows beyond the limits from which they say more of the shape than of single rows
_MANY_OUTLIERS = 3.0  # times as many as chance would give
_ALIKE = 0.95  # correlation of columns that say nearly the same
_DOMINATES = 0.6  # of the variance in one column
_NOTABLE_RATIO = 1.5  # of spreads
_NOTABLE_MISSING = 0.05
_NOTABLE_REPEATED = 0.05


def caution_sentence(found: Exploration) -> str:
    """The last sentence of the lead."""
    notes = serious_notes(found)[:_SAID_NOTES]
    said = [*_unfinished(found), *notes, *_others(found)[: _SAID - len(notes) + bool(notes)]]
    if not said:
        return (
            "Nothing here calls for special caution, but groups and directions describe these rows and explain nothing."
        )
    return f"Be careful: {'; '.join(said)}."


def cautions(found: Exploration) -> list[str]:
    """Everything that a reader should know before acting on the result, each as a clause."""
    return [*_unfinished(found), *serious_notes(found), *_others(found)]


def cautions_not_said(found: Exploration) -> list[str]:
    """Those that the last sentence of the lead has no room for."""
    sentence = caution_sentence(found)
    return [one for one in cautions(found) if one not in sentence]


def _others(found: Exploration) -> list[str]:
    made = [_missing(found, at_least=0.2), _doubtful(found), _disagreement(found), _blank(found), _sample(found)]
    made += [_few_rows(found), _missing(found, at_least=_NOTABLE_MISSING, below=0.2), _outliers(found)]
    made += [] if image_shape_in(found) is not None else [_units(found), _alike(found)]  # neighbouring pixels are alike
    made += [_repeated(found), _missing(found, at_least=0.0, below=_NOTABLE_MISSING)]
    return [one for one in made if one]


def _unfinished(found: Exploration) -> list[str]:
    if not found.unfinished:
        return []
    return [f"it was stopped early, and this was not done: {listed([name_of(one) for one in found.unfinished], 5)}"]


def _blank(found: Exploration) -> str:
    """Rows that are in no group, since nothing is known of them."""
    blank = 0 if found.labels is None else int(np.count_nonzero(found.labels < 0))
    if not blank:
        return ""
    verbs = ("has", "is") if blank == 1 else ("have", "are")
    return f"{rows_words(blank)} {verbs[0]} no value in these columns and {verbs[1]} in no group"


def _sample(found: Exploration) -> str:
    rows = found.overview.rows
    if found.sampled_rows is None or found.sampled_rows >= rows:
        return ""
    return f"steps that take long looked at {found.sampled_rows:,} of the {rows_words(rows)}, drawn at random"


def _doubtful(found: Exploration) -> str:
    if len(found.summaries) < 2:
        return ""
    bad: dict[str, list[int]] = {}
    for one in found.summaries:
        if one.verdict in BAD:
            bad.setdefault(verdict_words(one.verdict), []).append(one.number)
    count = sum(map(len, bad.values()))
    if count == len(found.summaries):
        words = "were" if "not found again" in bad else "could be"
        what = (
            "not found again when other rows were drawn" if words == "were" else "chance: parts of one cloud look alike"
        )
        return f"all groups {words} {what}" if len(bad) == 1 else "no group is stable"
    if count:
        told = [_so(words, numbers) for words, numbers in bad.items()]
        return listed(told)
    shaky = [one.number for one in found.summaries if one.verdict and one.verdict not in GOOD]
    return _so(verdict_words("doubtful"), shaky) if shaky else ""


def _so(words: str, numbers: list[int]) -> str:
    """As in "groups 2 and 3 could be chance"."""
    verb = "" if words.startswith("could") else "is " if len(numbers) == 1 else "are "
    if len(numbers) > _NAMED:
        return f"{len(numbers)} groups {verb}{words}"
    return f"group{'s' * (len(numbers) > 1)} {listed([str(one) for one in numbers], _NAMED)} {verb}{words}"


def _disagreement(found: Exploration) -> str:
    number = found.number
    if found.settings.get("n_clusters") is not None or number is None or number.n_clusters is None:
        return ""
    if number.runner_up is None or number.strength >= (CLEARLY if number.n_clusters == 1 else HALF):
        return ""
    if number.n_clusters == 1:
        some = [one for one in number.votes if one.counts]
        see = sum(one.chosen != 1 for one in some)
        verb = "sees" if see == 1 else "see"
        return (
            f"the ways of counting groups disagree ({see} of {len(some)} {verb} groups, most often {number.runner_up}; "
            f"ask for {number.runner_up} groups to look at them)"
        )
    other = "no groups at all" if number.runner_up == 1 else f"{number.runner_up} groups"
    return f"the ways of counting groups disagree (the next choice would be {other})"


def _few_rows(found: Exploration) -> str:
    rows, columns = found.overview.rows, len(found.names)
    if rows >= _FEW_ROWS * columns:
        return ""
    return f"there are only {rows_words(rows)} for {counted(columns, 'column')}, so that much can look like a pattern by chance"


def missing_share(found: Exploration) -> float:
    """The share of the cells that are used and missing."""
    used = [one for one in found.overview.columns if one.role == "used"]
    cells = len(used) * found.overview.judged_rows
    return sum(one.missing for one in used) / cells if cells else 0.0


def _missing(found: Exploration, *, at_least: float, below: float = 1.01) -> str:
    share = missing_share(found)
    if not share > 0 or not at_least <= share < below:
        return ""
    used = [one for one in found.overview.columns if one.role == "used" and one.missing]
    most = max(used, key=lambda one: one.missing)
    where = (
        f", most of them in {name_of(most.name)}"
        if len(used) > 1 and 2 * most.missing > sum(one.missing for one in used)
        else ""
    )
    where = f", all of them in {name_of(most.name)}" if len(used) == 1 and len(found.names) > 1 else where
    return f"{share_of(share)} of the cells used are missing{where}"


def by_chance(out: Outliers) -> float:
    """How many rows of one normal cloud would lie beyond either limit, about."""
    return out.expected * (1 if np.isnan(out.residual_limit) else 2)


def has_long_tails(found: Exploration) -> bool:
    """Whether so many rows are beyond the limits that these speak of the shape of all rows, and not of single ones."""
    return found.outliers is not None and found.outliers.count > max(_FAR_FROM_NORMAL * found.overview.rows, 10)


def _outliers(found: Exploration) -> str:
    out = found.outliers
    if out is None:
        return ""
    count, expected = out.count, by_chance(out)
    if count <= max(_MANY_OUTLIERS * expected, 2):
        return ""
    if has_long_tails(found):
        share = share_of(count / found.overview.rows)
        return f"distances have long tails: {share} of the rows lie further out than 1 in 1,000 rows of a normal cloud would"
    chance = "hardly any" if expected < 0.5 else f"about {max(1, round(expected)):,}"
    return f"{rows_words(count)} lie far from the others, where chance would put {chance}"


def _units(found: Exploration) -> str:
    """Columns in their own units, of which those with large spreads count most."""
    variances = np.asarray(found.pca.column_variances_, dtype=np.float64)
    if found.scale or len(variances) < 2 or found.metric == "cosine" or not variances.min() > 0:
        return ""
    largest, smallest = name_of(found.names[int(variances.argmax())]), name_of(found.names[int(variances.argmin())])
    share, ratio = float(variances.max() / variances.sum()), float(np.sqrt(variances.max() / variances.min()))
    remedy = "standardise them if they measure different things"
    if len(variances) > 2 and share >= _DOMINATES:
        return f"{largest} alone makes up {share_of(share)} of the variation, since the columns keep their own units ({remedy})"
    if ratio < _NOTABLE_RATIO or "spreads differ only" not in found.scale_reason:
        return ""
    return (
        f"the columns keep their own units, so that {largest} counts {ratio:.1f} times as much as {smallest} ({remedy})"
    )


def alike_pairs(found: Exploration) -> list[tuple[str, str, float]]:
    """Pairs of columns by how closely they go together, the closest first."""
    matrix, places = found.overview.correlation, found.overview.correlated
    if matrix is None or len(places) < 2:
        return []
    first, second = np.triu_indices(len(places), 1)
    values = np.asarray(matrix)[first, second]
    order = np.argsort(-np.abs(np.nan_to_num(values)), kind="stable")[:200]
    names, levels = [found.names[place] for place in places], levels_of(found)
    pairs = [(names[first[i]], names[second[i]], float(values[i])) for i in order if values[i] == values[i]]
    return [pair for pair in pairs if not _one_category(pair[0], pair[1], levels)]


def _one_category(one: str, other: str, levels: dict[str, tuple[str, str]]) -> bool:
    """Whether two columns are levels of one category: that one excludes the other says nothing."""
    return one in levels and other in levels and levels[one][0] == levels[other][0]


def _alike(found: Exploration) -> str:
    pairs = [pair for pair in alike_pairs(found) if abs(pair[2]) >= _ALIKE]
    if not pairs:
        return ""
    one, two = name_of(pairs[0][0]), name_of(pairs[0][1])
    more = f" (and {counted(len(pairs) - 1, 'more pair')})" if len(pairs) > 1 else ""
    return f"{one} and {two} say nearly the same{more} and so count twice"


def _repeated(found: Exploration) -> str:
    """Rows that occur again."""
    seen = found.overview
    share = seen.repeated / seen.judged_rows if seen.judged_rows else 0.0
    if share < _NOTABLE_REPEATED:
        return ""
    verb = "is" if seen.repeated == 1 else "are"
    return f"{rows_words(seen.repeated)} ({share_of(share)}) {verb} equal to an earlier row in all columns used"
