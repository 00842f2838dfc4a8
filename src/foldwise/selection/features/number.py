"""How many columns to keep, by a stated rule, with the range that the rule would also defend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foldwise.data.block import Floats
from foldwise.models.pca.rank import RankChoice, by_rule
from foldwise.models.pca.spectrum import Spectrum
from foldwise.selection.features.explained import REDUNDANT
from foldwise.selection.features.path import SelectionPath


@dataclass(frozen=True)
class Target:
    """The share to be explained, and the shares for which fewer or more columns would be defensible."""

    rule: str
    share: float
    low: float
    high: float
    meaning: str

    def choice(self, path: SelectionPath) -> RankChoice:
        """The fewest columns on the path that explain the share; all that it has if none do."""
        best = path.by_size()

        def fewest(share: float) -> int:
            return next((size for size, step in best.items() if step.score >= share), max(best))

        sizes = fewest(self.share), fewest(self.low), fewest(self.high)
        return RankChoice(self.rule, *sizes, self.meaning, _figures(path))


def share_target(share: float) -> Target:
    """The share that was asked for."""
    return Target(f"share {share:g}", share, share, share, "the fewest columns on the path that explain this share")


def auto_target(spectrum: Spectrum) -> Target:
    """As much as the components that stand out from noise, by parallel analysis, explain.

    No fewer columns than components can explain as much. Where nothing stands out, no column stands for another: only
    redundant ones are left out.
    """
    found = by_rule("parallel", spectrum)
    assert found is not None
    total = spectrum.total_variance
    shares = np.concatenate([[0.0], np.cumsum(spectrum.variances)]) / total
    whole = 1.0 - 10 * REDUNDANT
    share, low, high = (min(float(shares[k]), whole) if k else whole for k in (found.chosen, found.low, found.high))
    if not found.chosen:
        meaning = (
            "no component stands out from noise, so no column stands for another; only redundant ones are left out"
        )
        return Target("auto", whole, whole, whole, meaning)
    many = f"the {found.chosen} components that stand out" if found.chosen > 1 else "the component that stands out"
    meaning = (
        f"the fewest columns on the path that explain as much as {many} from noise "
        f"({100 * share:.1f} %; by parallel analysis)"
    )
    return Target("auto", share, min(low, share) if found.low else share, max(high, share), meaning)


def within_one_error(path: SelectionPath) -> RankChoice:
    """The fewest columns whose score is within one standard error of the best; the best itself if errors are not known."""
    best = path.by_size()
    top = max(best.values(), key=lambda step: step.score)
    error = top.error if top.error == top.error else 0.0
    near = [size for size, step in best.items() if step.score >= top.score - error]
    meaning = (
        f"the fewest columns whose score is within one standard error of the best ({top.score:.4g} with {top.size})"
        if error
        else "the number of columns with the best score"
    )
    return RankChoice("auto", min(near), min(near), max(near), meaning, _figures(path))


def nearly_as_good(path: SelectionPath) -> RankChoice:
    """The fewest columns with 95 % of the best score, for scores that tend to grow with every column."""
    best = path.by_size()
    top = max(best.values(), key=lambda step: step.score)
    chosen, low, high = (
        next(size for size, step in best.items() if step.score >= share * top.score) for share in (0.95, 0.9, 0.99)
    )
    meaning = (
        f"the fewest columns with 95 % of the best score ({top.score:.4g} with {top.size}; "
        "the range is that for 90 % to 99 %)"
    )
    return RankChoice("auto", chosen, low, high, meaning, _figures(path))


def _figures(path: SelectionPath) -> dict[str, Floats]:
    return {"columns": np.array(path.sizes, dtype=np.float64), "score": path.scores}
