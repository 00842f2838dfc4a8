"""Which colours a picture has, and how many pixels of each: what a palette is fitted to, whatever the number of pixels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

STRIP = 1 << 20  # pixels at a time
MOST_COLOURS = 1 << 21  # that a fit looks at one by one
_BITS = (16, 12, 8, 7, 6, 5)  # of each channel, from the finest
_TABLE_BITS = 24  # a table with an entry for each possible colour takes 16 MB to 64 MB


@dataclass(frozen=True)
class ColourCounts:
    """Distinct colours as sorted keys (`bits` for each channel) with their numbers of pixels; counts of parts merge."""

    channels: int  # 1, 3 or 4
    bits: int
    keys: NDArray[np.uint64]
    counts: NDArray[np.int64]
    coarsest: int | None = None  # bits in which colours were put together, since there were too many

    @classmethod
    def of(cls, pixels: NDArray[Any], most: int | None = None) -> ColourCounts:
        """Of pixels (height, width, channels) of 8 or 16 bits; at most `most` colours, if need be in fewer bits."""
        channels, bits = pixels.shape[2], 8 * pixels.dtype.itemsize
        if bits * channels <= _TABLE_BITS and pixels.size >= 1 << 22:  # else a sort is faster
            table = np.zeros(1 << bits * channels, np.int64)
            for keys in keys_of(pixels, 4 * STRIP):
                table += np.bincount(keys, minlength=len(table))
            used = np.flatnonzero(table)
            return cls(channels, bits, used.astype(np.uint64), table[used]).at_most(most)
        parts: list[ColourCounts] = []
        for keys in keys_of(pixels):
            found, counts = np.unique(keys, return_counts=True)
            parts.append(cls(channels, bits, found.astype(np.uint64), counts.astype(np.int64)))
            # Parts of like sizes are merged first, as in a merge sort.
            while len(parts) > 1 and len(parts[-2].keys) <= 2 * len(parts[-1].keys):
                last = parts.pop()
                parts[-1] = parts[-1].merge(last, most)
        while len(parts) > 1:
            last = parts.pop()
            parts[-1] = parts[-1].merge(last, most)
        return parts[0].at_most(most)

    def merge(self, other: ColourCounts, most: int | None = None) -> ColourCounts:
        """The colours of both, in the channels and the bits of the one that has more; at most `most` as in `of`."""
        channels, bits = max(self.channels, other.channels), max(self.bits, other.bits)
        left, right = (one._in_channels(channels)._in_bits(bits) for one in (self, other))
        keys, counts = np.concatenate([left.keys, right.keys]), np.concatenate([left.counts, right.counts])
        both = _summed(channels, bits, keys, counts)
        coarsest = min(filter(None, (self.coarsest, other.coarsest)), default=None)
        return replace(both, coarsest=coarsest).at_most(most)

    @property
    def pixels(self) -> int:
        """The number of pixels."""
        return int(self.counts.sum())

    def colours(self) -> NDArray[np.float64]:
        """The colours as RGB or RGBA, from 0 to 255."""
        values = self._values().astype(np.float64) * (255.0 / ((1 << self.bits) - 1))
        return values.repeat(3, axis=1) if self.channels == 1 else values

    def cells(self, bits: int) -> NDArray[np.intp]:
        """The number of the cell of each colour, where each channel is divided into 2 ** `bits` parts; cells from 0 on."""
        coarse = self._values() >> (self.bits - bits)
        key = sum((coarse[:, j].astype(np.uint64) << np.uint64(j * bits) for j in range(self.channels)), np.uint64(0))
        place: NDArray[np.intp] = np.unique(key, return_inverse=True)[1]
        return place

    def _values(self) -> NDArray[np.int64]:
        last = (1 << self.bits) - 1
        shifts = [self.bits * (self.channels - 1 - j) for j in range(self.channels)]
        return np.stack([((self.keys >> np.uint64(s)) & np.uint64(last)).astype(np.int64) for s in shifts], axis=1)

    def at_most(self, most: int | None) -> ColourCounts:
        """The same in as many bits as leave at most `most` colours (or the fewest bits)."""
        found = self
        while most is not None and len(found.keys) > most and found.bits > _BITS[-1]:
            bits = next(b for b in _BITS if b < found.bits)
            values = found._values() >> (found.bits - bits)
            found = replace(_summed(found.channels, bits, _packed(values, bits), found.counts), coarsest=bits)
        return found

    def _in_channels(self, channels: int) -> ColourCounts:
        if channels == self.channels:
            return self
        values = self._values()
        if self.channels == 1:
            values = values.repeat(3, axis=1)
        if channels == 4:
            values = np.concatenate([values, np.full((len(values), 1), (1 << self.bits) - 1)], axis=1)
        return _summed(channels, self.bits, _packed(values, self.bits), self.counts)

    def _in_bits(self, bits: int) -> ColourCounts:
        """In more bits, with the ends of the range at its ends."""
        if bits == self.bits:
            return self
        old, new = (1 << self.bits) - 1, (1 << bits) - 1
        return _summed(self.channels, bits, _packed((2 * self._values() * new + old) // (2 * old), bits), self.counts)


def keys_of(pixels: NDArray[Any], strip: int = STRIP) -> Iterator[NDArray[Any]]:
    """One number for the colour of each pixel, by strips of rows."""
    height, width, channels = pixels.shape
    bits = 8 * pixels.dtype.itemsize
    kind = np.uint32 if bits * channels <= 32 else np.uint64
    for rows in strips(height, width, strip):
        some = pixels[rows]
        key: NDArray[Any] = some[:, :, 0].astype(kind)
        for j in range(1, channels):
            key = key << kind(bits) | some[:, :, j]
        yield key.reshape(-1)


def strips(height: int, width: int, strip: int = STRIP) -> Iterator[slice]:
    """The rows of a picture in parts of about `strip` pixels."""
    step = max(1, strip // width)
    for start in range(0, height, step):
        yield slice(start, min(height, start + step))


class Lookup:
    """A value for each of the colours of a picture: from a table of all possible ones if there are few enough."""

    def __init__(self, counts: ColourCounts, values: NDArray[Any]) -> None:
        self.values, self.keys = values, counts.keys
        self.table: NDArray[Any] | None = None
        if counts.bits * counts.channels <= _TABLE_BITS:
            self.table = np.zeros(int(counts.keys[-1]) + 1, values.dtype)
            self.table[counts.keys] = values

    def __call__(self, keys: NDArray[Any]) -> NDArray[Any]:
        """The values of pixels with these keys."""
        found: NDArray[Any] = (
            self.values[np.searchsorted(self.keys, keys)] if self.table is None else self.table.take(keys)
        )
        return found


def _packed(values: NDArray[np.int64], bits: int) -> NDArray[np.uint64]:
    key = values[:, 0].astype(np.uint64)
    for j in range(1, values.shape[1]):
        key = key << np.uint64(bits) | values[:, j].astype(np.uint64)
    return key


def _summed(channels: int, bits: int, keys: NDArray[np.uint64], counts: NDArray[np.int64]) -> ColourCounts:
    """Keys in any order, each as often as it comes."""
    if len(keys) == 0:
        return ColourCounts(channels, bits, keys, counts)
    order = np.argsort(keys, kind="stable")  # which merges parts that are sorted
    keys, counts = keys[order], counts[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return ColourCounts(channels, bits, keys[first], np.add.reduceat(counts, first))
