"""The laws of the sums of segments: an identity, merging in any order, any split is the whole."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from foldwise.stats.segment_sums import SegmentSums


@given(st.integers(0, 40), st.integers(1, 4), st.integers(1, 6), st.integers(0, 1000), st.data())
def test_merge_laws(pixels, channels, n, seed, data):
    rng = np.random.default_rng(seed)
    colours = rng.integers(-(2**15), 2**15, (pixels, channels)).astype(np.int16)
    places = rng.integers(0, 10_000, (pixels, 2))
    labels = rng.integers(0, n, pixels).astype(np.int32)

    def part(which):
        return SegmentSums.of(colours[which], places[which], labels[which], n)

    whole = part(slice(None))
    a, b = sorted(data.draw(st.lists(st.integers(0, pixels), min_size=2, max_size=2)))
    first, second, third = part(slice(0, a)), part(slice(a, b)), part(slice(b, None))
    for made in (
        first.merge(second).merge(third),
        first.merge(second.merge(third)),
        third.merge(first).merge(second),
        whole.merge(SegmentSums.empty(n, channels)),
        SegmentSums.empty(n, channels).merge(whole),
    ):
        np.testing.assert_array_equal(made.values, whole.values)
    otherwise = np.full((n, channels + 2), -1.0)
    for k, centre in enumerate(whole.centres(otherwise)):
        members = np.column_stack([colours, places])[labels == k]
        np.testing.assert_allclose(centre, members.mean(0) if len(members) else otherwise[k], rtol=1e-12)
