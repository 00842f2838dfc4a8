"""How many components: several rules, each with its range and reason, and the number they agree on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from foldwise.data.source import Source, count_rows
from foldwise.errors import NotFinishedWarning, ParameterError, warn
from foldwise.fold.outcome import Reason
from foldwise.models.pca import PCA
from foldwise.models.pca.rank import RULES
from foldwise.models.pca.spectrum import Spectrum
from foldwise.models.session import Session, session
from foldwise.reportable import Reportable
from foldwise.selection.component_task import TaskScores, task_scores
from foldwise.selection.component_votes import ALL, SHARE, held_out_vote, label, spectral_vote, without_answer
from foldwise.selection.votes import Vote, decided, tally, vote_table

_MOST_DIRECTIONS = 5000  # rows or columns, whichever are fewer, up to which all directions are computed; beyond,
_LEADING = 100  # so many
_QUICK = 2e7  # rows times columns squared, for which cells are left out in less than a second
_MOST_FOR_CELLS = 500  # columns: there is a matrix of columns by columns for each number of components


@dataclass(frozen=True, repr=False)
class ComponentChoice(Reportable):
    """Each rule's vote, and the number they agree on (0: no component stands out from noise; None: no rule has an answer).

    `strength` is the share of the votes for it, of which parallel analysis has two, and the share of variance and the task
    none; `runner_up` is the number with the next most. `task` has the scores of the estimator, if one was given.
    """

    votes: tuple[Vote, ...]
    agreed: int | None
    strength: float
    runner_up: int | None
    sentence: str
    task: TaskScores | None = None
    interrupted: bool = False  # by Ctrl-C: rules that were not finished have no answer

    @classmethod
    def of(cls, votes: Sequence[Vote], task: TaskScores | None = None, *, interrupted: bool = False) -> ComponentChoice:
        """Count the votes."""
        if not any(vote.counts for vote in votes):  # nobody else was asked
            votes = [replace(vote, weight=1.0) for vote in votes]
        result = tally(votes)
        twice = result.strength < 1 and any(vote.rule == "parallel" and vote.counts for vote in votes)
        told = result.sentence + ("; parallel counts twice" if twice else "")
        sentence = _in_words(result.agreed, told, result.strength, task, decided(votes))
        return cls(tuple(votes), result.agreed, result.strength, result.runner_up, sentence, task, interrupted)

    def __repr__(self) -> str:
        """The votes as a table, and the sentence."""
        return f"{vote_table(self.votes, 'components')}\n{self.sentence}"


def choose_components(
    X: Any,
    y: Any = None,
    *,
    rules: Sequence[str | float] | None = None,
    estimator: Any = None,
    n_components: Sequence[int] | None = None,
    cv: Any = 5,
    scoring: Any = None,
    scale: bool = False,
    missing: str = "error",
    prepare: str | None = None,
    sample_weight: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    engine: Any = None,
) -> ComponentChoice:
    """How many principal components are more than noise: the answers of several rules, and the number they agree on.

    Parameters
    ----------
    X : what `PCA.fit` takes.
    rules : of "parallel", "held-out", "mle", "gavish-donoho", "broken-stick" and shares of variance such as 0.9; None: all.
    estimator, y : a classifier, regressor or clustering whose cross-validated score on the leading 1, 2, ... components
        (those in `n_components`, or all) is listed as well; `cv` and `scoring` are as in scikit-learn. PCA is fitted once per
        fold, on the training rows. X then is a table in memory.
    scale, missing, prepare, sample_weight, random_state, n_threads, engine : as for `PCA`.

    All rules but "held-out" and the estimator's score read the variances, which take one pass. Where both rows and columns
    exceed 5000, 100 components are computed, and rules that need all of them have no answer; nor has "held-out" beyond 500
    columns or for sparse rows. Ctrl-C keeps the rules that are finished.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 8)) + rng.normal(size=(300, 1))
    >>> X[:, 5:] += rng.normal(size=(300, 1))
    >>> choice = choose_components(X)
    >>> choice.agreed, choice.runner_up
    (2, 1)
    """
    asked = _checked(rules, y, estimator, sample_weight, missing)
    common = {
        "scale": scale,
        "missing": missing,
        "prepare": prepare,
        "random_state": random_state,
        "n_threads": n_threads,
    }
    votes: list[Vote] = []
    task, interrupted = None, False
    if asked:
        votes, interrupted = _votes(X, asked, sample_weight, engine, common)
    if estimator is not None and not interrupted:
        try:
            task = task_scores(X, y, estimator, n_components, cv, scoring, engine=engine, **common)
            votes.append(task.vote())
        except KeyboardInterrupt:
            if not votes:
                raise
            interrupted = True
            votes.append(without_answer("task", "interrupted"))
    if interrupted:
        done = sum(vote.chosen is not None for vote in votes)
        message = (
            f"choose_components: interrupted; {done} of {len(asked) + (estimator is not None)} rules have answered."
        )
        warn(message, NotFinishedWarning)
    return ComponentChoice.of(votes, task, interrupted=interrupted)


def choice_of_model(pca: Any, source: Source | None = None) -> ComponentChoice | None:
    """What the rules say of a fitted PCA that has kept all components (None if it has not).

    Given the rows it was fitted to, held-out cells are asked, too, where that is quick.
    """
    found = Spectrum.of_model(pca)
    d = len(found.mean)
    if not found.whole:
        return None
    votes = {rule: spectral_vote(rule, found) for rule in ALL if rule != "held-out"}
    if source is not None and not source.sparse and d <= _MOST_FOR_CELLS and found.weight * d * d <= _QUICK:
        model = PCA(
            "held-out", scale=pca.scale, missing=pca.missing, random_state=pca.random_state, n_threads=pca.n_threads
        )
        chosen = model.fit(source).rank_
        if chosen is not None:
            votes["held-out"] = held_out_vote(chosen)
    return ComponentChoice.of([votes[rule] for rule in ALL if rule in votes])


def _votes(
    X: Any, rules: tuple[str | float, ...], sample_weight: Any, engine: Any, common: dict[str, Any]
) -> tuple[list[Vote], bool]:
    """The votes of rules about the data themselves, in the order asked for, and whether Ctrl-C came in between."""
    model = PCA(RULES[0], **common)
    with session(model, X, sample_weight, engine=engine) as opened:
        cells = _cells_unavailable(opened.data) if "held-out" in rules else ""
        if _large(opened.data):
            model.set_params(n_components=_LEADING)
        elif opened.missing is not None and "held-out" in rules and not cells:
            model.set_params(n_components="held-out")  # its fit has both answers
        spectrum, observed, _ = model.solve(opened)
        if spectrum.outcome.reason is Reason.INTERRUPTED:
            raise KeyboardInterrupt
        spectrum.outcome.warn("choose_components", NotFinishedWarning)
        spectrum, done, interrupted = spectrum.settled(), {}, False
        try:
            for rule in sorted(rules, key=lambda rule: rule == "held-out"):  # what takes longest comes last
                if rule != "held-out":
                    done[rule] = spectral_vote(rule, spectrum)
                elif cells:
                    done[rule] = without_answer(rule, cells)
                else:
                    ready = None if observed is None else observed.rank
                    done[rule] = held_out_vote(ready or _by_cells(opened))
        except KeyboardInterrupt:
            if not done:
                raise
            interrupted = True
        return [done.get(rule) or without_answer(label(rule), "interrupted") for rule in rules], interrupted


def _by_cells(opened: Session) -> Any:
    _, observed, _ = opened.model.set_params(n_components="held-out").solve(opened)
    if observed.spectrum.outcome.reason is Reason.INTERRUPTED:
        raise KeyboardInterrupt
    return observed.rank


def _large(source: Source) -> bool:
    return source.n_columns > _MOST_DIRECTIONS and count_rows(source, _MOST_DIRECTIONS + 1) > _MOST_DIRECTIONS


def _cells_unavailable(source: Source) -> str:
    """Why cells cannot be left out, if so."""
    if source.sparse:
        return "needs dense rows"
    if source.n_columns > _MOST_FOR_CELLS:
        return f"takes long for more than {_MOST_FOR_CELLS} columns"
    return ""


def _checked(
    rules: Sequence[str | float] | None, y: Any, estimator: Any, sample_weight: Any, missing: str
) -> tuple[str | float, ...]:
    given = ALL if rules is None else rules if isinstance(rules, Iterable) and not isinstance(rules, str) else (rules,)
    asked = tuple(SHARE if isinstance(rule, str) and rule == "share" else rule for rule in given)
    for rule in asked:
        share = isinstance(rule, Real) and not isinstance(rule, bool) and 0 < rule < 1
        if not share and not (isinstance(rule, str) and rule in RULES):
            raise ParameterError(
                f"rules={rules!r}: give some of {', '.join(RULES)}, or a share of variance such as 0.9, as a list."
            )
    asked = tuple(dict.fromkeys(asked))
    if estimator is None:
        if not asked:
            raise ParameterError("rules=[] leaves nothing to ask: give rules, or an estimator.")
        if y is not None:
            raise ParameterError("y is the target of an estimator: give estimator=, or leave y out.")
    elif sample_weight is not None:
        raise ParameterError(
            "an estimator is scored on rows without weights: repeat the rows, or leave out sample_weight."
        )
    elif missing == "drop":
        raise ParameterError(
            "missing='drop' leaves rows out, which an estimator has to predict: use 'mean' or 'model'."
        )
    return asked


def _in_words(agreed: int | None, sentence: str, strength: float, task: TaskScores | None, tie: str) -> str:
    if agreed is None:
        return f"No number of components: {sentence}."
    if strength < 0.5:
        head = f"The rules disagree: {tie}" if tie else f"The rules disagree, and {agreed} has the most votes"
    elif agreed == 0:
        head = "No component stands out from noise"
    else:
        head = f"{agreed} component{'s stand' if agreed > 1 else ' stands'} out from noise"
    told = f"{head}{' (' if tie and strength < 0.5 else ': '}{sentence}{')' if tie and strength < 0.5 else ''}."
    if task is None:
        return told
    best = "" if task.best == task.simplest else f", and is best with {task.best}"
    return f"{told} The task needs {task.simplest}{best}."
