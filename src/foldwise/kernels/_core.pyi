"""The compiled kernels. They write to arrays made by the caller and convert nothing."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

def scatter(
    x: NDArray[Any], weights: NDArray[np.float64] | None, mean: NDArray[np.float64], out: NDArray[np.float64]
) -> float: ...
def scatter_packed(
    x: NDArray[Any], weights: NDArray[np.float64] | None, mean: NDArray[np.float64], out: NDArray[np.float64]
) -> float: ...
def merge_packed(
    left: NDArray[np.float64],
    left_scatter: NDArray[np.float64],
    left_weight: float,
    right: NDArray[np.float64],
    right_scatter: NDArray[np.float64],
    right_weight: float,
    centre: NDArray[np.float64],
) -> None: ...
def scatter_product(
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    centre: NDArray[np.float64],
    factor: NDArray[np.float64] | None,
    basis: NDArray[np.float64],
    wide: bool,
    out: NDArray[np.float64],
) -> None: ...
def product_and_columns(
    x: NDArray[Any],
    centre: NDArray[np.float64],
    factor: NDArray[np.float64] | None,
    basis: NDArray[np.float64],
    wide: bool,
    out: NDArray[np.float64],
    mean: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> None: ...
def product_and_form(
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    centre: NDArray[np.float64],
    factor: NDArray[np.float64] | None,
    basis: NDArray[np.float64],
    out: NDArray[np.float64],
    form: NDArray[np.float64],
) -> None: ...
def row_product(x: NDArray[np.float32], vectors: NDArray[np.float32], out: NDArray[np.float32]) -> None: ...
def sparse_product(
    values: NDArray[Any],
    columns: NDArray[Any],
    starts: NDArray[Any],
    weights: NDArray[np.float64] | None,
    centre: NDArray[np.float64],
    factor: NDArray[np.float64] | None,
    basis: NDArray[np.float64],
    wide: bool,
    out: NDArray[np.float64],
) -> None: ...
def sparse_project(
    values: NDArray[Any],
    columns: NDArray[Any],
    starts: NDArray[Any],
    weights: NDArray[np.float64] | None,
    centre: NDArray[np.float64],
    factor: NDArray[np.float64] | None,
    basis: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def sparse_back(
    values: NDArray[Any],
    columns: NDArray[Any],
    starts: NDArray[Any],
    weights: NDArray[np.float64] | None,
    centre: NDArray[np.float64],
    factor: NDArray[np.float64] | None,
    codes: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def merge_moments(
    left: NDArray[np.float64],
    left_scatter: NDArray[np.float64],
    left_weight: float,
    right: NDArray[np.float64],
    right_scatter: NDArray[np.float64],
    right_weight: float,
    centre: NDArray[np.float64],
    scatter: NDArray[np.float64],
) -> None: ...
def columns(
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    mean: NDArray[np.float64],
    out: NDArray[np.float64],
    low: NDArray[Any],
    high: NDArray[Any],
) -> float: ...
def merge_columns(
    left: NDArray[np.float64],
    left_squares: NDArray[np.float64],
    left_weight: float,
    right: NDArray[np.float64],
    right_squares: NDArray[np.float64],
    right_weight: float,
    centre: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> None: ...
def finite(x: NDArray[Any]) -> int: ...
def centred(
    x: NDArray[Any], centre: NDArray[np.float64], scale: NDArray[np.float64] | None, out: NDArray[Any]
) -> None: ...
def isa() -> str: ...
def best_subset(
    scatter: NDArray[np.float64],
    floor: NDArray[np.float64],
    k: int,
    best: float,
    best_set: int,
    slack: float,
    nodes: NDArray[np.uint64],
    most: int,
) -> tuple[float, int, int, int, list[int]]: ...
def lab_planes(
    image: NDArray[Any], light: NDArray[np.float32], first: int, last: int, out: NDArray[np.int16]
) -> None: ...
def cell_bounds(planes: NDArray[np.int16], width: int, first: int, last: int, out: NDArray[np.int16]) -> None: ...
def assign_segments(
    planes: NDArray[np.int16],
    bounds: NDArray[np.int16],
    width: int,
    centres: NDArray[np.float32],
    weight: float,
    radius: float,
    tile_rows: int,
    tile_columns: int,
    first: int,
    last: int,
    labels: NDArray[np.int32] | None,
    sums: NDArray[np.int64] | None,
) -> int: ...
def plane_sums(
    planes: NDArray[np.int16], labels: NDArray[np.int32], first: int, last: int, out: NDArray[np.int64]
) -> int: ...
def pixel_sums(
    image: NDArray[Any],
    labels: NDArray[np.int32],
    pivot: NDArray[np.float64],
    first: int,
    last: int,
    base: int,
    out: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> None: ...
def smooth_segments(
    labels: NDArray[np.int32],
    planes: NDArray[np.int16],
    centres: NDArray[np.float32],
    weight: float,
    price: float,
    whole: bool,
    phase: int,
    visit: int,
    stamps: NDArray[np.uint8],
    first: int,
    last: int,
) -> int: ...
def connect_segments(labels: NDArray[np.int32], planes: NDArray[np.int16], least: int, most: int) -> int: ...
def segment_shapes(labels: NDArray[np.int32], first: int, last: int, out: NDArray[np.int64]) -> None: ...
def dip(x: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float: ...
def similarity(x: NDArray[np.float64]) -> None: ...
def distance_sums(
    points: NDArray[np.float64],
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    labels: NDArray[np.int32],
    scale: float,
    out: NDArray[np.float64],
    compared: NDArray[np.float64] | None = None,
) -> None: ...
def complete(
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    centre: NDArray[np.float64],
    inverse: NDArray[np.float64],
    mean: NDArray[np.float64],
    precision: NDArray[np.float64],
    out: NDArray[np.float64],
    used: NDArray[np.float64] | None,
    spread: NDArray[np.float64] | None,
    deviations: NDArray[np.float64] | None,
    each_log: NDArray[np.float64] | None,
) -> tuple[float, float]: ...
def left_out(
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    centre: NDArray[np.float64],
    inverse: NDArray[np.float64],
    mean: NDArray[np.float64],
    inverses: NDArray[np.float64],
    removed: float,
    out: NDArray[np.float64],
) -> None: ...
def em_normal(
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    centre: NDArray[np.float64],
    inverse: NDArray[np.float64],
    prior: NDArray[np.float64],
    strength: float,
    steps: int,
    tol: float,
    mean: NDArray[np.float64],
    covariance: NDArray[np.float64],
    expected: NDArray[np.float64],
) -> tuple[int, bool, float]: ...

class Parts:
    """Rows that threads share out among themselves; see `foldwise.fold.local.Cuts`."""

    def __init__(
        self, rows: int, shares: int, least: int, most: int, step: int, sharing: Parts | None = None
    ) -> None: ...
    @property
    def taken(self) -> int: ...
    def take(self) -> tuple[int, int] | None: ...
    def invite(self, helpers: int) -> None: ...

class Targets:
    """Points that rows are compared with; see `foldwise.kernels.targets`."""

    def __init__(
        self,
        centres: NDArray[Any],
        pivot: NDArray[np.float64],
        scale: float,
        order: NDArray[np.int32] | None = None,
        ends: NDArray[np.int32] | None = None,
        observed: bool = False,
        row_length: float = 0.0,
        kept: bool = False,
        helpers: int = 0,
    ) -> None: ...
    @property
    def rounded(self) -> bool: ...
    def nearest(
        self,
        x: NDArray[Any],
        labels: NDArray[np.int32],
        near: NDArray[Any] | None = None,
        next: NDArray[Any] | None = None,  # noqa: A002
        changed: NDArray[np.int32] | None = None,
        before: NDArray[np.int32] | None = None,
        high: NDArray[np.float64] | None = None,
        low: NDArray[np.float64] | None = None,
        weight: NDArray[np.float64] | None = None,
        bits: int = 0,
        coarse_bits: int = 0,
        integers: NDArray[np.int32] | None = None,
        ready: bool = False,
        residuals: NDArray[np.float64] | None = None,
        fresh: bool = False,
        parts: Parts | None = None,
    ) -> tuple[int, int, int, int]: ...
    def nearest_bounded(
        self,
        x: NDArray[Any],
        labels: NDArray[np.int32],
        upper: NDArray[Any],
        lower: NDArray[Any],
        group_lower: NDArray[Any],
        moved: NDArray[Any],
        group_moved: NDArray[Any],
        most_moved: float,
        slack: float,
        fresh: bool,
        changed: NDArray[np.int32] | None = None,
        before: NDArray[np.int32] | None = None,
        high: NDArray[np.float64] | None = None,
        low: NDArray[np.float64] | None = None,
        weight: NDArray[np.float64] | None = None,
        bits: int = 0,
        coarse_bits: int = 0,
        parts: Parts | None = None,
    ) -> tuple[int, int, int, int]: ...
    def move_rows(
        self,
        x: NDArray[Any],
        weights: NDArray[np.float64] | None,
        weight_scale: float,
        which: NDArray[np.int32] | None,
        before: NDArray[np.int32] | None,
        after: NDArray[np.int32],
        slots: NDArray[np.int32],
        coarse: float,
        fine: float,
        high: NDArray[np.float64],
        low: NDArray[np.float64],
        weight: NDArray[np.float64],
        missing: NDArray[np.float64] | None = None,
    ) -> None: ...
    def move_rows_fixed(
        self,
        x: NDArray[Any],
        which: NDArray[np.int32] | None,
        before: NDArray[np.int32] | None,
        after: NDArray[np.int32],
        high: NDArray[np.float64],
        low: NDArray[np.float64],
        weight: NDArray[np.float64],
        bits: int,
        coarse_bits: int,
    ) -> None: ...
    def residuals(
        self,
        x: NDArray[Any],
        weights: NDArray[np.float64] | None,
        labels: NDArray[np.int32],
        total: NDArray[np.float64],
        each: NDArray[np.float64] | None = None,
        counts: NDArray[np.float64] | None = None,
    ) -> None: ...
    def update_closest(
        self,
        x: NDArray[Any],
        weights: NDArray[np.float64] | None,
        taken: int,
        closest: NDArray[Any],
        potential: NDArray[np.float64],
    ) -> float: ...

class SparseTargets:
    """Points that sparse rows are compared with; see `foldwise.kernels.sparse`."""

    def __init__(self, points: NDArray[Any], scale: float) -> None: ...
    def nearest(
        self,
        values: NDArray[Any],
        columns: NDArray[Any],
        starts: NDArray[Any],
        labels: NDArray[np.int32],
        near: NDArray[Any] | None = None,
        second: NDArray[Any] | None = None,
    ) -> tuple[int, int, int, int]: ...
    def move_rows(
        self,
        values: NDArray[Any],
        columns: NDArray[Any],
        starts: NDArray[Any],
        weights: NDArray[np.float64] | None,
        weight_scale: float,
        before: NDArray[np.int32] | None,
        after: NDArray[np.int32],
        slots: NDArray[np.int32],
        coarse: float,
        fine: float,
        high: NDArray[np.float64],
        low: NDArray[np.float64],
        weight: NDArray[np.float64],
    ) -> None: ...
    def residuals(
        self,
        values: NDArray[Any],
        columns: NDArray[Any],
        starts: NDArray[Any],
        weights: NDArray[np.float64] | None,
        labels: NDArray[np.int32],
        total: NDArray[np.float64],
        each: NDArray[np.float64] | None = None,
    ) -> None: ...
    def update_closest(
        self,
        values: NDArray[Any],
        columns: NDArray[Any],
        starts: NDArray[Any],
        weights: NDArray[np.float64] | None,
        taken: int,
        closest: NDArray[Any],
        potential: NDArray[np.float64],
    ) -> float: ...
    def distances(
        self, values: NDArray[Any], columns: NDArray[Any], starts: NDArray[Any], out: NDArray[Any]
    ) -> None: ...

def update_centres(
    high: NDArray[np.float64],
    low: NDArray[np.float64],
    weights: NDArray[np.float64],
    pivot: NDArray[np.float64],
    scale: float,
    old: NDArray[Any],
    now: NDArray[Any],
    given: bool,
    figures: NDArray[np.float64],
    helpers: int = 0,
) -> None: ...
def quick_int16(k: int, d: int, kept: bool = False) -> bool: ...
def distances_moved(
    before: NDArray[Any], after: NDArray[Any], scale: float, out: NDArray[np.float64], helpers: int = 0
) -> None: ...
def unit_rows(values: NDArray[Any], starts: NDArray[np.int64] | None, columns: int, out: NDArray[Any]) -> int: ...

class Batch:
    """Some rows of a table, by column."""

    @property
    def rows(self) -> int: ...
    def chosen(self, columns: list[int]) -> Batch: ...

class Stream:
    """An Arrow stream, batch by batch."""

    def __init__(self, capsule: object) -> None: ...
    def fields(self) -> list[tuple[str, str]]: ...
    def next(self) -> Batch | None: ...
    def close(self) -> None: ...

def batch_of(arrays: list[NDArray[Any]]) -> Batch: ...
def copy_into(
    batch: Batch, first: int, start: int, stop: int, out: NDArray[Any], out_row: int
) -> tuple[int, int] | None: ...

class RowRange:
    """Rows of a `ParquetReader` that are going to be read; as long as it exists, pages with them are kept once decoded."""

class ParquetReader:
    """Row groups of Parquet files, read in any order, from any thread."""

    def __init__(
        self,
        paths: list[bytes],
        files: NDArray[np.int64],
        rows: NDArray[np.int64],
        places: NDArray[np.int64],
        columns: list[tuple[str, bool]],
    ) -> None: ...
    def range(self, start: int, stop: int) -> RowRange: ...
    def read(self, rows: RowRange) -> list[Batch]: ...

def kmeans_seed(
    xt: NDArray[np.float64],
    row_weights: NDArray[np.float64] | None,
    uniforms: NDArray[np.float64],
    chosen: NDArray[np.int32],
) -> None: ...
def kmeans_run(
    xt: NDArray[np.float64],
    row_weights: NDArray[np.float64] | None,
    centres: NDArray[np.float64],
    labels: NDArray[np.int32],
    steps: int,
    swaps: int,
) -> float: ...
def label_moments(
    rows: NDArray[np.float64],
    row_weights: NDArray[np.float64] | None,
    labels: NDArray[np.int32],
    counts: NDArray[np.float64],
    means: NDArray[np.float64],
    scatter: NDArray[np.float64],
) -> None: ...
def em_run(
    kind: int,
    squares: int,
    x: NDArray[np.float64],
    row_weights: NDArray[np.float64] | None,
    ridge: NDArray[np.float64],
    weights: NDArray[np.float64],
    means: NDArray[np.float64],
    covariances: NDArray[np.float64],
    steps: int,
    tol: float,
    least: float,
    limit: float,
    many: float,
    power: float,
) -> tuple[float, int, int]: ...
def em_improve(
    kind: int,
    squares: int,
    x: NDArray[np.float64],
    row_weights: NDArray[np.float64] | None,
    ridge: NDArray[np.float64],
    weights: NDArray[np.float64],
    means: NDArray[np.float64],
    covariances: NDArray[np.float64],
    bound: float,
    until: float,
    each: float,
    patience: int,
    powers: NDArray[np.float64],
    judged: NDArray[np.int64],
    ahead: float,
    gain: float,
    tol: float,
    least: float,
    limit: float,
    many: float,
) -> tuple[float, float]: ...
def gap_order(x: NDArray[Any], sorted: bool, order: NDArray[np.int32]) -> int: ...  # noqa: A002

class GapComponents:
    """Gaussians that rows with missing cells are compared with; see `foldwise.kernels.mixture_gaps`."""

    def __init__(
        self,
        squares: int,
        log_weights: NDArray[np.float64],
        means: NDArray[np.float64],
        pivot: NDArray[np.float64],
        lengths: NDArray[np.float64],
        whiten: NDArray[np.float64] | None,
        factors: NDArray[np.float64] | None,
        precisions: NDArray[np.float64] | None,
        correlations: NDArray[np.float64] | None,
        deviations: NDArray[np.float64] | None,
        log_determinants: NDArray[np.float64] | None,
    ) -> None: ...
    def step(
        self,
        x: NDArray[Any],
        weights: NDArray[np.float64] | None,
        which: NDArray[np.int32],
        counts: NDArray[np.float64],
        shift: NDArray[np.float64],
        scatter: NDArray[np.float64] | None,
    ) -> float: ...
    def logs(
        self,
        x: NDArray[Any],
        which: NDArray[np.int32],
        total: NDArray[np.float64],
        each: NDArray[np.float64] | None,
    ) -> None: ...
    def complete(
        self,
        x: NDArray[Any],
        which: NDArray[np.int32],
        completed: NDArray[np.float64],
        deviations: NDArray[np.float64] | None,
        noise: NDArray[np.float64] | None,
        chosen: NDArray[np.int32] | None,
    ) -> None: ...

class Components:
    """Gaussians that rows are compared with; see `foldwise.kernels.mixture`."""

    def __init__(
        self,
        kind: int,
        squares: int,
        log_weights: NDArray[np.float64],
        means: NDArray[np.float64],
        whiten: NDArray[np.float64],
        pivot: NDArray[np.float64],
        single: bool,
        narrow: bool,
    ) -> None: ...
    @property
    def narrow(self) -> bool: ...
    def step(
        self,
        x: NDArray[Any],
        weights: NDArray[np.float64] | None,
        counts: NDArray[np.float64],
        shift: NDArray[np.float64],
        scatter: NDArray[np.float64] | None,
    ) -> float: ...
    def logs(self, x: NDArray[Any], total: NDArray[np.float64], each: NDArray[np.float64] | None) -> None: ...

def search_small_table(
    x: NDArray[np.float64],
    weights: NDArray[np.float64] | None,
    given: NDArray[np.float64] | None,
    unit: bool,
    seed: int,
    starts: int,
    patience: int,
    spare: int,
    threads: int,
    out: NDArray[np.float64],
) -> None: ...
def brief_starts(
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    scale: float,
    seed: int,
    starts: int,
    steps: int,
    further: int,
    threads: int,
    out: NDArray[np.float64],
) -> float: ...
def digest(data: NDArray[np.uint8], from_: int, to: int) -> str: ...
def dither(pixels: NDArray[Any], palette: NDArray[np.float32], unit: float, labels: NDArray[Any]) -> None: ...

class Flag:
    def __init__(self, value: int) -> None: ...
    def value(self) -> int: ...
    def add(self, number: int) -> None: ...
    def wait_while(self, value: int, seconds: float) -> bool: ...
    def join_while(self, value: int, seconds: float) -> bool: ...
    def wait_until(self, value: int, seconds: float) -> bool: ...

def this_processor() -> int: ...
def announce_work() -> int: ...
def renew_crew() -> None: ...
def reused_integers(count: int) -> NDArray[np.int32]: ...
