"""`--target` and `--task`: the final task that columns are chosen for, as a pipeline of scikit-learn.

To be imported when a command runs, since scikit-learn takes long to import.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from foldwise.cli.options import Input, split
from foldwise.data.array_files import is_array_file
from foldwise.errors import FoldwiseWarning, ParameterError, warn
from foldwise.prepare.prepared import prepared_of
from foldwise.prepare.target import Target, target_of

_NEIGHBOURS = 5


def open_with_target(file: str, given: Input, target: str) -> tuple[Any, Target]:
    """The rows without the target, which is carried along as a label, and the target itself."""
    if is_array_file(file, given.table):
        raise ParameterError(f"--target {target}: the columns of arrays and images have no names. Use a table.")
    if target == given.weights:
        raise ParameterError(f"--target {target}: the weights cannot be the target too.")
    if target in split(given.id_ or []):
        raise ParameterError(f"--target {target}: --id says that it names the rows.")
    quoted = '"' + target.replace('"', '""') + '"'
    source = replace(given, label=[*(given.label or []), quoted]).open(file)
    prepared = prepared_of(source)
    assert prepared is not None
    return source, target_of(prepared, target)


def estimator_for(task: str, target: Target, folds: int, seed: int, *, impute: bool, weighted: bool) -> Any:
    """The pipeline: missing cells filled with means of the training rows if asked for, columns standardised, then the model."""
    rows = len(target.values)
    if rows < 2 * folds:
        raise ParameterError(f"--folds {folds}: {rows} rows with a target are too few. Give fewer folds.")
    if target.is_category:
        _check_levels(target, folds)
    if weighted and task == "neighbours":
        raise ParameterError("--task neighbours takes no weights. Leave out --weights, or use another task.")
    model = _model(task, target.is_category, rows - -(-rows // folds), seed)
    steps = [
        *([("impute", SimpleImputer(keep_empty_features=True))] if impute else []),
        ("standardise", StandardScaler()),
    ]
    return WeightedPipeline([*steps, ("model", model)])


def splitter_for(target: Target, folds: int, seed: int) -> Any:
    """The folds, of rows in random order: in a file, rows of a kind often stand together."""
    return (StratifiedKFold if target.is_category else KFold)(folds, shuffle=True, random_state=seed)


def _check_levels(target: Target, folds: int) -> None:
    counts = Counter(target.values.tolist())
    few = [f"{level} ({many})" for level, many in counts.items() if many < folds]
    if len(few) == len(counts):
        raise ParameterError(
            f"--target {target.name}: every level has fewer rows than --folds {folds}. Give fewer folds; if the numbers are "
            f"to be predicted as such, --as {target.name}=number."
        )
    if few:
        named = ", ".join(few[:5]) + (f" and {len(few) - 5} more" if len(few) > 5 else "")
        warn(
            f"levels of {target.name} with fewer rows than --folds {folds}: {named}; some folds know nothing of them",
            FoldwiseWarning,
        )


def _model(task: str, classify: bool, rows: int, seed: int) -> Any:
    """The last step of the pipeline, for training sets of `rows`."""
    if task == "forest":
        return (RandomForestClassifier if classify else RandomForestRegressor)(random_state=seed)
    if task == "neighbours":
        return (KNeighborsClassifier if classify else KNeighborsRegressor)(min(_NEIGHBOURS, rows))
    return LogisticRegression(max_iter=1000) if classify else LinearRegression()


class WeightedPipeline(Pipeline):  # type: ignore[misc]
    """A pipeline whose steps after filling in know the weights of rows."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit every step; the weights, if there are any, go to all but the one that fills missing cells."""
        names = [] if sample_weight is None else [name for name, _ in self.steps if name != "impute"]
        return super().fit(X, y, **{f"{name}__sample_weight": sample_weight for name in names})
