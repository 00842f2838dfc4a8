"""How every command ends: print the report, save the model, write rows and page, and say so."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foldwise.errors import OutputError

if TYPE_CHECKING:
    from foldwise.cli.options import Output
    from foldwise.report.values import Report


def show(text: str) -> OutputError | None:
    """Print to standard output; if that fails, files are still written, and the error is for the caller to raise then.

    That its reader has gone, as `head` does, is no error.
    """
    try:
        print(text, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left to print would fail at the end
        if not isinstance(error, BrokenPipeError):
            return OutputError(f"standard output cannot be written to: {error.strerror}.")
    return None


def write_rows(
    model: Any, source: Any, out: Path, keep: str = "ids", beside: Any = (), place: int | None = None
) -> str:
    """Write what the model gives for every row to a file, in bounded memory."""
    from foldwise import progress
    from foldwise.report.write_rows import write_transformed

    with progress():
        rows = write_transformed(model, source, out, keep=keep, beside=beside, place=place)
    return f"{out} ({rows:,} rows)"


def as_json(values: dict[str, Any]) -> str:
    """Values as indented text."""
    import json

    return json.dumps(values, indent=2)


def saved(model: Any) -> bytes:
    """A model as the content of its file."""
    import tempfile

    from foldwise import save
    from foldwise.data import scratch

    with tempfile.TemporaryDirectory(dir=scratch.folder()) as folder:
        place = Path(folder) / "model.fw"
        save(model, place)
        return place.read_bytes()


def save_early(model: Any, output: Output) -> None:
    """Save the model, if it is to be saved, before a report is made of it: whatever happens then, the work is kept."""
    from foldwise import save

    if output.model is not None:
        save(model, output.model)


def finish(
    report: Report,
    output: Output,
    *,
    model: Any = None,
    source: Any = None,
    rows: str = "",
    beside: Any = (),
    checkpoint: Path | None = None,
    values: dict[str, Any] | None = None,
    interrupted: bool = False,
) -> int:
    """Print the report and write what was asked for; gives the exit code.

    `rows` says what --out has of each row (without it, --out has the JSON), and `beside` are more figures of each, as in
    `write_transformed`; `values` replace the report's own as JSON.
    """
    from foldwise import progress, save
    from foldwise.cli.words import as_options
    from foldwise.data.atomic import replacing
    from foldwise.report.html import write_html
    from foldwise.report.json import as_dict

    report = replace(report, data=[as_options(line) for line in report.data])
    values = as_dict(report) if values is None else values
    failure = show(as_json(values) if output.json else f"{report}\n")
    done = []
    if checkpoint is not None and checkpoint.exists():
        done.append(f"checkpoint: {checkpoint} (run the same command again to resume)")
    if output.model is not None and model is not None:
        save(model, output.model)
        done.append(f"model: {output.model}")
    if output.out is not None and rows:
        done.append(f"{rows}: {write_rows(model, source, output.out, output.keep, beside)}")
    elif output.out is not None:
        with replacing(output.out) as stream:
            stream.write((as_json(values) + "\n").encode())
        done.append(f"figures: {output.out}")
    if output.report is not None:
        with progress():
            write_html(report, output.report)
        done.append(f"report: {output.report}")
    if done and not output.json:  # then only JSON goes to standard output
        failure = show("\n".join(done)) or failure
    if failure is not None:
        raise failure
    return 130 if interrupted else 0
