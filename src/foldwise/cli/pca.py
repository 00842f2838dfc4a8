"""`foldwise pca`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from foldwise.cli.options import COMPUTE, INPUT, OUTPUT, Compute, File, Input, Output, Scale


def pca(
    file: File,
    /,
    *,
    components: Annotated[str | None, Parameter(name=["--components", "-k"])] = None,
    scale: Scale = False,
    whiten: bool = False,
    solver: Literal["auto", "full", "covariance_eigh", "krylov", "power"] = "auto",
    checkpoint: Path | None = None,
    given: Input = INPUT,
    output: Output = OUTPUT,
    compute: Compute = COMPUTE,
) -> int:
    """Find the directions in which the rows of a table vary most (principal components).

    Prints the variance of each component, its share, and the columns that make it up.

    Parameters
    ----------
    components
        How many to keep: a number, a share of variance such as 0.95, a rule (parallel, held-out, mle, gavish-donoho,
        broken-stick), or auto, the number that these rules agree on.
    whiten
        Scale all scores to variance one.
    solver
        The algorithm; all give the same components.
    checkpoint
        With --solver krylov or power: keep the state of the fit in this file, and resume from it if it exists.
    """
    from foldwise import PCA, choose_components, progress
    from foldwise.cli.check_outputs import check_outputs
    from foldwise.cli.options import number_or_rule
    from foldwise.cli.output import finish
    from foldwise.errors import ParameterError
    from foldwise.report.pca import pca_report

    check_outputs(file, output, checkpoint)
    if checkpoint is not None and solver not in ("krylov", "power"):
        raise ParameterError(f"--checkpoint needs --solver krylov or power: {solver} has nothing to resume.")
    source = given.open(file)
    number, choice = number_or_rule(components), None
    common: dict[str, Any] = {"scale": scale, "missing": given.missing, "n_threads": compute.threads}
    with compute.engine_context():
        with progress():
            if number == "auto":
                choice = choose_components(source, **common)
                number = choice.agreed
            fitted = PCA(number, whiten=whiten, svd_solver=solver, checkpoint=checkpoint, **common).fit(source)
        stopped = fitted.outcome_.reason == "interrupted" or (choice is not None and choice.interrupted)
        report = pca_report(fitted, source, choice)
        return finish(report, output, model=fitted, source=source, rows="scores", interrupted=stopped)
