"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from cyclopts import Parameter, validators

from foldwise.errors import LeftOutWarning, ParameterError

if TYPE_CHECKING:
    from foldwise.data.reading import Reading

STANDARD_INPUT = "standard input"  # what `main` makes of "-", which the parser would take for an option


def _file(_: Any, tokens: Any) -> str:
    """The file that was named."""
    text: str = tokens[0].value
    return "-" if text == STANDARD_INPUT else text


# fmt: off
File: TypeAlias = Annotated[str, Parameter(converter=_file, help=
    'CSV and other text, Excel, Parquet, Arrow, JSON lines, SQLite, DuckDB, .npy or .npz; - for standard input; a folder of '
    'images or an IDX file; a quoted glob ("data/*.parquet", "faces/*.png"), or an SQL query over files. '
    "A query is one statement; it reads whatever files you may read, and writes none.")]
Where: TypeAlias = Annotated[str | None, Parameter(help=
    'Use only the rows that satisfy this SQL condition, as in "x > 0". It sees no other files.')]
Weights: TypeAlias = Annotated[str | None, Parameter(help=
    "A column with the number of times each row counts.")]
Scale: TypeAlias = Annotated[bool, Parameter(help=
    "Divide each column by its standard deviation first: for columns in different units.")]
Seed: TypeAlias = Annotated[int, Parameter(validator=validators.Number(gte=0), help=
    "Seed of the random starts; the same seed gives the same model.")]
Steady: TypeAlias = Annotated[bool, Parameter(name="--stability", negative="", help=
    "Fit again to rows drawn at random, 100 times, and print which clusters stay; --out then has the confidence of each row. "
    "--time-budget and --checkpoint are for the fit before it; Ctrl-C keeps the repeats that are finished.")]
Count: TypeAlias = Annotated[int, Parameter(validator=validators.Number(gte=1))]
OptionalCount: TypeAlias = Annotated[int | None, Parameter(validator=validators.Number(gte=1))]
AtLeastZero: TypeAlias = Annotated[float, Parameter(validator=validators.Number(gte=0))]
OptionalAtLeastZero: TypeAlias = Annotated[float | None, Parameter(validator=validators.Number(gte=0))]


@Parameter(name="*")
@dataclass(frozen=True)
class FileOptions:
    """How a file is read; whatever is not given is found out from the file."""

    header: Annotated[Literal["yes", "no"] | None, Parameter(help=
        "Whether the first line has the names of the columns.")] = None
    delimiter: Annotated[str | None, Parameter(help=
        'What separates the cells of a text file: "," ";" "|" tab or space.')] = None
    decimal: Annotated[Literal[".", ","] | None, Parameter(help=
        "The decimal mark of a text file.")] = None
    encoding: Annotated[str | None, Parameter(help=
        "The encoding of a text file, such as utf-8 or latin-1.")] = None
    missing_values: Annotated[list[str] | None, Parameter(allow_leading_hyphen=True, help=
        "Words that stand for a missing cell, as in --missing-values unknown,-9; empty cells and NA always do.")] = None
    sheet: Annotated[str | None, Parameter(help=
        "The sheet of a workbook, by name or number.")] = None
    table: Annotated[str | None, Parameter(help=
        "The table of a database, or the array of an .npz file.")] = None
    skip: Annotated[int | None, Parameter(validator=validators.Number(gte=0), help=
        "How many lines to skip before the table.")] = None
    image_size: Annotated[str | None, Parameter(help=
        "Resize images to this width and height, as in --image-size 64x48; of an array, what its columns are.")] = None
    grey: Annotated[bool, Parameter(help=
        "Take the colours of images away.")] = False

    def reading(self) -> Reading:
        """The same as a record."""
        from foldwise.data.reading import Reading, image_size

        return Reading(
            header=None if self.header is None else self.header == "yes",
            delimiter={"tab": "\t", "space": " "}.get(self.delimiter or "", self.delimiter),
            decimal=self.decimal,
            encoding=self.encoding,
            missing_values=None if self.missing_values is None else tuple(split(self.missing_values)),
            sheet=self.sheet,
            table=self.table,
            skip=self.skip,
            image_size=None if self.image_size is None else image_size(self.image_size),
            grey=self.grey or None,
        )


@Parameter(name="*")
@dataclass(frozen=True)
class Input(FileOptions):
    """Which part of a file is read, and what each column is taken for."""

    columns: Annotated[list[str] | None, Parameter(help=
        "Use only these columns, as in --columns a,b; by position, from 0, if they have no names.")] = None
    exclude: Annotated[list[str] | None, Parameter(help=
        "Columns not to use, as in --exclude a,b.")] = None
    id_: Annotated[list[str] | None, Parameter(name="--id", help=
        "Columns that name the rows: not used, but written to --out.")] = None
    label: Annotated[list[str] | None, Parameter(help=
        "Columns with known groups: not used, but compared with what is found and written to --out.")] = None
    as_: Annotated[list[str] | None, Parameter(name="--as", help=
        "What a column is, as in --as zip=category,when=month: number, category, boolean, identifier, date or text; "
        "of a date also number (days), year, month, day, weekday or hour.")] = None
    categories: Annotated[Literal["describe", "encode"], Parameter(help=
        "describe: categories are not used, but describe the result. encode: they are used together with the numbers "
        "(factor analysis of mixed data).")] = "describe"
    missing: Annotated[Literal["error", "drop", "mean", "model"], Parameter(help=
        "What to do about missing cells: leave them to the model, fill them with the mean of the column, drop their rows, "
        "or stop with an error.")] = "model"
    whole: Annotated[bool, Parameter(help=
        "Judge what columns are by all rows, and not by the first 100,000.")] = False
    where: Where = None
    weights: Weights = None

    def open(self, file: str) -> Any:
        """The source of these columns and rows, with the recipe that says what became of each column."""
        from foldwise.cli.open_input import open_input

        return open_input(file, self)


@Parameter(name="*")
@dataclass(frozen=True)
class ExploreInput(Input):
    """Which part of a file is read, and what each column is taken for."""

    categories: Annotated[
        Literal["auto", "describe", "encode"], Parameter(help=
        "describe: categories are not used, but describe the result. encode: they are used together with the numbers "
        "(factor analysis of mixed data). auto: only if there are fewer than two columns of numbers.")] = "auto"  # type: ignore[assignment]  # one more than elsewhere


@Parameter(name="*")
@dataclass(frozen=True)
class Output:
    """What is written, and where."""

    out: Annotated[Path | None, Parameter(help=
        "Write the result for every row to this file (.parquet, .csv, .csv.gz, .jsonl or .npy): "
        "scores, clusters with distances or probabilities, or chosen columns.")] = None
    model: Annotated[Path | None, Parameter(help=
        "Save the fitted model to this file; `foldwise apply` applies it to new rows.")] = None
    report: Annotated[Path | None, Parameter(help=
        "Write a web page with the results and charts to this file (.html).")] = None
    json: Annotated[bool, Parameter(help=
        "Print the results as JSON.")] = False
    keep: Annotated[Literal["ids", "all"], Parameter(help=
        "Which columns of the file --out has beside the results: the identifiers and labels, or all.")] = "ids"


@Parameter(name="*")
@dataclass(frozen=True)
class Resume:
    """How a long fit is stopped and resumed."""

    checkpoint: Annotated[Path | None, Parameter(help=
        "Keep the state of the fit in this file, and resume from it if it exists; it is removed when the fit is done.")] = None
    resume: Annotated[bool, Parameter(help=
        "Keep the checkpoint beside --model (or --out), with .checkpoint added to the name.")] = False
    time_budget: Annotated[float | None, Parameter(validator=validators.Number(gt=0), help=
        "Stop after this many seconds of iterations and keep the best model so far.")] = None

    def place(self, output: Output) -> Path | None:
        """Where the checkpoint is kept: as given, or with --resume beside what is written."""
        beside = output.model or output.out
        if self.checkpoint is not None or not self.resume:
            return self.checkpoint
        if beside is None:
            raise ParameterError("--resume needs a place for its file: give --model or --out too, or use --checkpoint.")
        return beside.with_name(beside.name + ".checkpoint")

    def refuse(self, why: str, **others: Any) -> None:
        """An error if any of these options, or of others, was given."""
        given = {**others, "checkpoint": self.checkpoint, "resume": self.resume, "time_budget": self.time_budget}
        names = [f"--{name.replace('_', '-')}" for name, value in given.items() if value]
        if names:
            raise ParameterError(f"{', '.join(names)}: {why}")


@Parameter(name="*")
@dataclass(frozen=True)
class Compute:
    """Where the work is done; the result does not depend on it."""

    threads: Annotated[int | None, Parameter(validator=validators.Number(gte=1), help=
        "Number of threads; the result does not depend on it.")] = None
    engine: Annotated[str | None, Parameter(help=
        "Where to compute: serial, threads, or the address of a Dask scheduler such as tcp://10.0.0.5:8786. "
        "Default: threads.")] = None

    def engine_context(self) -> AbstractContextManager[Any]:
        """The engine that was asked for, for the work inside."""
        if self.engine is None:
            return nullcontext()
        import foldwise

        context: AbstractContextManager[Any] = foldwise.engine(self.engine)
        return context
# fmt: on


INPUT, OUTPUT, RESUME, COMPUTE, FILE_OPTIONS = Input(), Output(), Resume(), Compute(), FileOptions()
EXPLORE_INPUT = ExploreInput()


# As in models/pca/rank.py, which takes long to import; and the number that these rules agree on.
_RANK_RULES = ("auto", "parallel", "held-out", "mle", "gavish-donoho", "broken-stick")


def number_or_rule(text: str | None) -> int | float | str | None:
    """`--components` as PCA takes it, or "auto".

    >>> number_or_rule("3"), number_or_rule("0.9"), number_or_rule("mle")
    (3, 0.9, 'mle')
    """
    if text is None or text in _RANK_RULES:
        return text
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if value >= 1 and value.is_integer():
        return int(value)
    if text == "0" or 0 < value < 1:
        return value or 0
    raise ParameterError(
        f"--components {text}: give a number, a share of variance such as 0.95, or one of {', '.join(_RANK_RULES)}."
    )


def number_share_or_auto(text: str, option: str) -> int | float | Literal["auto"]:
    """`--features`: a number, a share, or auto.

    >>> number_share_or_auto("5", "-n"), number_share_or_auto("0.9", "-n"), number_share_or_auto("auto", "-n")
    (5, 0.9, 'auto')
    """
    if text == "auto":
        return "auto"
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if value >= 1 and text.strip().isdecimal():
        return int(value)
    if 0 < value < 1:
        return value
    raise ParameterError(f"{option} {text}: give a number such as 5, a share of variance such as 0.9, or auto.")


def number_or_range(text: str, option: str) -> int | range | Literal["auto"]:
    """`--clusters` or `--components`: one number, the first and the last of several, or auto.

    >>> number_or_range("8", "--clusters"), number_or_range("2:12", "--clusters"), number_or_range("auto", "--clusters")
    (8, range(2, 13), 'auto')
    """
    if text == "auto":
        return "auto"
    first, colon, last = text.partition(":")
    if first.isdecimal() and int(first) >= 1 and not colon:
        return int(first)
    if first.isdecimal() and last.isdecimal() and 1 <= int(first) < int(last):
        return range(int(first), int(last) + 1)
    raise ParameterError(f"{option} {text}: give a number such as 8, a range such as 2:12, or auto.")


def refuse_outputs(output: Output, *, stability: bool) -> None:
    """An error if something was asked for that needs one number of clusters."""
    given = {"out": output.out, "model": output.model, "stability": stability}
    if names := [f"--{name}" for name, one in given.items() if one]:
        raise ParameterError(f"{', '.join(names)}: not with a range of numbers. Give one number, or -k auto.")


def split(texts: list[str]) -> list[str]:
    """Names separated by commas, or given one by one; one with a comma in double quotes.

    >>> split(["a, b", "c", '"d, e",f'])
    ['a', 'b', 'c', 'd, e', 'f']
    """
    return [name.strip() for record in csv.reader(texts, skipinitialspace=True) for name in record]


def column_list(columns: list[str] | None, file: str | list[str]) -> list[str] | list[int] | None:
    """`--columns` as `scan` takes them: commas separate names, and arrays and images have positions instead.

    >>> column_list(["a, b", "c"], "x.csv"), column_list(["0,2"], "x.npy")
    (['a', 'b', 'c'], [0, 2])
    """
    if columns is None:
        return None
    from foldwise.data.array_files import is_array_file

    names = split(columns)
    return [int(name) for name in names] if all(n.isdigit() for n in names) and is_array_file(file) else names


def scan_quietly(file: str | list[str], **options: Any) -> Any:
    """`fw.scan` without the warning about columns that are left out: the report names them."""
    from foldwise import scan

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeftOutWarning)
        return scan(file, **options)


@contextmanager
def spooled_scan(file: str, given: Input) -> Iterator[Any]:
    """The source, for fits that read it many times: kept on disk if reading it again would be slow."""
    from foldwise.data.missing import allow_missing
    from foldwise.data.spool import spooled

    source = given.open(file)
    with spooled(source if given.missing == "error" else allow_missing(source)) as kept:
        yield kept
