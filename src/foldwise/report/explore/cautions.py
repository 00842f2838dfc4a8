"""What to be careful about, the most important first."""

from __future__ import annotations

import numpy as np

from foldwise.report.explore.words import listed, name_of, rows_words, share_of
from foldwise.report.formats import counted
from foldwise.selection.explore.result import Exploration

_SAID = 3  # cautions in the sentence
GOOD, BAD = ("stable", "very stable"), ("could be noise", "dissolves")  # verdicts on the stability of a group
_FEW_ROWS = 5  # per column
_FAR_FROM_NORMAL = 0.02  # the share of rows beyond the limits from which they say more of the shape than of single rows
_MANY_OUTLIERS = 3.0  # times as many as chance would give
_ALIKE = 0.95  # correlation of columns that say nearly the same
_DOMINATES = 0.6  # of the variance in one column
_NOTABLE_MISSING = 0.05


def caution_sentence(found: Exploration) -> str:
    """The last sentence of the lead."""
    said = cautions(found)[:_SAID]
    if not said:
        return (
            "Nothing here calls for special caution, but groups and directions describe these rows and explain nothing."
        )
    return f"Be careful: {'; '.join(said)}."


def cautions(found: Exploration) -> list[str]:
    """Everything that a reader should know before acting on the result, each as a clause."""
    made = [
        _unfinished(found),
        _blank(found),
        _missing(found, at_least=0.2),
        _sample(found),
        _doubtful(found),
        _disagreement(found),
    ]
    made += [_few_rows(found), _missing(found, at_least=_NOTABLE_MISSING, below=0.2), _outliers(found)]
    made += [_dominating(found), _alike(found), _repeated(found), _missing(found, at_least=0.0, below=_NOTABLE_MISSING)]
    return [one for one in made if one]


def _unfinished(found: Exploration) -> str:
    if not found.unfinished:
        return ""
    return f"it was stopped early, and this was not done: {listed([name_of(one) for one in found.unfinished], 5)}"


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
    bad = [one.number for one in found.summaries if one.verdict in BAD]
    if len(bad) == len(found.summaries):
        return "other rows of the same kind might give other groups"
    if bad:
        return f"group{'s' * (len(bad) > 1)} {listed([str(one) for one in bad], 6)} may not be real"
    if any(one.verdict and one.verdict not in GOOD for one in found.summaries):
        return "where one group ends and the next begins may shift with other rows"
    return ""


def _disagreement(found: Exploration) -> str:
    number = found.number
    if found.settings.get("n_clusters") is not None or number is None or number.n_clusters is None:
        return ""
    if number.strength >= 0.5 or number.runner_up is None:
        return ""
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


def _outliers(found: Exploration) -> str:
    out = found.outliers
    if out is None:
        return ""
    count = max(out.t2_count, out.residual_count)
    if count <= max(_MANY_OUTLIERS * out.expected, 2):
        return ""
    if count > max(_FAR_FROM_NORMAL * found.overview.rows, 10):
        share = share_of(count / found.overview.rows)
        return f"distances have long tails: {share} of the rows lie further out than 1 in 1,000 rows of a normal cloud would"
    chance = "hardly any" if out.expected < 0.5 else f"about {max(1, round(out.expected)):,}"
    return f"{rows_words(count)} lie far from the others, where chance would put {chance}"


def _dominating(found: Exploration) -> str:
    variances = np.asarray(found.pca.column_variances_, dtype=np.float64)
    if found.scale or len(variances) < 3 or not variances.sum() > 0:
        return ""
    share = float(variances.max() / variances.sum())
    if share < _DOMINATES:
        return ""
    name = name_of(found.names[int(variances.argmax())])
    return f"{name} alone makes up {share_of(share)} of the variation, since the columns keep their own units"


def alike_pairs(found: Exploration) -> list[tuple[str, str, float]]:
    """Pairs of columns by how closely they go together, the closest first."""
    matrix, places = found.overview.correlation, found.overview.correlated
    if matrix is None or len(places) < 2:
        return []
    first, second = np.triu_indices(len(places), 1)
    values = np.asarray(matrix)[first, second]
    order = np.argsort(-np.abs(np.nan_to_num(values)), kind="stable")[:50]
    names = [found.names[place] for place in places]
    return [(names[first[i]], names[second[i]], float(values[i])) for i in order if values[i] == values[i]]


def _alike(found: Exploration) -> str:
    pairs = [pair for pair in alike_pairs(found) if abs(pair[2]) >= _ALIKE]
    if not pairs:
        return ""
    one, two = name_of(pairs[0][0]), name_of(pairs[0][1])
    more = f" (and {counted(len(pairs) - 1, 'more pair')})" if len(pairs) > 1 else ""
    return f"{one} and {two} say nearly the same{more} and so count twice"


def _repeated(found: Exploration) -> str:
    """What the notes on the table say about rows that occur again."""
    told = [note for note in found.overview.notes if "same row" in note or "equal rows" in note or "repeated" in note]
    return name_of(told[0].rstrip("."), 120) if told else ""
