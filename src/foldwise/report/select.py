"""The report on chosen columns: the path of the search, what is lost without each, and what is told of those left out."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data.source import Source
from foldwise.report.charts import path_chart
from foldwise.report.formats import counted, percent
from foldwise.report.leads import names_of
from foldwise.report.run_header import about, column_names, run_table, told
from foldwise.report.values import Chart, Column, Fact, Group, Note, Part, Report, Table

if TYPE_CHECKING:
    from foldwise.prepare.target import Target
    from foldwise.selection.features.path import SelectionStep

_MOST_STEPS = 100
_MOST_NAMED = 6
_WIDTH = 70  # characters of names
_WEAK = 0.2  # correlations below this are hardly a reason to name a column
_QUICK = 2_000_000  # subsets, which take a few seconds at most
_ALONE = 0.9  # of the variance of all columns, which one column should not have by its units alone


def select_report(model: Any, source: Source, target: Target | None = None, task: str = "") -> Report:
    """What ran, the columns kept, the path with what is possible at most, and what the columns tell of those left out.

    `target` is what a wrapper predicted, by `task`. No pass over the rows is made.
    """
    made = _Parts(model, target, task)
    return Report(
        made.title,
        [*about(model, made.work), *made.target_lines],
        made.facts,
        [
            Group([*made.kept, *made.choice], wide=True),
            made.chart,
            *made.left_out,
            made.path,
            *made.hints,
            run_table(model.manifest_),
        ],
        told(source),
        made.lead,
        "page",
    )


class _Parts:
    """The parts of the report, from what they have in common."""

    def __init__(self, model: Any, target: Target | None, task: str) -> None:
        self.model, self.target, self.task, self.names = model, target, task, column_names(model)
        self.direct = model.explained_ is not None
        self.order: tuple[int, ...] = model.path_.best(model.n_features_)
        self.rest = [j for j in range(len(self.names)) if not model.support_[j]]

    @property
    def title(self) -> str:
        """What was found, in a line."""
        words = f"{counted(self.model.n_features_, 'column')} of {len(self.names)}"
        if self.direct:
            return f"{words} that stand{'s' * (self.model.n_features_ == 1)} for all"
        if self.model.criterion == "cluster" and self.model.n_clusters is not None:
            return f"{words} for {self.model.n_clusters} clusters"
        return words if self.target is None else f"{words} to predict {self.target.name}"

    @property
    def lead(self) -> list[str]:
        """What the columns are, and what they are worth."""
        model, k = self.model, self.model.n_features_
        shown = list(self.order[:_MOST_NAMED])
        named = names_of(self.names, shown) + (f" and {k - len(shown):,} more" if k > len(shown) else "")
        kept = f"{counted(k, 'column')} of {len(self.names)} {'is' if k == 1 else 'are'} kept: {named}."
        they = "It" if k == 1 else "Together they"
        if self.direct:
            most = f"the most that {counted(k, 'column')} could explain is {percent(model.bound_)}"
            verb = "explains" if k == 1 else "explain"
            return [kept, f"{they} {verb} {percent(model.score_)} of the variance of all columns; {most}."]
        everything = model.path_.by_size().get(len(self.names))
        beside = f"; all columns reach {self.show(everything.score)}" if everything is not None and self.rest else ""
        verb = "reaches" if k == 1 else "reach"
        return [kept, f"{they} {verb} {self._score_in_words} of {self.show(model.score_)}{beside}."]

    @property
    def _score_in_words(self) -> str:
        named = {"between clusters": "a share of variance between clusters", "silhouette": "a mean silhouette"}
        if self.target is not None and self.score_name in ("accuracy", "R²"):
            return f"a cross-validated {self.score_name}"
        return named.get(self.score_name, f"a {self.score_name}")

    # ---------------------------------------------------------------- what the scores are

    @property
    def score_name(self) -> str:
        """What the scores are called, in a word or two."""
        model = self.model
        if self.direct:
            return "explained"
        if model.criterion == "cluster":
            return "silhouette" if model.scoring == "silhouette" else "between clusters"
        if model.criterion != "wrapper" or self.target is None:
            return "score"
        return "accuracy" if self.target.is_category else "R²"

    @property
    def is_share(self) -> bool:
        """Whether scores are shares, to be written in per cent."""
        return self.score_name in ("explained", "between clusters", "accuracy")

    @property
    def show(self) -> Callable[[float], str]:
        """How a score is written."""
        return percent if self.is_share else "{:.4f}".format

    @property
    def work(self) -> str:
        """What ran, in a line."""
        model, words = self.model, [self.model.manifest_.algorithm]
        if model.criterion == "cluster" and model.n_clusters is not None:
            words.append(f"k-means with {model.n_clusters} clusters")
        if self.target is not None:
            words.append(f"{_TASKS[self.task, self.target.is_category]}, {_folds(model.cv)}-fold cross-validation")
        return ", ".join(words)

    @property
    def target_lines(self) -> list[str]:
        """What was predicted."""
        found = self.target
        if found is None:
            return []
        kind = f"category, {len(set(found.values.tolist()))} levels" if found.is_category else "number"
        without = f"; {counted(found.missing, 'row')} without it not used in the search" if found.missing else ""
        return [f"target: {found.name} ({kind}){without}"]

    # ---------------------------------------------------------------- headlines

    @property
    def facts(self) -> list[Fact]:
        """The figures that matter most."""
        model, k = self.model, self.model.n_features_
        kept = Fact("columns kept", [self.names[j] for j in self.order], f"{k} of {len(self.names)}")
        if self.direct:
            share = model.score_ / model.bound_
            components = f"{counted(k, 'principal component')} explain{'s' * (k == 1)}"
            why = f"(what {components}; no {counted(k, 'column')} can explain more)"
            return [
                kept,
                Fact("variance explained", model.score_, percent(model.score_), "(of all columns)"),
                Fact("possible at most", model.bound_, percent(model.bound_), why),
                Fact("reached of that", share, percent(share)),
                *self._compared,
            ]
        named = {"explained": "", "between clusters": "variance between clusters", "silhouette": "mean silhouette"}
        name = named.get(self.score_name, f"cross-validated {self.score_name}" if self.target else self.score_name)
        step = model.path_.by_size()[k]
        error = f" ± {self.show(step.error)}" if step.error == step.error else ""
        facts = [kept, Fact(name, model.score_, f"{self.show(model.score_)}{error}", self._guessed)]
        everything = model.path_.by_size().get(len(self.names))
        if everything is not None and k < len(self.names):
            facts.append(Fact("with all columns", everything.score, self.show(everything.score)))
        return [
            *facts,
            Fact("subsets compared", model.n_compared_, f"{model.n_compared_:,}", "(each with fits of its own)"),
        ]

    @property
    def _guessed(self) -> str:
        """What needs no column at all."""
        if self.target is None or not self.target.is_category or self.target.rows.weights is not None:
            return ""
        most = float(np.unique(self.target.values.astype(str), return_counts=True)[1].max() / len(self.target.values))
        return f"({percent(most)} if the most frequent level is always guessed)"

    @property
    def _compared(self) -> list[Fact]:
        """How many subsets an exhaustive search looked at, and how many it could leave out."""
        model = self.model
        if model.search != "exhaustive":
            return []
        total = sum(comb(len(self.names), size) for size in model.path_.sizes)
        done = min(model.n_compared_, total) if model.n_compared_ else total
        known = (
            "; this is the best subset of all"
            if model.outcome_.converged
            else "; the search was stopped before its end"
        )
        saved = (
            f"(the others cannot be better{known})" if done < total and model.outcome_.converged else f"({known[2:]})"
        )
        return [
            Fact("subsets in all", total, f"{total:,}", only="page"),
            Fact("subsets compared", done, f"{done:,} of {total:,}", saved, only="text"),
            Fact("compared one by one", done, f"{done:,}", saved, only="page"),
            Fact("saved by the bound", total - done, percent((total - done) / total), only="page"),
        ]

    @property
    def choice(self) -> list[Note]:
        """Why so many."""
        found = self.model.choice_
        if found is None:
            return []
        words = f"{found.rule} keeps {counted(found.chosen, 'column')}"
        if not self.model.outcome_.converged:
            words += " of the path so far, since the search was stopped"
        elif found.rule == "auto" and found.low < found.high:
            words += f" (plausible: {found.low} to {found.high})"
        return [Note(f"{words}: {found.meaning}")]

    # ---------------------------------------------------------------- columns

    @cached_property
    def closest(self) -> NDArray[np.intp]:
        """Of each column, the chosen one with which its correlation is largest: its row in `correlations_`."""
        return np.asarray(np.argmax(np.abs(self.model.correlations_), axis=0))

    @property
    def kept(self) -> list[Table | Note]:
        """The columns that are kept."""
        model = self.model
        names = [self.names[j] for j in self.order]
        if not self.direct:
            return [Note(f"kept: {', '.join(names)}")]
        chosen = np.flatnonzero(model.support_).tolist()
        places = sorted((chosen.index(j) for j in self.order), key=lambda place: -float(model.losses_[place]))
        lost = [float(model.losses_[place]) for place in places]
        columns = [
            Column("kept", [self.names[chosen[place]] for place in places], left=True),
            Column("lost without it", lost, percent, bar=max(lost) or 1.0),
            Column("closest to", [self._stands_for(place) for place in places], left=True),
        ]
        caption = (
            "Lost without it: the share of the variance of all columns that would no longer be explained. "
            "Closest to: the columns left out that are correlated with it more than with any other column kept "
            f"(and by {_WEAK:g} or more)."
        )
        return [Table("Columns kept", columns, caption)]

    def _stands_for(self, place: int) -> str:
        correlations = self.model.correlations_[place]
        own = [j for j in self.rest if self.closest[j] == place and abs(correlations[j]) >= _WEAK]
        own.sort(key=lambda j: -abs(correlations[j]))
        words = [f"{self.names[j]} ({correlations[j]:+.2f})" for j in own]
        shown = 1
        while shown < len(words) and len(", ".join(words[: shown + 1])) <= _WIDTH:
            shown += 1
        return ", ".join(words[:shown]) + (f" and {len(words) - shown:,} more" if shown < len(words) else "")

    @property
    def left_out(self) -> list[Part]:
        """The columns that are not kept, those that are lost most first."""
        if not self.direct or not self.rest:
            return []
        model, chosen = self.model, np.flatnonzero(self.model.support_)
        rest = sorted(self.rest, key=lambda j: (float(model.explained_[j]), j))
        correlations = [float(model.correlations_[self.closest[j], j]) or np.nan for j in rest]  # of a constant, none
        near = [self.names[chosen[self.closest[j]]] if r == r else "" for j, r in zip(rest, correlations, strict=True)]
        columns = [
            Column("left out", [self.names[j] for j in rest], left=True),
            Column("explained", [float(model.explained_[j]) for j in rest], percent, bar=1.0),
            Column("closest kept", near, left=True),
            Column("correlation", correlations, "{:+.2f}".format),
        ]
        caption = (
            "Explained: the share of the column's own variance that all columns kept explain together; the worst first."
        )
        return [Table("Columns left out", columns, caption, wide=True)]

    # ---------------------------------------------------------------- the path

    @property
    def _steps(self) -> list[SelectionStep]:
        """The steps; those backward by rising size, since the last ones matter."""
        steps = list(self.model.path_.steps)
        return steps[::-1] if self.model.search == "backward" else steps

    @property
    def path(self) -> Table:
        """Every step of the search."""
        model, steps, show = self.model, self._steps, self.show
        scores = np.array([step.score for step in steps])
        before = np.concatenate([[0.0 if self.direct and steps[0].size == 1 else np.nan], scores[:-1]])
        best = model.path_.by_size()[model.n_features_]
        columns = [
            Column("columns", [step.size for step in steps]),
            Column("step", [_told(model, step) for step in steps], left=True),
            Column(self.score_name, scores.tolist(), show),
        ]
        if any(step.error == step.error for step in steps):
            columns.append(Column("give or take", [step.error for step in steps], show))
        signed = "{:+.4f}".format if not self.is_share else lambda value: f"{100 * value:+.1f} %"
        columns.append(Column("gain", (scores - before).tolist(), signed))
        if self.direct:
            columns.append(Column("at most", [step.bound for step in steps], percent))
            columns.append(Column("reached of that", [step.score / step.bound for step in steps], percent))
        columns.append(Column("", ["chosen" if step is best else "" for step in steps], left=True))
        return Table("Every step of the search", columns, self._path_caption, most=_MOST_STEPS, wide=True)

    @property
    def _path_caption(self) -> str:
        words = [f"{self.model.path_.criterion[0].upper()}{self.model.path_.criterion[1:]}."]
        if self.model.search == "backward":
            words.append("The search goes from the last line up.")
        if any(step.error == step.error for step in self.model.path_.steps) and self.model.criterion == "wrapper":
            words.append("Give or take: the standard error over the folds.")
        if self.model.criterion == "wrapper":
            words.append("The columns were chosen by these scores, so that new rows will have somewhat lower ones.")
        if self.direct:
            words.append(
                "At most: what so many principal components explain; no choice of so many columns can explain more."
            )
        return " ".join(words)

    @property
    def chart(self) -> Chart:
        """The score over the number of columns."""
        model, best = self.model, self.model.path_.by_size()

        def draw() -> str | None:
            if len(best) < 2:
                return None
            steps = list(best.values())
            bounds = np.array([step.bound for step in steps]) if self.direct else None
            errors = np.array([step.error for step in steps])
            names = ("columns", "at most: principal components")
            names = names if self.direct else (self.score_name, "")
            sizes, scores = list(best), np.array([step.score for step in steps])
            return path_chart(sizes, scores, bounds, errors, model.n_features_, names, percent=self.is_share)

        title = "How much the columns explain" if self.direct else f"{self.score_name[0].upper()}{self.score_name[1:]}"
        caption = "The best subset of each size on the path. Ring: the number of columns kept."
        title = title if self.direct else f"{title} by the number of columns"
        return Chart(title, draw, caption, wide=True, alt=f"{title}. {self.lead[-1]}")

    @property
    def hints(self) -> list[Part]:
        """What else to try."""
        lines, first = [], self.model.path_.by_size().get(1)
        if (
            self.direct
            and self.model.scale_ is None
            and first is not None
            and first.score > _ALONE
            and len(self.names) > 1
        ):
            lines.append(
                f"hint: one column alone explains {percent(first.score)}, which may be due to its units; "
                "--scale lets all columns count alike"
            )
        if self.direct and self.model.search == "forward" and self.rest and self.model.n_features_ > 1:
            few = comb(len(self.names), self.model.n_features_) <= _QUICK
            lines.append(
                f"hint: --search {'exhaustive finds the best columns of all' if few else 'swap may find better columns'}"
            )
        return [Note("\n".join(lines), only="text")] if lines else []


_TASKS = {
    ("linear", True): "logistic regression",
    ("linear", False): "least-squares regression",
    ("neighbours", True): "5 nearest neighbours",
    ("neighbours", False): "5 nearest neighbours",
    ("forest", True): "random forest",
    ("forest", False): "random forest",
}


def _folds(cv: Any) -> int:
    return int(cv if isinstance(cv, int) else cv.get_n_splits())


def _told(model: Any, step: SelectionStep) -> str:
    """What a step did; of many columns at once, how many."""
    if len(step.added) > 6:
        return "all columns" if len(step.added) == len(model.path_.names) else f"{len(step.added)} columns"
    return str(model.path_.told(step))
