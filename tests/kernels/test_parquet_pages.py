"""Pages of Parquet, written by hand: every encoding, the snappy format, and what must be refused."""

from __future__ import annotations

import contextlib
import random
import struct
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldwise.kernels.arrow import copy_into
from foldwise.kernels.parquet import reader_of

PLAIN, DICTIONARY, RLE, SPLIT = 0, 8, 3, 9
NONE, SNAPPY = 0, 1


def varint(n):
    out = b""
    while n >= 128:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def i32(n):
    return varint((n << 1) ^ (n >> 31))


def struct_of(fields):
    """A Thrift struct in the compact protocol: numbers, True and False, texts, and structs in structs, by field."""
    out, last = b"", 0
    for field, value in fields.items():
        kind = 12 if isinstance(value, dict) else 2 - value if isinstance(value, bool) else 8 if isinstance(value, bytes) else 5
        out += bytes([(field - last) << 4 | kind]) if field - last < 16 else bytes([kind]) + i32(field)
        last = field
        if isinstance(value, dict):
            out += struct_of(value)
        elif isinstance(value, bytes):
            out += varint(len(value)) + value
        elif not isinstance(value, bool):
            out += i32(value)
    return out + b"\0"


def page(rows, body, *, encoding=PLAIN, packed=None, statistics=b""):
    about = {1: rows, 2: encoding, 3: RLE, 4: RLE, 5: {1: statistics, 2: statistics}}
    return struct_of({1: 0, 2: len(body), 3: len(packed or body), 5: about}) + (packed or body)


def page_v2(rows, nulls, levels, body, *, encoding=PLAIN, packed=None):
    stored = packed or body
    about = {1: rows, 2: nulls, 3: rows, 4: encoding, 5: len(levels), 6: 0, 7: packed is not None}
    return struct_of({1: 3, 2: len(levels) + len(body), 3: len(levels) + len(stored), 8: about}) + levels + stored


def dictionary(values, packed=None):
    body = values.tobytes()
    return struct_of({1: 2, 2: len(body), 3: len(packed or body), 7: {1: len(values), 2: PLAIN}}) + (packed or body)


def with_length(levels):
    return struct.pack("<I", len(levels)) + levels


def read(path, n, kind="FLOAT", *, optional=False, codec=NONE, dtype=np.float64, start=0, stop=None, size=None):
    size = path.stat().st_size if size is None else size
    one = np.array([0]), np.array([n])
    reader = reader_of([str(path)], *one, np.array([[[0, size, codec]]]), [(kind, optional)])
    stop = n if stop is None else stop
    out, at = np.full((stop - start, 1), -1, dtype), 0
    for batch in reader.read(reader.range(start, stop)):
        copy_into(batch, 0, batch.rows, out, at)
        at += batch.rows
    assert at == stop - start
    return out[:, 0].tolist()


@pytest.fixture
def file(tmp_path):
    def put(*parts):
        path = tmp_path / "pages"
        path.write_bytes(b"".join(parts))
        return path

    return put


def test_plain_numbers_of_every_type(file):
    for kind, form in {"FLOAT": "f", "DOUBLE": "d", "INTEGER": "i", "UINTEGER": "I", "BIGINT": "q", "UBIGINT": "Q"}.items():
        body = struct.pack(f"<5{form}", 1, 2, 3, 4, 5)
        path = file(page(2, body[: 2 * len(body) // 5]), page(3, body[2 * len(body) // 5 :]))
        assert read(path, 5, kind) == [1, 2, 3, 4, 5]
        assert read(path, 5, kind, start=1, stop=4) == [2, 3, 4]
        assert read(path, 5, kind, start=3) == [4, 5]


def test_short_integers_are_stored_in_four_bytes(file):
    path = file(page(3, struct.pack("<3i", -1, 127, -128)))
    assert read(path, 3, "TINYINT") == [-1, 127, -128]
    assert read(path, 3, "SMALLINT") == [-1, 127, -128]
    path = file(page(2, struct.pack("<2i", 255, 7)))
    assert read(path, 2, "UTINYINT") == [255, 7]
    assert read(path, 2, "USMALLINT") == [255, 7]


def test_booleans(file):
    assert read(file(page(10, bytes([0b10100101, 0b10]))), 10, "BOOLEAN") == [1, 0, 1, 0, 0, 1, 0, 1, 0, 1]
    runs = varint(3 << 1) + b"\1" + varint(1 << 1 | 1) + bytes([0b0101])
    assert read(file(page(7, with_length(runs), encoding=RLE)), 7, "BOOLEAN") == [1, 1, 1, 1, 0, 1, 0]


def test_missing_cells(file):
    # Levels 1 0 1 1 0: the present values are packed, here behind a run of one 1 and a group of eight bits.
    levels = varint(1 << 1) + b"\1" + varint(1 << 1 | 1) + bytes([0b0110])
    values = struct.pack("<3f", 10, 20, 30)
    found = [10, np.nan, 20, 30, np.nan]
    for path in (file(page(5, with_length(levels) + values)), file(page_v2(5, 2, levels, values))):
        np.testing.assert_array_equal(read(path, 5, optional=True), found)
        np.testing.assert_array_equal(read(path, 5, optional=True, start=1, stop=3), found[1:3])
    nothing = page(5, with_length(varint(5 << 1) + b"\0"))
    np.testing.assert_array_equal(read(file(nothing), 5, optional=True), [np.nan] * 5)
    all_there = page(3, with_length(varint(3 << 1) + b"\1") + values)
    assert read(file(all_there), 3, optional=True) == [10, 20, 30]


def test_dictionary_with_runs_and_packed_indices(file):
    values = np.array([0.5, 1.5, 2.5, 3.5], np.float32)
    # Two bits each: a run of three 2s, then the indices 0 1 2 3 3 2 1 0.
    body = bytes([2]) + varint(3 << 1) + b"\2" + varint(1 << 1 | 1) + bytes([0b11100100, 0b00011011])
    path = file(dictionary(values), page(11, body, encoding=DICTIONARY))
    assert read(path, 11) == [2.5, 2.5, 2.5, 0.5, 1.5, 2.5, 3.5, 3.5, 2.5, 1.5, 0.5]
    one = bytes([0]) + varint(4 << 1)  # a dictionary of one value needs no bits
    assert read(file(dictionary(values[:1]), page(4, one, encoding=2)), 4) == [0.5] * 4
    beyond = bytes([3]) + varint(4 << 1) + b"\4"
    with pytest.raises(RuntimeError, match="beyond the dictionary"):
        read(file(dictionary(values), page(4, beyond, encoding=DICTIONARY)), 4)
    with pytest.raises(RuntimeError, match="beyond the dictionary"):
        read(file(page(4, beyond, encoding=DICTIONARY)), 4)


def test_split_bytes(file):
    values = np.array([1.25, -2.5, 1e-30], np.float32)
    body = values.view(np.uint8).reshape(3, 4).T.tobytes()
    assert read(file(page(3, body, encoding=SPLIT)), 3) == values.tolist()


def test_snappy_by_hand(file):
    body = b"ab" * 8 + b"ab" * 8  # 32 bytes: 8 floats
    literal = bytes([(2 - 1) << 2]) + b"ab"
    near = bytes([1 | (8 - 4) << 2, 2])  # 8 bytes from 2 back
    far = bytes([2 | (12 - 1) << 2, 2, 0])  # 12 bytes from 2 back, in two bytes
    farthest = bytes([3 | (10 - 1) << 2, 4, 0, 0, 0])  # 10 bytes from 4 back, in four
    packed = varint(32) + literal + near + far + farthest
    assert read(file(page(8, body, packed=packed)), 8, codec=SNAPPY) == np.frombuffer(body, np.float32).tolist()
    long = bytes([61 << 2]) + struct.pack("<H", 32 - 1) + body  # a literal whose length takes two bytes
    assert read(file(page(8, body, packed=varint(32) + long)), 8, codec=SNAPPY)[0] == struct.unpack("<f", b"abab")[0]
    for wrong in (
        varint(31) + literal + near + far + farthest,  # another length than the page says
        packed[:-5],  # too short
        packed + literal,  # too long
        varint(32) + near + far + farthest + literal,  # from before the beginning
        varint(32) + literal + bytes([1 | (8 - 4) << 2, 0]) + far + farthest,  # from nowhere
        varint(32) + bytes([63 << 2]) + b"\xff\xff\xff\xff" + body,
    ):
        with pytest.raises(RuntimeError, match="decompressed"):
            read(file(page(8, body, packed=wrong)), 8, codec=SNAPPY)


def test_long_headers_and_pages_that_are_no_data(file):
    body = struct.pack("<2f", 1, 2)
    index = struct_of({1: 1, 2: 4, 3: 4}) + b"skip"
    assert read(file(page(2, body, statistics=b"x" * 5000), index, page(2, body)), 4) == [1, 2, 1, 2]


@pytest.mark.parametrize(
    "parts",
    [
        [page(2, struct.pack("<f", 1))],  # too few values
        [page(1, struct.pack("<f", 1))],  # too few rows
        [page(3, struct.pack("<3f", 1, 2, 3))],  # too many
        [page(2, struct.pack("<2f", 1, 2))[:-3]],  # cut off
        [page(2, struct.pack("<2f", 1, 2), encoding=5)],  # another encoding
        [struct_of({1: 0, 2: -1, 3: -1, 5: {1: 2, 2: 0}})],
        [struct_of({1: 0, 2: 1 << 30, 3: 1 << 30, 5: {1: 2, 2: 0}})],
        [b"\xff" * 100],
        [b"\x1c" * 100],
        [b""],
    ],
)
def test_refused(file, parts):
    with pytest.raises(RuntimeError):
        read(file(*parts), 2)


def test_places_outside_the_file_are_refused(file):
    path = file(page(2, struct.pack("<2f", 1, 2)))
    with pytest.raises(RuntimeError, match="outside the file"):
        read(path, 2, size=1000)
    with pytest.raises(RuntimeError, match="cannot be opened"):
        read(path.with_name("none"), 2, size=10)
    with pytest.raises(IndexError):
        read(path, 2, start=1, stop=5)


def test_no_damage_is_followed_into_memory(tmp_path):
    """Bytes changed at random: either refused, or numbers come out; never anything else."""
    rng, dice = np.random.default_rng(0), random.Random(0)
    levels = varint(25 << 1 | 1) + rng.integers(0, 256, 25, np.uint8).tobytes()
    present = int(np.unpackbits(np.frombuffer(levels[1:], np.uint8), bitorder="little")[:200].sum())
    indices = bytes([3]) + varint(-(-present // 8) << 1 | 1) + rng.integers(0, 256, 3 * -(-present // 8), np.uint8).tobytes()
    whole = with_length(levels) + indices
    packed = varint(len(whole)) + bytes([61 << 2]) + struct.pack("<H", len(whole) - 1) + whole
    values = np.arange(8, dtype=np.float64)
    plain = bytes([15 << 2]) + values[:2].tobytes() + bytes([2 | 47 << 2, 16, 0])
    good = dictionary(values, varint(64) + plain) + page(200, whole, encoding=DICTIONARY, packed=packed)
    path, came = tmp_path / "pages", 0
    for _ in range(3000):
        bad = bytearray(good)
        for _ in range(dice.randint(1, 4)):
            bad[dice.randrange(len(bad))] = dice.choice([0, 1, 127, 128, 255, dice.randrange(256)])
        path.write_bytes(bad[: dice.randrange(len(bad)) if dice.random() < 0.1 else None])
        with contextlib.suppress(RuntimeError):
            came += len(read(path, 200, "DOUBLE", optional=True, codec=SNAPPY)) == 200
    assert 0 < came < 3000


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.lists(st.integers(1, 40), min_size=1, max_size=12), st.data())
def test_any_ranges_in_any_order_and_threads(tmp_path_factory, left, right, data):
    """Two columns whose pages end at different rows: every range has its own rows, whoever reads what first."""
    n = max(sum(left), sum(right))
    left, right = ([*lengths, n - sum(lengths)] if sum(lengths) < n else lengths for lengths in (left, right))
    x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
    columns = []
    for j, lengths in enumerate((left, right)):
        ends = np.cumsum(lengths)
        columns.append(b"".join(page(m, x[e - m : e, j].tobytes()) for e, m in zip(ends, lengths, strict=True)))
    path = tmp_path_factory.mktemp("pages") / "x"
    path.write_bytes(b"".join(columns))
    places = np.array([[[0, len(columns[0]), NONE], [len(columns[0]), len(columns[1]), NONE]]])
    reader = reader_of([str(path)], np.array([0]), np.array([n]), places, [("FLOAT", False)] * 2)
    step = data.draw(st.integers(1, n))
    ranges = [(start, min(start + step, n)) for start in range(0, n, step)]
    wanted = data.draw(st.permutations(ranges))

    def load(asked):
        (start, stop), kept = asked
        out, at = np.empty((stop - start, 2), np.float32), 0
        for batch in reader.read(kept):
            copy_into(batch, 0, batch.rows, out, at)
            at += batch.rows
        return np.array_equal(out, x[start:stop])

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(load, [(one, reader.range(*one)) for one in wanted]))
    assert all(load((one, reader.range(*one))) for one in wanted)  # what was given up is read again
