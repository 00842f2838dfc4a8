"""`foldwise mixture`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter, validators

from foldwise.cli.options import Columns, File, Threads, Weights, Where


def mixture(
    file: File,
    /,
    *,
    components: Annotated[str, Parameter(name=["--components", "-k"])] = "1:9",
    type_: Annotated[str, Parameter(name="--type")] = "full,tied,diag,spherical",
    criterion: Literal["bic", "icl", "aic"] = "bic",
    merge: Annotated[str | None, Parameter(name="--merge")] = None,
    scale: bool = False,
    latent: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = None,
    ridge: Annotated[float | None, Parameter(validator=validators.Number(gte=0))] = None,
    starts: Annotated[int, Parameter(validator=validators.Number(gte=1))] = 1,
    seed: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 0,
    max_iter: Annotated[int, Parameter(validator=validators.Number(gte=1))] = 2000,
    tol: Annotated[float, Parameter(validator=validators.Number(gte=0))] = 1e-7,
    out: Path | None = None,
    model: Path | None = None,
    report: Path | None = None,
    columns: Columns = None,
    where: Where = None,
    weights: Weights = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    time_budget: Annotated[float | None, Parameter(validator=validators.Number(gt=0))] = None,
    threads: Threads = None,
) -> int:
    """Find groups of different sizes and shapes, and rows that belong to several in part (mixture of Gaussians, by EM).

    Fits every number of components with every covariance type asked for, keeps the best by BIC, and prints the table, the
    clusters, what sets each apart, and their means.

    Parameters
    ----------
    file
        CSV, Parquet, JSON lines or .npy; a quoted glob ("data/*.parquet"), or SQL text that names files.
    components
        How many components, or a range of numbers to compare, as in 2:9.
    type_
        Shapes to compare: full (ellipsoids), tied (all alike), diag (along the columns), spherical, ppca (for many columns).
    criterion
        What to choose by, lower being better; icl wants clusters that lie apart.
    merge
        Merge components into this many clusters by entropy, or auto: where the entropy bends.
    scale
        Divide each column by its standard deviation first; matters for spherical and ppca.
    latent
        Directions of each component of type ppca. Default: 2.
    ridge
        A variance that is added to every column of every component, against collapse. Default: very little, by the data.
    starts
        How many starts of its own each fit has.
    seed
        Another number gives other starts; the same number gives the same model.
    max_iter
        The most steps of a start.
    tol
        Stop when the mean log-likelihood of a row changes by less than this.
    out
        Write cluster, probabilities and log-density of every row here (.parquet, .csv, .csv.gz, .jsonl or .npy).
    model
        Write the fitted model here; `foldwise apply` uses it on new rows.
    report
        Write a page with the figures and plots here (.html).
    checkpoint
        One number and one type: keep the state of the fit in this file, and go on from it if it is there.
    resume
        --checkpoint beside --model (else --out), with .checkpoint added to the name: run a stopped command again to go on.
    time_budget
        One number and one type: stop after this many seconds of steps, with the best model so far.
    """
    from foldwise import scan
    from foldwise.cli.options import check_outputs, checkpoint_place, column_list, left_out_quietly, number_or_range
    from foldwise.data.files import format_of
    from foldwise.data.spool import spooled

    asked, kinds = number_or_range(components, "--components"), _types(type_)
    into = _clusters(merge)
    place = checkpoint_place(checkpoint, resume, model, out)
    check_outputs(file, out, model, place, report=report)
    if out is not None:
        format_of(os.fspath(out))
    settings: dict[str, Any] = {
        "scale": scale,
        "n_latent": latent,
        "reg_covar": "auto" if ridge is None else ridge,
        "n_init": starts,
        "random_state": seed,
        "max_iter": max_iter,
        "tol": tol,
        "n_threads": threads,
    }
    if isinstance(asked, range) or len(kinds) > 1:
        _refuse_for_many(checkpoint=checkpoint, resume=resume, time_budget=time_budget)
    else:
        settings |= {"checkpoint": place, "time_budget": time_budget}
    with left_out_quietly():
        opened = scan(file, columns=column_list(columns, file), where=where, weights=weights)
    with spooled(opened) as source:
        return _run(source, asked, kinds, criterion, into, settings, out, model, report)


def _run(
    source: Any,
    asked: int | range,
    kinds: list[str],
    criterion: str,
    into: int | str | None,
    settings: dict[str, Any],
    out: Path | None,
    model: Path | None,
    report: Path | None,
) -> int:
    from foldwise import GaussianMixture, choose_mixture, progress, save
    from foldwise.cli.options import write_rows
    from foldwise.cli.show import show
    from foldwise.report.mixture import summary
    from foldwise.selection.mixture_profile import mixture_profile

    choice = None
    with progress():
        if isinstance(asked, range) or len(kinds) > 1:
            numbers = asked if isinstance(asked, range) else [asked]
            choice = choose_mixture(source, numbers, kinds, criterion, **settings)
            fitted = choice.best_model
        else:
            fitted = GaussianMixture(asked, covariance_type=kinds[0], **settings).fit(source)
    if into is not None:
        with progress():
            fitted = fitted.merge(source, None if into == "auto" else int(into))
    with progress():
        found = mixture_profile(fitted, source)
    show(summary(fitted, found, choice))
    place = settings.get("checkpoint")
    if place is not None and place.exists():
        show(f"checkpoint: {place} (run the same command again to go on)")
    if model is not None:
        save(fitted, model)
        show(f"model: {model}")
    if out is not None:
        show(f"clusters: {write_rows(fitted, source, out)}")
    if report is not None:
        from foldwise.report.mixture_page import write_mixture_page

        with progress():
            show(f"report: {write_mixture_page(fitted, source, found, choice, report)}")
    stopped = fitted.outcome_.reason == "interrupted" or (choice is not None and choice.interrupted)
    return 130 if stopped else 0


def _types(text: str) -> list[str]:
    from foldwise.errors import ParameterError
    from foldwise.models.mixture.covariance import COVARIANCE_TYPES

    kinds = [part.strip() for part in text.split(",") if part.strip()]
    if not kinds or any(kind not in COVARIANCE_TYPES for kind in kinds):
        known = ", ".join(f"{name} ({kind.label})" for name, kind in COVARIANCE_TYPES.items())
        raise ParameterError(f"--type {text}: give some of {known}, with commas between them.")
    return kinds


def _clusters(text: str | None) -> int | str | None:
    from foldwise.errors import ParameterError

    if text is None or text == "auto":
        return text
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    raise ParameterError(f"--merge {text}: give a number of clusters, or auto.")


def _refuse_for_many(**options: Any) -> None:
    from foldwise.errors import ParameterError

    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if given:
        raise ParameterError(
            f"{', '.join(given)}: only for one number and one type, as in -k 3 --type full. Look at the table first."
        )
