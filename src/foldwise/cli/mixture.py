"""`foldwise mixture`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from foldwise.cli.options import (
    COMPUTE,
    INPUT,
    OUTPUT,
    RESUME,
    AtLeastZero,
    Compute,
    Count,
    File,
    Input,
    OptionalAtLeastZero,
    OptionalCount,
    Output,
    Resume,
    Scale,
    Seed,
    Steady,
)


def mixture(
    file: File,
    /,
    *,
    components: Annotated[str, Parameter(name=["--components", "-k"])] = "1:9",
    type_: Annotated[str, Parameter(name="--type")] = "full,tied,diag,spherical",
    criterion: Literal["bic", "icl", "aic"] = "bic",
    merge: str | None = None,
    scale: Scale = False,
    latent: OptionalCount = None,
    ridge: OptionalAtLeastZero = None,
    starts: Count = 1,
    seed: Seed = 0,
    max_iter: Count = 2000,
    tol: AtLeastZero = 1e-7,
    stability: Steady = False,
    given: Input = INPUT,
    output: Output = OUTPUT,
    resuming: Resume = RESUME,
    compute: Compute = COMPUTE,
) -> int:
    """Find groups of different sizes and shapes, with probabilities for every row (mixture of Gaussians, by EM).

    Fits every number of components with every covariance type, and prints the clusters of the best and what sets each apart.

    Checkpoints and time budgets are for one number and one type.

    Parameters
    ----------
    components
        The number of components; a range of numbers to compare by the criterion, as in 2:9; or auto: as many as several
        criteria agree on, as in `foldwise cluster -k auto`.
    type_
        Covariance types: full (ellipsoids), tied (all alike), diag (along the columns), spherical, ppca (for many columns).
    criterion
        The criterion to choose by, lower being better; icl prefers clusters that lie apart.
    merge
        Merge components into this many clusters by entropy, or auto: where the entropy bends.
    latent
        The number of directions of each component of type ppca. Default: 2.
    ridge
        Added to the variance of every column of every component, to avoid collapse. Default: very little, by the data.
    starts
        The number of starts of each fit.
    max_iter
        The largest number of iterations from one start.
    tol
        Stop when further iterations are projected to raise the mean log-likelihood of a row by less than this.
    """
    import foldwise as fw
    from foldwise.cli.check_outputs import check_outputs
    from foldwise.cli.number import chosen_number, end_with_votes, rest_of
    from foldwise.cli.options import number_or_range, spooled_scan
    from foldwise.cli.output import finish
    from foldwise.cli.stability import add_stability
    from foldwise.report.choice import choice_report
    from foldwise.report.mixture import mixture_report

    wanted, types = number_or_range(components, "--components"), _types(type_)
    merge_into, place = _clusters(merge), resuming.place(output)
    check_outputs(file, output, place)
    settings: dict[str, Any] = {
        "scale": scale,
        "missing": given.missing,
        "n_latent": latent,
        "reg_covar": "auto" if ridge is None else ridge,
        "n_init": starts,
        "random_state": seed,
        "max_iter": max_iter,
        "tol": tol,
        "n_threads": compute.threads,
    }
    if several := isinstance(wanted, range) or len(types) > 1:
        resuming.refuse("only for one number and one type, as in -k 3 --type full. Look at the table first.")
    choice = votes = None
    with compute.engine_context(), spooled_scan(file, given) as source:
        if wanted == "auto":
            votes = chosen_number(source, wanted, settings, place, resuming.time_budget)
            if votes.interrupted:
                return end_with_votes(votes, choice_report(votes, source, scale=scale), output, place)
            wanted = votes.n_clusters or 1
        with fw.progress():
            if several or isinstance(wanted, range):
                numbers = wanted if isinstance(wanted, range) else [wanted]
                choice = fw.choose_mixture(source, numbers, types, criterion, **settings)
                fitted = choice.best_model
            else:
                settings |= {"checkpoint": place, "time_budget": rest_of(resuming.time_budget, votes)}
                fitted = fw.GaussianMixture(wanted, covariance_type=types[0], **settings).fit(source)
        with fw.progress():
            if merge_into is not None:
                fitted = fitted.merge(source, None if merge_into == "auto" else int(merge_into))
            report = mixture_report(fitted, source, choice, votes)
        stopped = fitted.outcome_.reason == "interrupted" or (choice is not None and choice.interrupted)
        ending: dict[str, Any] = {"interrupted": stopped}
        if stability and not stopped:
            report, ending = add_stability(report, fitted, source, seed)
        return finish(report, output, model=fitted, source=source, rows="clusters", checkpoint=place, **ending)


def _types(text: str) -> list[str]:
    from foldwise.errors import ParameterError
    from foldwise.models.mixture.covariance import COVARIANCE_TYPES

    types = [part.strip() for part in text.split(",") if part.strip()]
    if not types or any(one not in COVARIANCE_TYPES for one in types):
        known = ", ".join(f"{name} ({kind.label})" for name, kind in COVARIANCE_TYPES.items())
        raise ParameterError(f"--type {text}: give some of {known}, separated by commas.")
    return types


def _clusters(text: str | None) -> int | str | None:
    from foldwise.errors import ParameterError

    if text is None or text == "auto":
        return text
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    raise ParameterError(f"--merge {text}: give a number of clusters, or auto.")
