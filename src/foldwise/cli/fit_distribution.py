"""`foldwise fit-distribution`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter, validators

from foldwise.cli.options import File, Threads, Weights, Where


def fit_distribution(
    file: File,
    /,
    *,
    column: Annotated[str | None, Parameter(name=["--column", "-c"])] = None,
    family: Annotated[list[str] | None, Parameter(name=["--family", "-f"])] = None,
    fixed: list[str] | None = None,
    method: Literal["auto", "newton", "gradient"] = "auto",
    confidence: Annotated[float, Parameter(validator=validators.Number(gt=0, lt=1))] = 0.95,
    criterion: Literal["aic", "bic"] = "aic",
    no_test: bool = False,
    json: bool = False,
    out: Path | None = None,
    model: Path | None = None,
    report: Path | None = None,
    where: Where = None,
    weights: Weights = None,
    checkpoint: Path | None = None,
    time_budget: Annotated[float | None, Parameter(validator=validators.Number(gt=0))] = None,
    threads: Threads = None,
) -> int:
    """Fit a distribution to a column by maximum likelihood, or compare several.

    Prints the parameters with standard errors and intervals, how families compare, and whether the best one fits at all.

    Parameters
    ----------
    file
        CSV, Parquet, JSON lines or .npy; a quoted glob ("data/*.parquet"), or SQL text that names files.
    column
        The column, by name, or by number from 0 on for .npy. Default: the only one that is numbers.
    family
        A family such as gamma, several (gamma,weibull), or all (the default).
    fixed
        Parameters that are known, as in --fixed sigma=5; for several families with their name: --fixed normal.sigma=5.
    method
        auto takes a formula where there is one; gradient and newton always climb.
    confidence
        Of the intervals.
    criterion
        By what families are compared.
    no_test
        Do not test whether the (best) family fits, which takes a second or two.
    json
        Print everything as JSON instead.
    out
        Write everything as JSON here (.json).
    model
        Write the fit here; fw.load reads it.
    report
        Write a page with the figures and plots here (.html).
    checkpoint
        Keep the state of the fit in this file, and go on from it if it is there: for families that take many passes.
    time_budget
        Stop after this many seconds of steps, with the best so far.
    """
    from foldwise import fit_distribution as fit
    from foldwise import progress, save, scan
    from foldwise.cli.options import check_outputs, left_out_quietly
    from foldwise.cli.show import show
    from foldwise.errors import DataError
    from foldwise.models.likelihood import Comparison
    from foldwise.report.distribution import as_values, refusals, summary

    check_outputs(file, out, model, checkpoint, report=report)
    names = [name for text in family or ["all"] for name in text.split(",")]
    asked: Any = names[0] if len(names) == 1 else names
    several = asked == "all" or not isinstance(asked, str)
    data: Any = file
    place: Any = int(column) if column is not None and file.endswith(".npy") and column.isdigit() else column
    if where is not None or weights is not None:
        with left_out_quietly():
            chosen = "numeric" if place is None else [place]
            data, place = scan(file, columns=chosen, where=where, weights=weights), None
    with progress():
        found = fit(
            data,
            asked,
            column=place,
            fixed=_fixed(fixed or [], several),
            method=method,
            confidence=confidence,
            criterion=criterion,
            checkpoint=checkpoint,
            time_budget=time_budget,
            n_threads=threads,
        )
    fits = found.fits if isinstance(found, Comparison) else (found,)
    if isinstance(found, Comparison) and not fits:
        raise DataError(f"none of these families can have such values. {refusals(found)}", where=file)
    goodness = fits[0].goodness_of_fit() if fits and not no_test else None
    values = as_values(found, goodness)
    show(_text(values) if json else summary(found, goodness))
    if out is not None:
        from foldwise.data.atomic import replacing

        with replacing(out) as stream:
            stream.write((_text(values) + "\n").encode())
        _tell(json, f"figures: {out}")
    if model is not None:
        save(found, model)
        _tell(json, f"model: {model}")
    if report is not None:
        from foldwise.report.distribution_page import write_distribution_page

        with progress():
            _tell(json, f"report: {write_distribution_page(found, goodness, report)}")
    return 130 if any(one.outcome.reason == "interrupted" for one in fits) else 0


def _tell(json: bool, text: str) -> None:
    from foldwise.cli.show import show

    if not json:  # then only JSON goes to standard output
        show(text)


def _text(values: dict[str, Any]) -> str:
    import json

    return json.dumps(values, indent=2)


def _fixed(texts: list[str], several: bool) -> dict[str, Any]:
    """`--fixed` as `fit_distribution` takes it."""
    from foldwise.errors import ParameterError

    found: dict[str, Any] = {}
    for text in (part for words in texts for part in words.split(",")):
        name, equals, value = text.partition("=")
        family, dot, parameter = name.rpartition(".")
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not equals or number != number or bool(dot) is not several:
            example = "normal.sigma=5 (with several families)" if several else "sigma=5"
            raise ParameterError(f"--fixed {text}: give a name and a number, as in {example}.")
        if several:
            found.setdefault(family, {})[parameter] = number
        else:
            found[parameter] = number
    return found
