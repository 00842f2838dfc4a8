"""`foldwise explore`: the main job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, validators

from foldwise.cli.options import COMPUTE, EXPLORE_INPUT, STANDARD_INPUT, Compute, ExploreInput, OptionalCount, Seed

if TYPE_CHECKING:
    from foldwise.selection.explore import Exploration


def _files(_: Any, tokens: Any) -> list[str]:
    """The files that were named."""
    return ["-" if token.value == STANDARD_INPUT else token.value for token in tokens]


# fmt: off
Files = Annotated[list[str], Parameter(converter=_files, help=
    'One or more files of the same columns: CSV and other text, Excel, Parquet, Arrow, JSON lines, SQLite, DuckDB, .npy or '
    '.npz; - for standard input; images, a folder of them or an IDX file; a quoted glob ("data/*.parquet", "faces/*.png"), or '
    'an SQL query over files.')]
# fmt: on


def explore(
    files: Files,
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "--report"])] = Path("report.html"),
    rows: Path | None = None,
    model: Path | None = None,
    summary: Path | None = None,
    clusters: Annotated[OptionalCount, Parameter(name=["--clusters", "-k"])] = None,
    max_clusters: Annotated[int, Parameter(validator=validators.Number(gte=2))] = 20,
    scale: Literal["auto", "yes", "no"] = "auto",
    metric: Literal["auto", "euclidean", "cosine"] = "auto",
    max_rows: Annotated[int, Parameter(validator=validators.Number(gte=1000))] = 100_000,
    seed: Seed = 0,
    checkpoint: Path | None = None,
    json: bool = False,
    keep: Literal["ids", "all"] = "ids",
    given: ExploreInput = EXPLORE_INPUT,
    compute: Compute = COMPUTE,
) -> int:
    """Find out what is in a table: directions, groups, how many, how sure, what sets them apart; as a page to forward.

    Writes report.html and beside it rows.csv (or .parquet: the cluster of each row, its confidence, its scores), model.fw (for
    `foldwise apply`) and summary.json. With --out NAME.html, the others are NAME-rows.csv and so on.

    Ctrl-C writes the report of what is done.

    Parameters
    ----------
    out
        The page to write (.html).
    rows
        The file with one line for each row (.csv, .csv.gz, .parquet, .jsonl). Default: beside --out; .csv up to 100,000 rows.
    model
        The file for `foldwise apply`. Default: beside --out.
    summary
        The file with all figures and sentences, for programs. Default: beside --out.
    clusters
        The number of groups, if you know it.
    max_clusters
        The largest number of groups that is tried.
    scale
        Whether to divide each column by its standard deviation first. auto: if their spreads differ more than 5-fold.
    metric
        cosine compares the directions of rows and not their lengths: for documents and embeddings.
    max_rows
        Of larger tables, steps that take long use a random sample of so many rows; every row is assigned all the same.
    checkpoint
        A folder that keeps the results of long steps: run the same command again after a stop or a crash to go on from there.
    json
        Print the summary as JSON.
    keep
        Which columns of the file --rows has beside the results: the identifiers and labels, or all.
    """
    import foldwise as fw
    from foldwise.cli.check_outputs import check_outputs
    from foldwise.cli.options import Output
    from foldwise.selection.explore import open_rows

    places = _Places.of(out, rows, model, summary)
    outputs = {"--out": places.out, "--model": places.model, "--summary": places.summary} | places.rows
    for file in files:
        check_outputs(file, Output(), more=outputs)
    source = _opened(files, given, open_rows)
    with compute.engine_context(), fw.progress():
        found = fw.explore(
            source,
            n_clusters=clusters,
            max_clusters=max_clusters,
            scale=scale if scale == "auto" else scale == "yes",
            metric=metric,
            missing=given.missing,
            max_rows=max_rows,
            random_state=seed,
            checkpoint=checkpoint,
            n_threads=compute.threads,
        )
        return _finish(replace(found, command=_typed()), places, keep, as_json=json)


@dataclass(frozen=True)
class _Places:
    """Where everything is written."""

    out: Path
    model: Path
    summary: Path
    asked: Path | None  # the file of rows, if it was named

    @classmethod
    def of(cls, out: Path, rows: Path | None, model: Path | None, summary: Path | None) -> _Places:
        """Beside the page unless they were named; an error if a name says something else than it is."""
        from foldwise.data.files import output_format_of
        from foldwise.errors import ParameterError

        if out.suffix.lower() not in (".html", ".htm"):
            raise ParameterError(f"--out {out}: the report is a web page; give a name that ends in .html.")
        if rows is not None:
            output_format_of(str(rows))
        return cls(out, model or _beside(out, "model.fw"), summary or _beside(out, "summary.json"), rows)

    @property
    def rows(self) -> dict[str, Path]:
        """The files of rows that may be written."""
        some = (
            [self.asked]
            if self.asked is not None
            else [_beside(self.out, f"rows.{kind}") for kind in ("csv", "parquet")]
        )
        return {f"--rows {path.name}" if self.asked is None else "--rows": path for path in some}

    def rows_for(self, count: int) -> Path:
        """The file of so many rows."""
        if self.asked is not None:
            return self.asked
        return _beside(self.out, "rows.csv" if count <= _MOST_IN_TEXT else "rows.parquet")


_MOST_IN_TEXT = 100_000


def _beside(out: Path, name: str) -> Path:
    return out.with_name(name if out.stem == "report" else f"{out.stem}-{name}")


def _opened(files: list[str], given: ExploreInput, open_rows: Any) -> Any:
    """The source; arrays and images as they are."""
    from foldwise.cli.open_input import open_input, preparing
    from foldwise.data.array_files import is_array_file

    if is_array_file(files, given.table):
        return open_input(files[0] if len(files) == 1 else files, replace(given, categories="describe"))
    return open_rows(files[0] if len(files) == 1 else files, **preparing(given))


def _typed() -> str:
    """The command as it was typed."""
    import shlex
    import sys

    return shlex.join(["foldwise", *sys.argv[1:]])


def _finish(found: Exploration, places: _Places, keep: str, *, as_json: bool) -> int:
    """Print the summary, write all files, and say which."""
    from foldwise.cli.output import as_json as as_text
    from foldwise.cli.output import saved, show, write_rows
    from foldwise.cli.words import as_options
    from foldwise.data.atomic import replacing_all
    from foldwise.report.explore import explore_report
    from foldwise.report.explore.summary import summary_of
    from foldwise.report.html import as_html

    overview = replace(found.overview, notes=tuple(as_options(note) for note in found.overview.notes))
    found = replace(found, overview=overview)
    report, values = explore_report(found), summary_of(found)
    report = replace(report, data=[as_options(line) for line in report.data])
    failure = show(as_text(values) if as_json else f"{report}\n")
    contents = {
        places.out: as_html(report).encode(),
        places.model: saved(found.model),
        places.summary: (as_text(values) + "\n").encode(),
    }
    figures = [] if found.confidence is None else [("confidence", found.confidence)]
    rows, stopped = places.rows_for(found.overview.rows), bool(found.unfinished)
    with replacing_all(contents) as settle:  # all files are of one run, or all are as before
        try:
            written = write_rows(found.model, found.source, rows, keep, figures, place=1)
        except KeyboardInterrupt:
            written, stopped = f"{rows} was not written: interrupted", True
        settle()
    if not as_json:
        lines = [f"rows: {written}", f"model: {places.model}", f"summary: {places.summary}", f"report: {places.out}"]
        failure = show("\n".join(lines)) or failure
    if failure is not None:
        raise failure
    return 130 if stopped else 0
