"""NumPy files as tables: an array of an .npz archive, or a .npy file whose columns are to be understood one by one."""

from __future__ import annotations

import os
import shutil
import zipfile
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.data import check
from foldwise.data.duckdb_table import DuckDBTable
from foldwise.data.files import Files
from foldwise.data.notes import Note
from foldwise.data.npy import header
from foldwise.data.reading import Reading
from foldwise.data.scratch_table import ScratchFolder, ScratchTable, chosen_name, named, rows_per_batch
from foldwise.errors import DataError

_SPARSE = {"indices", "indptr", "format", "shape", "data"}
_TYPES = {"f4": "FLOAT", "f2": "FLOAT", "b1": "BOOLEAN", "u8": "UBIGINT"}
_CHUNK = 1 << 20


def open_table(files: Files, reading: Reading) -> DuckDBTable:
    """The array that was asked for, or the only one with two dimensions, or the largest of them."""
    path, folder = files.paths[0], ScratchFolder()
    if files.kind == "npy":
        return _written([_loaded(path, files.where)], None, files, reading, [], "")
    try:
        unpacked = _unpacked(path, folder.path)
    except DataError:
        raise
    except Exception as problem:  # zipfile and zlib raise many kinds for damaged files
        raise DataError(
            f"not an .npz archive, or damaged ({problem})", where=files.where, advice="Save or copy it again"
        ) from None
    if not unpacked:
        raise DataError("the archive holds no array", where=files.where)
    if set(unpacked) >= _SPARSE - {"indices", "indptr"} and set(unpacked) & {"indices", "row", "offsets"}:
        raise DataError(
            "this is a sparse matrix saved by SciPy", where=files.where, advice="Pass scipy.sparse.load_npz(path)"
        )
    shapes = {name: header(one)[0::2] for name, one in unpacked.items()}
    chosen, notes = _choice(shapes, reading, files.where)
    arrays = [_loaded(unpacked[name], f"{files.where} ({name})") for name in chosen]
    if len(chosen) > 1 or arrays[0].ndim == 1:
        return _written([array[:, None] for array in arrays], list(chosen), files, reading, notes, "")
    found = _names_among(unpacked, shapes, arrays[0].shape[1], files.where)
    names = None
    if found is not None:
        label, names = found
        notes.append(Note("several-arrays", f"the names of the columns are those in {label}"))
    return _written(arrays, names, files, reading, notes, f"array={chosen[0]!r}")


def _unpacked(path: str, folder: str) -> dict[str, str]:
    """The arrays of an archive as .npy files, by name; what is compressed need not fit in memory."""
    found = {}
    with zipfile.ZipFile(path) as archive:
        for k, info in enumerate(archive.infolist()):
            if not info.filename.endswith(".npy"):
                continue
            target = os.path.join(folder, f"{k}.npy")
            with archive.open(info) as source, open(target, "wb") as file:
                shutil.copyfileobj(source, file, _CHUNK)
            found[info.filename.removesuffix(".npy")] = target
    return found


def _loaded(path: str, where: str) -> NDArray[Any]:
    shape, _, dtype, offset = header(path)
    if dtype.hasobject:
        raise DataError("the array holds Python objects", where=where, advice="Save numbers: array.astype(float)")
    if os.path.getsize(path) < offset + dtype.itemsize * int(np.prod(shape, dtype=object)):
        raise DataError("the array is truncated", where=where, advice="Copy or save it again")
    if 0 in shape:
        check.not_empty(shape[0], shape[-1], where)
    array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def _is_number(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biuf"


def _choice(shapes: dict[str, tuple[Any, ...]], reading: Reading, where: str) -> tuple[list[str], list[Note]]:
    names = list(shapes)
    if reading.table is not None:
        return [chosen_name(reading.table, names, "array", where)], []
    shown = ", ".join(f"{name} ({' x '.join(map(str, shape))})" for name, (shape, _) in shapes.items())
    wide = [name for name, (shape, dtype) in shapes.items() if len(shape) == 2 and _is_number(dtype)]
    if wide:
        best = max(wide, key=lambda name: int(np.prod(shapes[name][0], dtype=object)))
        notes = [Note("several-arrays", f"{len(names)} arrays: {shown}; read: {best}")] if len(names) > 1 else []
        return [best], notes
    flat = [name for name, (shape, dtype) in shapes.items() if len(shape) == 1 and dtype.kind in "biufUS"]
    if not flat or len({shapes[name][0] for name in flat}) > 1:
        raise DataError(
            f"no array of numbers with two dimensions: {shown}",
            where=where,
            advice="Save a table: np.savez(path, X=array) with rows and columns",
        )
    return flat, [Note("several-arrays", f"{len(names)} arrays: {shown}; each is read as a column")]


def _names_among(
    unpacked: dict[str, str], shapes: dict[str, tuple[Any, ...]], width: int, where: str
) -> tuple[str, list[str]] | None:
    """The array of texts that can only be the names of the columns."""
    fitting = [name for name, (shape, dtype) in shapes.items() if shape == (width,) and dtype.kind in "US"]
    fitting = [name for name in fitting if "name" in name.lower() or "col" in name.lower()] or fitting
    if len(fitting) != 1:
        return None
    texts = _loaded(unpacked[fitting[0]], where)
    found = [one.decode("utf-8", errors="replace") if isinstance(one, bytes) else str(one) for one in texts]
    return (fitting[0], found) if len(set(found)) == width and all(found) else None


def _written(
    arrays: list[NDArray[Any]],
    names: list[str] | None,
    files: Files,
    reading: Reading,
    notes: list[Note],
    key: str,
) -> DuckDBTable:
    array = arrays[0]
    check.two_dimensional(array.shape, files.where)
    for one in arrays:
        if one.dtype.names is not None or one.dtype.kind not in "biufUS":
            check.number_kind(one.dtype, files.where)
            raise DataError(f"values of dtype {one.dtype} cannot be read", where=files.where, advice="Save numbers")
    columns = [one[:, j] for one in arrays for j in range(one.shape[1])]
    own, made_up = named(names or [f"column{j}" for j in range(len(columns))], files.where)
    written = ScratchTable(own, [_sql_type(one.dtype) for one in columns])
    step = rows_per_batch(len(columns))
    for at in range(0, len(array), step):
        parts = [np.ascontiguousarray(one[at : at + step]) for one in arrays]
        written.add([_native(part[:, j]) for part in parts for j in range(part.shape[1])])
    reopen = partial(open_table, files, reading)
    about = {"named": names is not None, "notes": (*notes, *made_up), "key": key}
    return written.finished(files, reopen, **about)


def _sql_type(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "US":
        return "VARCHAR"
    return _TYPES.get(dtype.str[1:], "DOUBLE" if dtype.kind == "f" else "BIGINT")


def _native(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind in "US":
        texts = np.empty(len(values), dtype=object)
        texts[:] = [one.decode("utf-8", errors="replace") if isinstance(one, bytes) else str(one) for one in values]
        return texts
    if values.dtype.kind == "f" and values.dtype.itemsize not in (4, 8):
        return values.astype(np.float32 if values.dtype.itemsize == 2 else np.float64)
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))
