"""When to use distance bounds. They never change a label, so the choice may depend on measurements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foldwise.kernels import _core
from foldwise.kernels.targets import CentreGroups, DenseTargets, Labels, Moved, Rescaling
from foldwise.models.kmeans.tasks import BoundsInUse

_GROUP = 5  # approximate number of targets in a group,
_GROUP_SHORT = 8  # if rows are short,
_GROUP_OBSERVED = 10  # and if rows may have missing cells
_SHORT = 96  # columns; shorter rows are compared by panels (bounded_groups.h), which pays once few change cluster
_LEAST_GROUPED = 128  # with fewer targets, there is one group
_MOST_BYTES = 512 << 20  # memory for the bounds of groups; less for files, which may be larger than memory
_MOST_BYTES_OF_FILE = 128 << 20
_SURVIVE = 8  # about one in this many of the rows not settled by bounds changes cluster,
_SURVIVE_UNGROUPED = 24  # and if there is one group
_TIGHTENED = 24, 1000  # with more targets, and targets times columns, bounds are tightened before a row is compared
_SURVIVE_KEPT = 40  # and if rows are kept as integers: a late start costs little, since passes without bounds are short
_LOSS = 1.45  # tolerated excess over the break-even share,
_LOSS_KEPT = 1.25  # and if rows are kept as integers
_MOST_REST = 8  # passes without bounds after a loss
_LOOK = 5  # cycles to test a row's bounds,
_LOOK_KEPT = 60  # and what else a pass with bounds takes for a row that it does not compare, where passes without are short
_LEAST_CYCLES = 24  # bounds do not pay for a cheaper comparison


class Bounds:
    """When to use upper and lower bounds on the distances of rows; the bounds themselves are kept as block state."""

    def __init__(
        self,
        mode: str,
        n: int,
        d: int,
        dtype: np.dtype[np.floating],
        *,
        sparse: bool,
        in_memory: bool = True,
        observed: bool = False,
        within: bool = False,
        kept: Callable[[int], bool] = lambda k: False,
        helpers: int = 0,
    ) -> None:
        """`within` says that rows without bounds are compared as integers, where that is quicker.

        `kept` tells for a number of centres whether rows are kept as such integers. `helpers` are threads that may help to
        prepare a pass.
        """
        self._within, self._kept, self._helpers = within, kept, helpers
        self.mode = "off" if sparse else mode
        self.n, self.d, self.dtype, self.observed = n, d, dtype, observed
        self._most_bytes = _MOST_BYTES if in_memory else _MOST_BYTES_OF_FILE
        self._groups: CentreGroups | None = None
        self._centres: NDArray[Any] | None = None  # the centres that the bounds refer to
        self._estimated: dict[int, tuple[float, float]] = {}  # `_cycles`, by number of targets
        self.forget()

    def forget(self) -> None:
        """Discard the bounds, because labels or the number of centres changed."""
        self._centres = None
        self._fresh = True
        self._rest, self._penalty = 0, 2
        self._share_moved, self._passes = 1.0, 0
        self.share = 1.0  # of the comparisons, those that the last pass made

    def prepare(
        self, centres: NDArray[Any], rescaling: Rescaling, *, last: bool = False
    ) -> tuple[DenseTargets, BoundsInUse] | None:
        """The targets and bounds for this pass, or None if it should not use bounds: a last one has no use for new ones."""
        if (last and self.mode == "auto" and self._centres is None) or not self._wanted(len(centres)):
            self._centres = None
            return None
        if self._centres is None or self._groups is None:
            self._start(centres, rescaling)
        else:
            drift = np.empty(len(centres))
            _core.distances_moved(self._centres, centres, rescaling.scale, drift, self._helpers)
            drift *= 1 + 1e-14 * self.d
            by_group = self._groups.largest(drift)
            self._total += drift
            self._group_total += by_group
            self._most += float(by_group.max())
            self._fresh = False
        self._centres = centres
        assert self._groups is not None
        moved = Moved.of(self._total, self._group_total, self._most, self.d, self.dtype)
        in_use = BoundsInUse(len(self._groups.ends), moved, self._fresh)
        return DenseTargets(centres, rescaling, self._groups, self.observed, helpers=self._helpers), in_use

    def _start(self, centres: NDArray[Any], rescaling: Rescaling) -> None:
        k = len(centres)
        if self._groups is None or len(self._groups.order) != k:
            self._groups = _grouped(centres, rescaling, self._number_of_groups(k))
        self._total, self._group_total, self._most = np.zeros(k), np.zeros(len(self._groups.ends)), 0.0
        self._fresh = True

    def _number_of_groups(self, k: int) -> int:
        size = _GROUP_OBSERVED if self.observed else _GROUP_SHORT if self.d < _SHORT else _GROUP
        groups = k // size if k >= _LEAST_GROUPED else 1
        groups = min(groups, max(self.d, 16) * 3 // 4)  # reading the bounds of a row must not take longer than reading the row
        return max(1, min(groups, self._most_bytes // max(1, self.n * self.dtype.itemsize)))

    def _cycles(self, k: int) -> tuple[float, float]:
        """Cycles to compare a row with all targets, without bounds and if they do not settle it; measured with AVX-512."""
        if k not in self._estimated:  # asked for several times in a pass
            self._estimated[k] = self._estimate(k)
        return self._estimated[k]

    def _estimate(self, k: int) -> tuple[float, float]:
        plain = k * self.d / 16 + 0.35 * k + 0.6 * self.d + 3
        groups = self._number_of_groups(k)
        tightened = k > _TIGHTENED[0] and k * self.d >= _TIGHTENED[1]
        more = 105.0 + 2 * groups if groups > 1 else 180.0 if tightened else 120.0
        if self._kept(k):
            return k * self.d / 32 + 0.35 * (k + self.d) + 10, plain + more
        if self._within and _core.quick_int16(k, self.d):  # bounds need distances in floating point
            return 0.6 * plain, plain + more
        return plain, plain + more

    def _worth(self, k: int) -> float:
        """The break-even share of rows that bounds may leave unsettled."""
        plain, compared = self._cycles(k)
        return max(0.0, (plain - (_LOOK_KEPT if self._kept(k) else _LOOK)) / compared)

    def _wanted(self, k: int) -> bool:
        if self.mode != "auto":
            return self.mode == "on" and k > 1
        plain, compared = self._cycles(k)
        if k == 1 or plain < _LEAST_CYCLES:
            return False
        if self._centres is not None:
            return True
        self._rest = max(0, self._rest - 1)
        # Where bounds cost next to nothing, use them from the second pass on.
        grouped = self._number_of_groups(k) > 1
        cheap = compared < plain * 5 / 4 and not (grouped and self.d < _SHORT)
        survive = _SURVIVE_KEPT if self._kept(k) else _SURVIVE if grouped else _SURVIVE_UNGROUPED
        soon = self._share_moved * survive < self._worth(k) or (cheap and self._passes > 0)
        return not self._rest and soon

    def learn(self, computed: int, moved: int, n: int) -> None:
        """Record how many rows the bounds left unsettled; if they cost much more than they save, pause them for a few passes.

        A small loss is tolerated: rows settle down later, and bounds that are dropped must be recomputed.
        """
        self._share_moved, self.share = moved / n, computed / n
        self._passes += 1
        if self.mode != "auto" or self._centres is None or self._fresh:
            return
        loss = _LOSS_KEPT if self._kept(len(self._centres)) else _LOSS
        if computed / n > loss * self._worth(len(self._centres)):
            self._rest, self._penalty = self._penalty, min(2 * self._penalty, _MOST_REST)
            self._centres = None


def _grouped(centres: NDArray[Any], rescaling: Rescaling, groups: int) -> CentreGroups:
    """Groups of neighbouring centres of about equal size, by recursive bisection across the principal axis.

    A group is recomputed as a whole when one of its centres has moved far. Groups found by k-means can be very unequal, and
    then the largest is always recomputed.
    """
    points = rescaling.apply(centres)
    parts = _halved(points, np.arange(len(centres), dtype=np.int32), groups)
    return CentreGroups(np.concatenate(parts), np.cumsum([len(part) for part in parts]).astype(np.int32))


def _halved(points: NDArray[np.float64], which: Labels, groups: int) -> list[Labels]:
    if groups == 1:
        return [which]
    some = points[which] - points[which].mean(axis=0)
    axis = some[np.argmax(np.einsum("ij,ij->i", some, some))]
    for _ in range(2):  # power iterations: an approximate principal axis is enough
        axis = some.T @ (some @ axis)
        axis = axis / (np.linalg.norm(axis) or 1.0)
    order = which[np.argsort(some @ axis, kind="stable")]
    left = groups // 2
    at = len(which) * left // groups
    return _halved(points, np.sort(order[:at]), left) + _halved(points, np.sort(order[at:]), groups - left)
