"""The quantiles of the dip of uniform values, as `selection/dip_test.py` has them: the dip times the root of n."""

from __future__ import annotations

import numpy as np

from foldwise.kernels import _core
from foldwise.selection.dip_test import _PROBABILITIES

_SAMPLES = {8: 60_000, 12: 60_000, 20: 60_000, 35: 60_000, 60: 60_000, 100: 60_000, 200: 60_000}
_SAMPLES |= {500: 40_000, 1500: 30_000, 5000: 20_000, 20_000: 8_000}


def main() -> None:
    for n, samples in _SAMPLES.items():
        rng = np.random.default_rng([7, n])
        dips = np.array([_core.dip(np.sort(rng.random(n)), None) for _ in range(samples)]) * np.sqrt(n)
        found = np.quantile(dips, 1 - np.array(_PROBABILITIES))
        print(f"    {n}: ({', '.join(f'{value:.4f}' for value in found)}),", flush=True)


if __name__ == "__main__":
    main()
