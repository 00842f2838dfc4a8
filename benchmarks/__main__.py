"""`make bench` prints every table; `make bench ARGS="speed"` prints those whose name contains the word.

A whole name (`ARGS="speed.kmeans"`) is that one alone; what follows it is passed on (`ARGS="speed.kmeans_steps --columns 16"`).
Most real data are expected beside the repository, in ../shared/data; rows that need a missing file are skipped.
"""

from __future__ import annotations

import subprocess
import sys

from benchmarks.common import machine

_ALL = (
    "benchmarks.accuracy.pca",
    "benchmarks.accuracy.famd",
    "benchmarks.accuracy.planted_ranks",
    "benchmarks.speed.pca",
    "benchmarks.speed.famd",
    "benchmarks.memory.pca",
    "benchmarks.speed.files",
    "benchmarks.accuracy.missing",
    "benchmarks.accuracy.missing_clusters",
    "benchmarks.speed.pca_missing",
    "benchmarks.speed.kmeans_missing",
    "benchmarks.speed.tables",
    "benchmarks.accuracy.kmeans_optima",
    "benchmarks.accuracy.soft_kmeans",
    "benchmarks.accuracy.choose_clusters",
    "benchmarks.accuracy.stability",
    "benchmarks.accuracy.mixture",
    "benchmarks.accuracy.mixture_optima",
    "benchmarks.speed.kmeans",
    "benchmarks.speed.kmeans_steps",
    "benchmarks.speed.kmeans_one_step",
    "benchmarks.speed.kmeans_seeding",
    "benchmarks.speed.kmeans_sparse",
    "benchmarks.speed.silhouette",
    "benchmarks.speed.scores",
    "benchmarks.speed.stability",
    "benchmarks.accuracy.ensemble",
    "benchmarks.accuracy.explore",
    "benchmarks.speed.ensemble",
    "benchmarks.accuracy.feature_selection",
    "benchmarks.speed.feature_selection",
    "benchmarks.memory.kmeans",
    "benchmarks.memory.explore",
    "benchmarks.speed.distribution",
    "benchmarks.memory.distribution",
    "benchmarks.accuracy.distribution_choice",
    "benchmarks.speed.defaults",
    "benchmarks.speed.mixture",
    "benchmarks.speed.mixture_missing",
    "benchmarks.accuracy.kernel_kmeans",
    "benchmarks.speed.kernel_kmeans",
    "benchmarks.accuracy.autoencoder",
    "benchmarks.accuracy.quantize",
    "benchmarks.speed.quantize",
    "benchmarks.accuracy.faces",
    "benchmarks.speed.superpixels",
    "benchmarks.speed.engines",
    "benchmarks.faults.flips",
    "benchmarks.faults.kills",
)


def chosen(words: list[str]) -> tuple[list[str], list[str]]:
    """The benchmarks that are meant, and what is passed on to a single one."""
    whole = f"benchmarks.{words[0]}" if words else ""
    if whole in _ALL:
        return [whole], words[1:]
    return [name for name in _ALL if not words or any(word in name for word in words)], []


def main(words: list[str]) -> int:
    names, options = chosen(words)
    if not names or "--help" in words[:1]:
        print(__doc__)
        print("\n".join(name.removeprefix("benchmarks.") for name in _ALL))
        if "--help" in words:
            return 0
        print(f"\nno benchmark has {' or '.join(words)} in its name", file=sys.stderr)
        return 2
    print(machine(), flush=True)
    failed = 0
    for name in names:
        # Each in a process of its own: thread pools and patched libraries of one must not touch the next.
        failed |= subprocess.run([sys.executable, "-m", name, *options], check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
