"""The NumPy equivalent of each compiled kernel: its specification and its test oracle, written for clarity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Replaces a sum of squares that underflows float64, so that a column that varies never appears constant.
LEAST_POSITIVE = 5e-324


def two_parts(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """a + b as the rounded sum and its rounding error: at a large offset, one float64 is not enough for a mean."""
    total = a + b
    back = total - a
    return np.stack([total, (a - (total - back)) + (b - back)])


def _never_lost(
    squares: NDArray[np.float64], shifted: NDArray[np.float64], w: NDArray[np.float64]
) -> NDArray[np.float64]:
    varies = (shifted[w > 0] != 0).any(axis=0)
    return np.asarray(np.where((squares == 0) & varies, LEAST_POSITIVE, squares))


def scatter(
    x: NDArray[Any], weights: NDArray[np.float64] | None
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Total weight, mean in two parts and scatter about it, sum of w (x - m)(x - m)': upper triangle, zeros below."""
    n, d = x.shape
    if n == 0:
        return 0.0, np.zeros((2, d)), np.zeros((d, d))
    w = np.ones(n) if weights is None else weights
    total = float(w.sum())
    if total == 0.0:
        return 0.0, np.zeros((2, d)), np.zeros((d, d))
    pivot = x[0].astype(np.float64)
    shifted = x.astype(np.float64) - pivot
    shift = (w @ shifted) / total
    shifted -= shift
    matrix = np.triu((shifted * w[:, None]).T @ shifted)
    np.fill_diagonal(matrix, _never_lost(matrix.diagonal(), shifted, w))
    return total, two_parts(pivot, shift), matrix


def merge_moments(
    left: NDArray[np.float64],
    left_scatter: NDArray[np.float64],
    left_weight: float,
    right: NDArray[np.float64],
    right_scatter: NDArray[np.float64],
    right_weight: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centre, and scatter (upper triangle, zeros below), of two sets of rows together (Chan, Golub and LeVeque 1983)."""
    share = right_weight / (left_weight + right_weight)
    delta = (right[0] - left[0]) + (right[1] - left[1])
    moved = two_parts(left[0], delta * share)
    scatter = np.triu(left_scatter + right_scatter + left_weight * share * np.outer(delta, delta))
    lost = (scatter.diagonal() == 0) & (delta != 0)
    np.fill_diagonal(scatter, np.where(lost, LEAST_POSITIVE, scatter.diagonal()))
    return two_parts(moved[0], moved[1] + left[1]), scatter


def scatter_product(
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    centre: NDArray[np.float64],
    factor: NDArray[np.float64] | None,
    basis: NDArray[np.float64],
    *,
    wide: bool = True,
) -> NDArray[np.float64]:
    """The sum of w z z' times `basis`, for rows z = (x - centre) * factor; the centre is in two parts.

    Here all of it is in float64. The kernel forms products of float32 rows in float32 unless `wide`, over at most 240 rows, and
    adds them up in float64. Rows of weight 0 may hold anything.
    """
    z = (x.astype(np.float64) - centre[0]) - centre[1]
    if factor is not None:
        z = z * factor
    if weights is not None:
        z = z[weights != 0] * np.sqrt(weights[weights != 0])[:, None]
    return np.asarray(z.T @ (z @ basis))


def row_product(x: NDArray[np.float32], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """x `vectors`', each a sum over the columns in their order, from 0 on; a fused product is rounded with the sum only.

    So a row's values depend neither on the rows beside it nor on their number.
    """
    found = np.zeros((len(x), len(vectors)), np.float32)
    for left, right in zip(x.T.astype(np.float64), vectors.T.astype(np.float64), strict=True):
        found = (found + np.outer(left, right)).astype(np.float32)
    return found


def columns(
    x: NDArray[Any], weights: NDArray[np.float64] | None
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Total weight, mean in two parts and weighted centred sum of squares, column by column."""
    n, d = x.shape
    w = np.ones(n) if weights is None else weights
    total = float(w.sum())
    if total == 0.0:
        return 0.0, np.zeros((2, d)), np.zeros(d)
    pivot = x[0].astype(np.float64)
    shifted = x.astype(np.float64) - pivot
    shift = (w @ shifted) / total
    shifted -= shift
    return total, two_parts(pivot, shift), _never_lost(w @ shifted**2, shifted, w)


def merge_columns(
    left: NDArray[np.float64],
    left_squares: NDArray[np.float64],
    left_weight: float,
    right: NDArray[np.float64],
    right_squares: NDArray[np.float64],
    right_weight: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centre and centred sums of squares, column by column, of two sets of rows together (Chan, Golub and LeVeque 1983)."""
    weight = left_weight + right_weight
    delta = (right[0] - left[0]) + (right[1] - left[1])
    squares = left_squares + right_squares + delta**2 * (left_weight * right_weight / weight)
    moved = two_parts(left[0], delta * (right_weight / weight))
    centre = two_parts(moved[0], moved[1] + left[1])
    return centre, np.where((squares == 0) & (delta != 0), LEAST_POSITIVE, squares)


def finite(x: NDArray[Any]) -> int:
    """The flat (row-major) position of the first NaN or infinity, or -1."""
    bad = np.flatnonzero(~np.isfinite(x))
    return int(bad[0]) if bad.size else -1


def centred(x: NDArray[Any], centre: NDArray[np.float64], scale: NDArray[np.float64] | None) -> NDArray[Any]:
    """(x - centre) / scale computed in float64, rounded once to the dtype of x."""
    shifted = x.astype(np.float64) - centre
    if scale is not None:
        shifted /= scale
    return shifted.astype(x.dtype)


def extent(x: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Minimum and maximum of each column."""
    return x.min(axis=0).astype(np.float64), x.max(axis=0).astype(np.float64)


def nearest(x: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.int32]:
    """The nearest target of each row, in extended precision; ties go to the lowest number."""
    rows, points = x.astype(np.longdouble), targets.astype(np.longdouble)
    out = np.empty(len(x), dtype=np.int32)
    for i, row in enumerate(rows):
        out[i] = ((row - points) ** 2).sum(axis=1).argmin()
    return out


def observed_squares(x: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.longdouble]:
    """The squared distances of rows to targets over the cells of each row that are not NaN, in extended precision."""
    out = np.zeros((len(x), len(targets)), np.longdouble)
    for i, row in enumerate(x.astype(np.longdouble)):
        some = ~np.isnan(row)
        out[i] = ((row[some] - targets[:, some].astype(np.longdouble)) ** 2).sum(axis=1)
    return out


def nearest_observed(x: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.int32]:
    """The nearest target of each row over its observed cells, the first among equals; -1 for a row without any."""
    found = observed_squares(x, targets).argmin(axis=1).astype(np.int32)
    return np.where(np.isnan(x).all(axis=1), np.int32(-1), found)


def similarity(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """e^x, capped at 1 where rounding left an exponent above 0; subnormal results are 0."""
    return np.where(x < -708, 0.0, np.exp(np.minimum(x, 0.0)))


def distance_sums(
    points: NDArray[np.float64],
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    labels: NDArray[np.int32],
    n_clusters: int,
    scale: float = 1.0,
) -> NDArray[np.float64]:
    """The weighted sum of the Euclidean distances from each point to the rows, times `scale`, of each cluster."""
    rows, out = x.astype(np.longdouble) * scale, np.zeros((len(points), n_clusters), np.longdouble)
    for i, point in enumerate(points.astype(np.longdouble)):
        distances = np.sqrt(((point - rows) ** 2).sum(axis=1))
        np.add.at(out[i], labels, distances if weights is None else distances * weights)
    return out.astype(np.float64)


def observed_distance_sums(
    points: NDArray[np.float64],
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    labels: NDArray[np.int32],
    n_clusters: int,
    scale: float = 1.0,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same over the cells that point and row have, squares times columns / common cells; rows without any do not count.

    The second array has the weights of the rows that each point was compared with.
    """
    rows, shape = x.astype(np.longdouble) * scale, (len(points), n_clusters)
    out, compared = np.zeros(shape, np.longdouble), np.zeros(shape, np.longdouble)
    w = np.ones(len(x)) if weights is None else weights
    for i, point in enumerate(points.astype(np.longdouble)):
        gaps = point - rows
        common = (~np.isnan(gaps)).sum(axis=1)
        some = common > 0
        distances = np.sqrt(np.nansum(gaps[some] ** 2, axis=1) * x.shape[1] / common[some])
        np.add.at(out[i], labels[some], distances * w[some])
        np.add.at(compared[i], labels[some], w[some])
    return out.astype(np.float64), compared.astype(np.float64)


def unit_rows(x: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Each row divided by its length; zero rows are unchanged, and counted."""
    largest = np.abs(x).max(axis=1, keepdims=True)
    zero = largest[:, 0] == 0
    # Divide by the largest value first: squares of very large or small values would leave float64.
    wide = x.astype(np.longdouble) / np.where(largest == 0, 1, largest)
    lengths = np.sqrt((wide**2).sum(axis=1, keepdims=True))
    return (wide / np.where(lengths == 0, 1, lengths)).astype(x.dtype), int(zero.sum())


def mixture_logs(
    x: NDArray[Any],
    kind: str,
    log_weights: NDArray[np.float64],
    means: NDArray[np.float64],
    whiten: NDArray[np.float64],
    work: Any = np.float64,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Log density of each row, and the log responsibility of each component for it; see `mixture.Components`."""
    scores = np.empty((len(x), len(means)), work)
    for j, mean in enumerate(means.astype(work)):
        factor = (whiten if kind == "tied" else whiten[j]).astype(work)
        z = x.astype(work) - mean
        q = z @ factor if factor.ndim == 2 else z * factor
        scores[:, j] = log_weights[j] - np.minimum((q * q).sum(axis=1), 1e300) / 2  # farther rows belong equally to all
    best = scores.max(axis=1)
    rest = np.log(np.exp(scores - best[:, None]).sum(axis=1))
    return best + rest, (scores - best[:, None]) - rest[:, None]  # for distant rows, `rest` is lost next to `best`


def mixture_step(
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    kind: str,
    log_weights: NDArray[np.float64],
    means: NDArray[np.float64],
    whiten: NDArray[np.float64],
    scatter: str,
    work: Any = np.float64,
) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Weighted log-likelihood and, for each component, its weight and the weighted sums of x - mean and its square."""
    k, d = means.shape
    w = np.ones(len(x), work) if weights is None else weights.astype(work)
    rows, w = x[w > 0].astype(work), w[w > 0]  # values in rows of weight 0 do not matter
    total, logs = mixture_logs(rows, kind, log_weights, means, whiten, work)
    shares = np.exp(logs) * w[:, None]
    shift = np.empty((k, d), work)
    spread = None if scatter == "none" else np.zeros({"full": (k, d, d), "tied": (d, d), "diag": (k, d)}[scatter], work)
    for j, mean in enumerate(means.astype(work)):
        z = rows - mean
        weighted = z * shares[:, j, None]
        shift[j] = weighted.sum(axis=0)
        if spread is None:
            continue
        if scatter == "diag":
            spread[j] = (weighted * z).sum(axis=0)
        elif scatter == "tied":
            spread += weighted.T @ z
        else:
            spread[j] = weighted.T @ z
    return (total * w).sum(), shares.sum(axis=0), shift, spread


def mixture_gaps(
    row: NDArray[Any], mean: NDArray[np.float64], covariance: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """One row with missing cells (NaN) and one Gaussian: log density of what is observed, the row completed by what is
    expected of the rest, and the conditional covariance of the latter, with zeros for observed cells."""
    missing = np.isnan(row)
    o, m = np.flatnonzero(~missing), np.flatnonzero(missing)
    completed, left = row.astype(np.float64), np.zeros((len(row), len(row)))
    away = completed[o] - mean[o]
    inner = covariance[np.ix_(o, o)]
    weighted = np.linalg.solve(inner, away) if len(o) else away
    log_density = -(away @ weighted + np.linalg.slogdet(inner)[1] + len(o) * np.log(2 * np.pi)) / 2
    cross = covariance[np.ix_(m, o)]
    completed[m] = mean[m] + cross @ weighted
    left[np.ix_(m, m)] = covariance[np.ix_(m, m)]
    if len(o):
        left[np.ix_(m, m)] -= cross @ np.linalg.solve(inner, cross.T)
    return float(log_density), completed, left


def mixture_gaps_step(
    x: NDArray[Any],
    weights: NDArray[np.float64] | None,
    shares: NDArray[np.float64],
    means: NDArray[np.float64],
    covariances: NDArray[np.float64],
    scatter: str,
) -> tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """`mixture_step` over rows with missing cells; `shares` are the components' weights, `covariances` (k, d, d)."""
    (k, d), w = means.shape, np.ones(len(x)) if weights is None else weights
    total, counts, shift, spread = 0.0, np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d))
    for row, weight in zip(x, w, strict=True):
        if weight == 0:
            continue
        found = [mixture_gaps(row, *one) for one in zip(means, covariances, strict=True)]
        logs = np.log(shares) + np.array([one[0] for one in found])
        all_of = float(np.logaddexp.reduce(logs))
        total += float(weight) * all_of
        for j, part in enumerate(weight * np.exp(logs - all_of)):
            z = found[j][1] - means[j]
            counts[j] += part
            shift[j] += part * z
            spread[j] += part * (np.outer(z, z) + found[j][2])
    out = {"full": spread, "tied": spread.sum(axis=0), "diag": np.diagonal(spread, axis1=1, axis2=2)}[scatter]
    return total, counts, shift, np.array(out)


def complete_cells(
    x: NDArray[Any],
    centre: NDArray[np.float64],
    inverse: NDArray[np.float64],
    mean: NDArray[np.float64],
    precision: NDArray[np.float64],
) -> tuple[NDArray[np.float64], list[NDArray[np.float64]], NDArray[np.float64]]:
    """Rows z = (x - centre) * inverse - mean with NaN at its conditional mean; d x d conditional covariances; log determinants.

    The determinants are of the precisions of the missing cells. Where `inverse` is 0, z is 0 and nothing is missing.
    """
    z = np.where(inverse == 0, 0.0, (x.astype(np.float64) - centre) * inverse - mean)
    covariances, logs = [], np.zeros(len(z))
    for i, row in enumerate(z):
        gaps, inside = np.flatnonzero(np.isnan(row)), np.flatnonzero(~np.isnan(row))
        spread = np.zeros(precision.shape)
        if gaps.size:
            own = precision[np.ix_(gaps, gaps)]
            z[i, gaps] = -np.linalg.solve(own, precision[np.ix_(gaps, inside)] @ row[inside])
            spread[np.ix_(gaps, gaps)] = np.linalg.inv(own)
            logs[i] = np.linalg.slogdet(own)[1]
        covariances.append(spread)
    return z, covariances, logs


def left_out_cells(
    x: NDArray[Any],
    weights: NDArray[np.float64],
    centre: NDArray[np.float64],
    inverse: NDArray[np.float64],
    mean: NDArray[np.float64],
    matrix: NDArray[np.float64],
    removed: float,
) -> tuple[float, float]:
    """Weighted sum of squared errors of observed cells, each at most 9, and the number of cells.

    A cell is predicted by regression on the row's other observed cells, with the covariances of `matrix` less `removed` times
    the row's own products; no more is removed than leaves 1/20 of the row's leverage.
    """
    total = cells = 0.0
    for row, weight in zip((x.astype(np.float64) - centre) * inverse - mean, weights, strict=True):
        seen = np.flatnonzero(~np.isnan(row) & (inverse != 0))
        r, block = row[seen], matrix[np.ix_(seen, seen)]
        leverage = r @ np.linalg.solve(block, r) if seen.size else 0.0
        block = block - min(removed, 0.95 / leverage if leverage > 0 else removed) * np.outer(r, r)
        for j in range(seen.size):
            rest = np.delete(np.arange(seen.size), j)
            predicted = block[j, rest] @ np.linalg.solve(block[np.ix_(rest, rest)], r[rest])
            total += weight * min((r[j] - predicted) ** 2, 9.0)
            cells += weight
    return total, cells


def dither(pixels: NDArray[Any], palette: NDArray[np.float32]) -> NDArray[Any]:
    """Numbers of the palette's colours by Floyd and Steinberg's error diffusion, every other row from right to left.

    Pixels (height, width, channels) of 8 or 16 bits, the palette from 0 to 255. Float32 in the order of the compiled kernel.
    """
    one = np.float32
    height, width, channels = pixels.shape
    unit = one(1) if pixels.dtype == np.uint8 else one(255 / 65535)
    labels = np.empty((height, width), np.uint8 if len(palette) <= 256 else np.uint16)
    errors = np.zeros((height + 1, width + 2, channels), one)
    for y in range(height):
        ahead = -1 if y % 2 else 1
        for x in range(width)[::ahead]:
            wanted = np.clip(pixels[y, x].astype(one) * unit + errors[y, x + 1], 0, 255).astype(one)
            squares = np.zeros(len(palette), one)
            for j in range(channels):
                squares += (palette[:, j] - wanted[j]) ** 2
            labels[y, x] = squares.argmin()
            lost = (wanted - palette[labels[y, x]]) * one(0.0625)
            errors[y, x + 1 + ahead] += 7 * lost
            errors[y + 1, x + 1 - ahead] += 3 * lost
            errors[y + 1, x + 1] += 5 * lost
            errors[y + 1, x + 1 + ahead] += lost
    return labels
