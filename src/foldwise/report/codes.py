"""The report on a comparison of autoencoders of several sizes with PCA."""

from __future__ import annotations

from foldwise.data.source import Source
from foldwise.report.formats import counted, percent
from foldwise.report.run_header import left_out, told
from foldwise.report.svg import BLUE, ORANGE, Plot, text
from foldwise.report.values import Chart, Column, Group, Note, Report, Table
from foldwise.selection.code_comparison import CodeComparison


def comparison_report(found: CodeComparison, source: Source, *, scale: bool = False) -> Report:
    """The errors of each size, what they come to, and their curves."""
    words = "scaled columns, " if scale else ""
    parted = f"{counted(found.rows, 'row')} to learn from, {counted(found.held_out_rows, 'row')} held out"
    work = f"{words}{parted}, {found.seconds.sum():.1f} s of training"
    size = f"{counted(source.n_columns, 'column')} ({source.dtype.name})"
    if getattr(source, "recipe", None) is not None:
        about = [f"in the fits: {size}", work]
    else:
        about = [f"{source.where}: {size}", work, *left_out(source.left_out)]
    if found.cut_short:
        about.append(f"note: the time budget ended the training of size {', '.join(map(str, found.cut_short))}")
    if found.interrupted:
        about.append(f"stopped early: interrupted after {counted(len(found.sizes), 'size')}")
    most = len(found.pca_curve) - 1
    table = Table(
        "Lost of held-out rows",
        [
            Column("size", list(found.sizes)),
            Column("autoencoder", found.autoencoder_errors.tolist(), percent, bar=1.0),
            Column("PCA", found.pca_errors.tolist(), percent, bar=1.0),
            Column("difference", (found.autoencoder_errors - found.pca_errors).tolist(), _points),
            Column("give or take", found.standard_errors.tolist(), _points_plain),
            Column(
                "as good as components", list(found.equivalents), [_at_least(one, most) for one in found.equivalents]
            ),
            Column("seconds", found.seconds.tolist(), "{:.1f}".format),
        ],
        "Shares of the variance of held-out rows that reconstructions miss. Difference in percentage points, give or take one "
        "standard error. As good as components: how many principal components lose no less.",
    )
    chart = Chart(
        "What is lost, by the size of the code",
        lambda: _draw(found),
        "Orange: autoencoders, with two standard errors of the difference. Blue: PCA with 1, 2, 3, ... components.",
        wide=True,
        alt=f"What is lost, by the size of the code. {found.sentence}",
    )
    return Report(
        "Autoencoders beside PCA",
        about,
        parts=[Group([Note(found.sentence, only="text"), table], wide=True), chart],
        data=told(source),
        lead=[found.sentence],
        lead_only="page",
    )


def _at_least(many: int, most: int) -> str:
    return f"at least {many}" if many == most else str(many)


def _points(share: float) -> str:
    return f"{100 * share:+.2f}"


def _points_plain(share: float) -> str:
    return f"{100 * share:.2f}"


def _draw(found: CodeComparison) -> str:
    last = min(len(found.pca_curve) - 1, max(*found.sizes, *found.equivalents, 1) + 1)
    plot = Plot((0, last), (0.0, 1.0), "numbers per row", 720, 320, whole=True, percent=True)
    plot.line(range(last + 1), found.pca_curve[: last + 1], BLUE)
    if last <= 64:
        plot.dots(range(last + 1), found.pca_curve[: last + 1], BLUE, 2.5, "{x:g} components: {y:.1%}")
    plot.line(found.sizes, found.autoencoder_errors, ORANGE)
    for size, error, spread in zip(found.sizes, found.autoencoder_errors, found.standard_errors, strict=True):
        plot.line((size, size), (error - 2 * spread, error + 2 * spread), ORANGE, 1.5)
    plot.dots(found.sizes, found.autoencoder_errors, ORANGE, 4, "size {x:g}: {y:.1%}")
    plot.add(text(plot.right - 6, plot.top + 14, "autoencoder", "end", ORANGE))
    plot.add(text(plot.right - 6, plot.top + 32, "PCA", "end", BLUE))
    return plot.svg()
