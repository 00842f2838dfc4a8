"""`foldwise superpixels`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter, validators

from foldwise.cli.options import AtLeastZero, Count, OptionalCount

if TYPE_CHECKING:
    from foldwise.models.images.superpixels import Superpixels


def superpixels(
    image: str,
    /,
    *others: Annotated[str, Parameter(show=False)],
    segments: Annotated[int, Parameter(name=["--segments", "-n"], validator=validators.Number(gte=1))] = 400,
    compactness: Annotated[float, Parameter(validator=validators.Number(gt=0))] = 10.0,
    max_iter: Count = 10,
    min_size: AtLeastZero = 0.1,
    smoothness: AtLeastZero = 1.0,
    space: Literal["auto", "lab", "raw"] = "auto",
    out: Path | None = None,
    means: Path | None = None,
    labels: Path | None = None,
    table: Path | None = None,
    report: Path | None = None,
    json: bool = False,
    threads: OptionalCount = None,
) -> int:
    """Divide a picture into connected segments of similar colour (SLIC).

    Prints how many there are and how large, how much of the picture their mean colours explain, and how compact they are.

    Parameters
    ----------
    image
        An image file.
    segments
        How many segments.
    compactness
        The weight of position against colour, as in scikit-image: 1 follows colours anywhere, 40 gives nearly squares.
    max_iter
        The most iterations.
    min_size
        The least size of a segment, as a share of the mean size.
    smoothness
        How smooth outlines are made; 0 leaves them as they are.
    space
        What is compared: lab, colours as the eye sees them, or raw, the channels as they are. auto: lab for colours and grey
        of 8 or 16 bits.
    out
        Write the picture with outlines to this file (.png, .jpg, ...).
    means
        Write the picture with each segment in its mean colour to this file.
    labels
        Write the number of each pixel's segment: .npy, or .png (grey of 16 bits).
    table
        Write a line for each segment: pixels, centre, mean colour, box, compactness (.csv, .parquet, .jsonl).
    report
        Write a web page with pictures, sizes and the table to this file (.html).
    json
        Print the results as JSON.
    threads
        Number of threads; the result does not depend on it.
    """
    import foldwise as fw
    from foldwise.cli.check_outputs import check_outputs
    from foldwise.cli.options import Output
    from foldwise.cli.output import finish
    from foldwise.data.files import output_format_of
    from foldwise.errors import ParameterError
    from foldwise.models.images.superpixels import check_labels_path
    from foldwise.report.superpixels import superpixels_report

    if others:
        raise ParameterError(f"{others[0]}: superpixels takes one image at a time, and {image} is one already.")
    output = Output(report=report, json=json)
    files = {"--out": out, "--means": means, "--labels": labels, "--table": table}
    check_outputs(image, output, rows=False, more={option: path for option, path in files.items() if path is not None})
    for path in (out, means):
        if path is not None:
            _check_picture(path)
    if labels is not None:
        check_labels_path(labels, segments)
    if table is not None:
        output_format_of(str(table))
    with fw.progress():
        found = fw.superpixels(
            image,
            segments,
            compactness,
            max_iter=max_iter,
            min_size=min_size,
            smoothness=smoothness,
            space=space,
            n_threads=threads,
        )
    written = _write(found, out, means, labels, table)
    code = finish(superpixels_report(found), output, interrupted=found.outcome.reason == "interrupted")
    if written and not json:
        print("\n".join(written), flush=True)
    return code


def _check_picture(path: Path) -> None:
    from foldwise.data.image_endings import ENDINGS
    from foldwise.errors import ParameterError

    if path.suffix.lower() not in ENDINGS:
        raise ParameterError(f"{path}: pictures are written as {', '.join(ENDINGS)}.")


def _write(
    found: Superpixels, out: Path | None, means: Path | None, labels: Path | None, table: Path | None
) -> list[str]:
    """Write what was asked for; what was written where."""
    import numpy as np

    from foldwise.data.image_file import write_image
    from foldwise.data.write import open_writer
    from foldwise.models.images.superpixels import for_screen

    written = []
    if out is not None:
        write_image(out, found.boundaries())
        written.append(f"outlines: {out}")
    if means is not None:
        mean = found.mean_image()
        whole = mean.dtype == np.uint8 and (mean.ndim == 2 or mean.shape[2] in (3, 4))
        keeps = whole and not (mean.ndim == 3 and mean.shape[2] == 4 and means.suffix.lower() in (".jpg", ".jpeg"))
        write_image(means, mean if keeps else for_screen(mean))
        written.append(f"mean colours: {means}")
    if labels is not None:
        found.save_labels(labels)
        written.append(f"labels: {labels}")
    if table is not None:
        columns = found.columns()
        kind = np.dtype(
            [(name, np.int64 if values.dtype.kind == "i" else np.float64) for name, values in columns.items()]
        )
        rows = np.empty(found.n_segments, kind)
        for name, values in columns.items():
            rows[name] = values
        with open_writer(table, list(columns), kind) as writer:
            writer.write(rows)
        written.append(f"table: {table} ({found.n_segments:,} rows)")
    return written
