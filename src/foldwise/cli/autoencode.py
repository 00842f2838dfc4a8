"""`foldwise autoencode`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Parameter, validators

from foldwise.cli.options import (
    COMPUTE,
    INPUT,
    OUTPUT,
    RESUME,
    AtLeastZero,
    Compute,
    File,
    Input,
    OptionalCount,
    Output,
    Resume,
    Scale,
    Seed,
)


def autoencode(
    file: File,
    /,
    *,
    size: Annotated[int | None, Parameter(name=["--size", "-k"], validator=validators.Number(gte=1))] = None,
    sizes: str | None = None,
    layers: str | None = None,
    activation: Literal["relu", "elu", "silu", "gelu", "tanh", "sigmoid", "softplus"] = "silu",
    noise: AtLeastZero = 0.0,
    dropout: Annotated[float, Parameter(validator=validators.Number(gte=0, lt=1))] = 0.0,
    epochs: OptionalCount = None,
    scale: Scale = False,
    seed: Seed = 0,
    given: Input = INPUT,
    output: Output = OUTPUT,
    resuming: Resume = RESUME,
    compute: Compute = COMPUTE,
) -> int:
    """Learn codes of a few numbers from which the rows can be reconstructed (an autoencoder; needs torch).

    Prints what the codes lose of held-out rows beside PCA of the same size, what they tell of each column, and the rows that
    they reconstruct worst.

    With --sizes, autoencoders of several sizes are compared with PCA instead.

    Parameters
    ----------
    size
        How many numbers a code has; 2 if it is not given.
    sizes
        Compare codes of these sizes with as many principal components, on rows held out once for all, as in 1,2,4,8. --out
        then writes the figures (.json); there is no model to save.
    layers
        The widths of the hidden layers of the encoder, as in 512,256,128; the decoder has the same, in reverse. Default: by the
        number of columns.
    activation
        The function of the hidden layers.
    noise
        Noise added to the rows in training, in typical standard deviations (a denoising autoencoder).
    dropout
        The share of hidden inputs that training leaves out at random.
    epochs
        How often training passes over the rows at most. Default: by the number of rows.
    """
    from foldwise import Autoencoder, compare_codes, progress
    from foldwise.cli.check_outputs import check_outputs
    from foldwise.cli.options import spooled_scan
    from foldwise.cli.output import finish, save_early
    from foldwise.errors import ParameterError
    from foldwise.report.autoencoder import autoencoder_report
    from foldwise.report.codes import comparison_report

    if sizes is not None:
        _check_comparison(size, output)
    place = resuming.place(output)
    check_outputs(file, output, place, rows=sizes is None)
    widths = None if layers is None else _numbers(layers, "--layers", "512,256,128")
    several = None if sizes is None else _numbers(sizes, "--sizes", "1,2,4,8")
    settings: dict[str, Any] = {
        "encoder": widths,
        "activation": activation,
        "noise": noise,
        "dropout": dropout,
        "max_iter": "auto" if epochs is None else epochs,
        "scale": scale,
        "missing": given.missing,
        "random_state": seed,
        "n_threads": compute.threads,
    }
    stopping: dict[str, Any] = {"checkpoint": place, "time_budget": resuming.time_budget}
    with compute.engine_context(), spooled_scan(file, given) as source:
        if several is not None:
            with progress():
                found = compare_codes(
                    source,
                    several,
                    autoencoder=Autoencoder(**settings),
                    random_state=seed,
                    n_threads=compute.threads,
                    **stopping,
                )
            report = comparison_report(found, source, scale=scale)
            return finish(report, output, model=found, checkpoint=place, interrupted=found.interrupted)
        if (size or 2) > source.n_columns:  # in the words of the command
            raise ParameterError(
                f"--size {size or 2}: a code must not have more numbers than the {source.n_columns} columns."
            )
        with progress():
            fitted = Autoencoder(size or 2, **settings, **stopping).fit(source)
        save_early(fitted, output)
        with progress():
            report = autoencoder_report(fitted, source)
        stopped = fitted.outcome_.reason == "interrupted"
        return finish(report, output, model=fitted, source=source, rows="codes", checkpoint=place, interrupted=stopped)


def _check_comparison(size: int | None, output: Output) -> None:
    """Refuse what has no meaning where several sizes are compared."""
    from foldwise.errors import ParameterError

    if size is not None:
        raise ParameterError("--size and --sizes: give one of them.")
    if output.model is not None:
        raise ParameterError("--model: --sizes compares several models and keeps none. Run again with --size.")
    if output.out is not None and output.out.suffix.lower() != ".json":
        raise ParameterError(
            f"--out {output.out}: with --sizes, --out has the figures of the comparison; give a name that ends in .json."
        )


def _numbers(text: str, option: str, example: str) -> list[int]:
    """Whole numbers separated by commas.

    >>> _numbers("512, 256", "--layers", "512,256")
    [512, 256]
    """
    from foldwise.errors import ParameterError

    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) >= 1 for part in parts):
        raise ParameterError(f"{option} {text}: give whole numbers separated by commas, as in {example}.")
    return [int(part) for part in parts]
