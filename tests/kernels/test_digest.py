"""The digest of saved files: no change of one word goes unnoticed."""

from __future__ import annotations

import numpy as np

from foldwise import kernels


def test_every_bit_counts() -> None:
    rng = np.random.default_rng(0)
    for size in (0, 1, 7, 63, 64, 65, 200):
        data = rng.integers(0, 256, size, dtype=np.uint8)
        seen = {kernels.digest(data, 0, 0)}
        for bit in range(8 * size):
            changed = data.copy()
            changed[bit // 8] ^= 1 << bit % 8
            seen.add(kernels.digest(changed, 0, 0))
        assert len(seen) == 8 * size + 1
        assert kernels.digest(np.append(data, np.uint8(0)), 0, 0) not in seen  # nor does a zero at the end


def test_the_place_of_the_digest_does_not_count() -> None:
    data = np.arange(300, dtype=np.uint8)
    other = data.copy()
    other[50:114] = 7
    assert kernels.digest(data, 50, 114) == kernels.digest(other, 50, 114)
    assert kernels.digest(data, 50, 113) != kernels.digest(other, 50, 113)
    zeros = data.copy()
    zeros[50:114] = ord("0")
    assert kernels.digest(data, 50, 114) == kernels.digest(zeros, 0, 0)


def test_words_in_another_order_are_another_content() -> None:
    data = np.random.default_rng(0).integers(0, 256, 640, dtype=np.uint8)
    swapped = np.concatenate([data[64:128], data[:64], data[128:]])
    lanes = np.concatenate([data[8:16], data[:8], data[16:]])
    assert len({kernels.digest(one, 0, 0) for one in (data, swapped, lanes)}) == 3
