"""Clusters of tables with cells removed at random against those of the complete table: adjusted Rand index, over 20 seeds.

`KMeans` and `GaussianMixture` (one covariance type for each table, by BIC on the complete rows), with gaps left to the model,
filled with means, or rows with gaps dropped (these are judged afterwards with means in their gaps).
"""

from __future__ import annotations

import warnings

import numpy as np

import foldwise as fw
from benchmarks.accuracy.missing import SEEDS, SHARES, table, with_gaps
from benchmarks.common import show

CASES = {"decathlon": 3, "wine": 3, "glass": 4, "iris": 3, "usarrests": 3, "swiss": 2, "banknote": 2, "crabs": 4}
WAYS = ("model", "mean", "drop")


def main() -> None:
    warnings.simplefilter("ignore")
    from sklearn.metrics import adjusted_rand_score

    behind = []
    for title in ("KMeans", "GaussianMixture"):
        rows = []
        for name, k in CASES.items():
            x = table(name)
            kind = fw.choose_mixture(x, [k]).best_model.covariance_type

            def model(way: str, k: int = k, kind: str = kind, title: str = title) -> object:
                if title == "KMeans":
                    return fw.KMeans(k, missing=way)
                return fw.GaussianMixture(k, covariance_type=kind, missing=way)

            true = model("error").fit(x).predict(x)
            for share in SHARES:
                found = np.full((SEEDS, len(WAYS)), np.nan)
                for seed in range(SEEDS):
                    y = with_gaps(x, share, seed)
                    for j, way in enumerate(WAYS):
                        try:
                            found[seed, j] = adjusted_rand_score(true, model(way).fit(y).predict(y))
                        except ValueError:  # too few complete rows
                            found[seed, j] = np.nan
                mean = np.nanmean(found, axis=0)
                away = found[:, 0] - found[:, 1]
                noise = float(away.std(ddof=1) / np.sqrt(SEEDS))
                if away.mean() < -2 * noise:
                    behind.append(f"{title} {name} {share:.0%}")
                rows.append([f"{name} {share:.0%}", *(f"{v:.2f}" for v in mean), f"{away.mean():+.3f} ± {noise:.3f}"])
        show(
            f"{title}: adjusted Rand index with the clusters of the complete table",
            ["removed", *WAYS, "model - mean"],
            rows,
        )
    print(f"behind filling with means by more than two standard errors: {', '.join(behind) or 'nowhere'}")


if __name__ == "__main__":
    main()
