"""`foldwise fit-distribution`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter, validators

from foldwise.cli.options import COMPUTE, FILE_OPTIONS, OUTPUT, Compute, File, FileOptions, Output, Weights, Where


def fit_distribution(
    file: File,
    /,
    *,
    column: Annotated[str | None, Parameter(name=["--column", "-c"])] = None,
    family: Annotated[list[str] | None, Parameter(name=["--family", "-f"])] = None,
    fixed: list[str] | None = None,
    method: Literal["auto", "newton", "gradient"] = "auto",
    confidence: Annotated[float, Parameter(validator=validators.Number(gt=0, lt=1))] = 0.95,
    criterion: Literal["bic", "aic"] = "bic",
    no_test: bool = False,
    missing: Literal["drop", "error"] = "drop",
    where: Where = None,
    weights: Weights = None,
    options: FileOptions = FILE_OPTIONS,
    checkpoint: Path | None = None,
    time_budget: Annotated[float | None, Parameter(validator=validators.Number(gt=0))] = None,
    output: Output = OUTPUT,
    compute: Compute = COMPUTE,
) -> int:
    """Fit a distribution to a column by maximum likelihood, or compare several.

    Prints the parameters with standard errors and intervals, how families compare, and whether the best one fits at all.

    --out writes the results as JSON.

    Parameters
    ----------
    column
        The column, by name, or for .npy by position, from 0. Default: the only numeric one.
    family
        A family such as gamma, several (gamma,weibull), or all (the default).
    fixed
        Parameters that are known, as in --fixed sigma=5; with several families as in --fixed normal.sigma=5.
    method
        auto uses a closed form where there is one; newton and gradient always iterate.
    confidence
        The confidence level of the intervals.
    criterion
        The criterion by which families are ranked (the column score): bic, which finds the right family among many with
        enough values, or aic. In both, limits of the support that were estimated count as two parameters.
    no_test
        Skip the tests whether the (best) family fits, which take a second or two.
    missing
        drop leaves missing values out and says how many; error stops at the first.
    checkpoint
        Keep the state of the fit in this file, and resume from it if it exists: for families that take many passes.
    time_budget
        Stop after this many seconds of iterations and keep the best fit so far.
    """
    import foldwise as fw
    from foldwise.cli.check_outputs import check_outputs
    from foldwise.cli.open_input import open_column
    from foldwise.cli.output import finish
    from foldwise.errors import DataError
    from foldwise.models.likelihood import Comparison
    from foldwise.report.distribution import as_values, distribution_report, refusals

    check_outputs(file, output, checkpoint, rows=False)
    names = [name for text in family or ["all"] for name in text.split(",")]
    wanted: Any = names[0] if len(names) == 1 else names
    several = wanted == "all" or not isinstance(wanted, str)
    data = open_column(file, column, where, weights, options)
    with compute.engine_context():
        with fw.progress():
            found = fw.fit_distribution(
                data,
                wanted,
                missing=missing,
                fixed=_fixed(fixed or [], several),
                method=method,
                confidence=confidence,
                criterion=criterion,
                checkpoint=checkpoint,
                time_budget=time_budget,
                n_threads=compute.threads,
            )
        fits = found.fits if isinstance(found, Comparison) else (found,)
        if isinstance(found, Comparison) and not fits:
            raise DataError(f"none of these families allows these values. {refusals(found)}", where=file)
        goodness = None if no_test else fits[0].goodness_of_fit()
        report, values = distribution_report(found, goodness), as_values(found, goodness)
        stopped = any(fit.outcome.reason == "interrupted" for fit in fits)
        return finish(report, output, model=found, values=values, checkpoint=checkpoint, interrupted=stopped)


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
