"""Arrays and a JSON header in one safetensors file, with a digest over every byte of it.

The digest stands in the header, at a place of fixed length, and is taken of the file with zeros there. The format number says
that a file has one: no single flipped bit turns a file of this format into one of the first, which had none.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise import kernels
from foldwise.data.atomic import replacing
from foldwise.errors import UncheckedFileWarning, warn

_NOTHING = b"0" * 64
_DTYPES = {
    **{f"F{8 * size}": f"<f{size}" for size in (2, 4, 8)},
    **{f"I{8 * size}": f"<i{size}" for size in (1, 2, 4, 8)},
    **{f"U{8 * size}": f"<u{size}" for size in (1, 2, 4, 8)},
    "BOOL": "?",
}
_DIGEST = re.compile(rb'\\"digest\\": \\"([0-9a-f]{64})\\"')


class DamagedError(Exception):
    """The bytes are not what was written."""


@dataclass(frozen=True)
class TensorFile:
    """The content of a file; `digest` says whether it has one, which then agrees with the content."""

    header: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    digest: bool

    def require_digest(self) -> None:
        """Raise if a file of a format that has a digest has none."""
        if not self.digest:
            raise DamagedError("its digest is missing")

    def warn_unchecked(self, path: Path, advice: str) -> None:
        """Tell that the file is from an older version, and that nobody can say whether it is intact."""
        warn(
            f"{path}: written by an older version of Foldwise, without a digest, so damage to it would not be noticed. "
            f"{advice}",
            UncheckedFileWarning,
        )


def write_tensors(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], header: Mapping[str, Any]) -> None:
    """Write arrays and a JSON header to one file, atomically."""
    from safetensors.numpy import save

    tensors = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    text = json.dumps({"digest": _NOTHING.decode(), **header, "arrays": _kinds(tensors)})
    data = memoryview(save(tensors, metadata={"foldwise": text}))
    place = _place_of_digest(data)
    assert place is not None
    digest = _digest(data, place).encode()
    with replacing(path) as file:
        for part in (data[: place.start], digest, data[place.stop :]):
            file.write(part)


def read_tensors(path: str | os.PathLike[str]) -> TensorFile:
    """Read a file; a DamagedError, or an error of safetensors or json, if it is not what was written."""
    data = _bytes_of(path)
    place = _place_of_digest(memoryview(data))
    if place is not None and _digest(memoryview(data), place).encode() != data[place]:
        raise DamagedError("its digest does not match its content")
    arrays = _unchecked(data) if place is None else _views(data)
    header = json.loads(_json_header(data)["__metadata__"]["foldwise"])
    if not isinstance(header, dict):
        raise DamagedError("its header is not an object")
    kinds = header.pop("arrays", None)
    if kinds is not None and kinds != _kinds(arrays):
        raise DamagedError("its arrays are not those that its header lists")
    header.pop("digest", None)
    return TensorFile(header, arrays, place is not None)


def _bytes_of(path: str | os.PathLike[str]) -> bytearray:
    with open(path, "rb") as file:
        data = bytearray(os.fstat(file.fileno()).st_size)
        del data[file.readinto(data) :]
    return data


def _unchecked(data: bytearray) -> dict[str, NDArray[Any]]:
    """The arrays of a file that may be damaged."""
    from safetensors.numpy import load

    return {name: one if one.flags.writeable else one.copy() for name, one in load(bytes(data)).items()}


def _views(data: bytearray) -> dict[str, NDArray[Any]]:
    """The arrays of a file that is known to be intact, where they lie; only those out of line are copied."""
    begin, arrays = 8 + _length_of_header(data), {}
    for name, about in _json_header(data).items():
        if name != "__metadata__":
            start, stop = about["data_offsets"]
            kind = np.dtype(_DTYPES[about["dtype"]])
            array = np.frombuffer(data, kind, (stop - start) // kind.itemsize, begin + start).reshape(about["shape"])
            arrays[name] = array if array.flags.aligned else array.copy()
    return arrays


def _kinds(arrays: Mapping[str, NDArray[Any]]) -> dict[str, list[Any]]:
    """Type and shape of every array, as the header lists them."""
    return {name: [array.dtype.name, list(array.shape)] for name, array in arrays.items()}


def _length_of_header(data: bytearray | memoryview) -> int:
    return int.from_bytes(data[:8], "little")


def _json_header(data: bytearray) -> Any:
    return json.loads(data[8 : 8 + _length_of_header(data)])


def _place_of_digest(data: memoryview) -> slice | None:
    """Where the digest stands; None if the header has none."""
    found = _DIGEST.search(data[8 : 8 + min(_length_of_header(data), len(data))])
    return None if found is None else slice(8 + found.start(1), 8 + found.end(1))


def _digest(data: memoryview, place: slice) -> str:
    """The digest of the bytes with zeros in its place."""
    return kernels.digest(np.frombuffer(data, dtype=np.uint8), place.start, place.stop)
