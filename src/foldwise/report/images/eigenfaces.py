"""The report on the components of images."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from foldwise.data.image_shape import in_pixels
from foldwise.models.images.eigenfaces import Eigenfaces
from foldwise.models.images.novelty import Novelty
from foldwise.models.images.recognition import Recognition
from foldwise.report.charts import scree
from foldwise.report.formats import counted, percent, whole_percent
from foldwise.report.images.gallery import as_direction, as_pixels, gallery
from foldwise.report.legend import legend
from foldwise.report.svg import BLUE, MUTED, ORANGE, Plot
from foldwise.report.values import Chart, Column, Fact, Group, Note, Part, Report, Table

_COMPONENTS = 21  # shown, beside the mean
_SCREE = 60
_HELD = 0.9
_AS_FACES = 50  # components that make a face of everything


def eigenfaces_report(found: Eigenfaces) -> Report:
    """Mean and components as pictures, reconstructions, recognition, novelty."""
    given = found.images
    n, shape = len(given.values), in_pixels(found.shape)
    labels = found.labels
    about = [f"{given.where}: {n:,} images, {shape} pixels" + ("" if labels is None else f", {len(labels):,} labels")]
    kept = counted(len(found.pca.components_), "component")
    ran = f"PCA ({found.pca.manifest_.algorithm}), {kept}; all in {found.seconds:.2f} s"
    parts: list[Part] = [_components(found), _reconstructions(found)]
    facts, lead = _variance_facts(found), [_variance_words(found)]
    if found.recognition is not None and found.recognition.judged:
        facts += _recognition_facts(found.recognition)
        lead += [_recognition_words(found.recognition, given.label_name)]
        parts += _recognition(found, found.recognition)
    if found.novelty is not None:
        facts.append(Fact("AUC of novelty", found.novelty.all_auc, _auc(found.novelty.all_auc), _NOVELTY_REMARK))
        lead += [_novelty_words(found.novelty)]
        parts += _novelty(found, found.novelty)
    parts.append(_scree(found))
    parts += [Note("\n".join(found.notes))] if found.notes else []
    return Report(f"Components of {n:,} images", [ran], facts, parts, data=about, lead=lead)


def _ends(found: Eigenfaces) -> tuple[float, float]:
    """What is drawn black and white: as far as the pixels go, or as the type of the images says."""
    values, white = found.images.values, found.images.white
    high = float(values.max())
    if math.isfinite(white) and high > white / 4:
        return 0.0, white
    return float(values.min()), high


# ---------------------------------------------------------------- variance


def _needed(shares: Any, total: float) -> int | None:
    reached = np.flatnonzero(np.cumsum(shares) >= total - 1e-12)
    return int(reached[0]) + 1 if len(reached) else None


def _variance_facts(found: Eigenfaces) -> list[Fact]:
    needed = _needed(found.pca.explained_variance_ratio_, _HELD)
    text = str(needed) if needed is not None else f"more than {len(found.pca.components_)}"
    return [Fact("components for 90 %", needed, text, "of the variance of the pixels")]


def _variance_words(found: Eigenfaces) -> str:
    shares = found.pca.explained_variance_ratio_
    some = min(_AS_FACES, len(shares))
    held = float(shares[:some].sum())
    return (
        f"The first of the components holds {whole_percent(float(shares[0]))} of the variance of the pixels, "
        f"the first {some} together {whole_percent(held)}."
        if some > 1
        else "The only component holds all variance of the pixels."
    )


def _components(found: Eigenfaces) -> Chart:
    shares = found.pca.explained_variance_ratio_

    def draw() -> str:
        some = found.components[:_COMPONENTS]
        pictures = [as_pixels(found.mean_image, _ends(found)), *(as_direction(one) for one in some)]
        words = ["mean", *(f"{number}: {percent(float(shares[number]))}" for number in range(len(some)))]
        return gallery(pictures, words)

    caption = (
        "The mean of all images, then the components, each with its share of the variance: an image is the mean plus a "
        "little of each component. Middle grey: the component leaves the pixel as it is; its sign is free."
    )
    return Chart("Mean and components", draw, caption, wide=True, alt="The mean image and the first components")


def _scree(found: Eigenfaces) -> Chart:
    shares = found.pca.explained_variance_ratio_[:_SCREE]
    caption = "Share of the variance of each component (bars) and of all up to it (line)."
    return Chart("Variance", lambda: scree(shares.tolist()) if len(shares) > 1 else None, caption)


def _reconstructions(found: Eigenfaces) -> Chart:
    counts = found.reconstruct_counts

    def draw() -> str:
        ends, pictures, words = _ends(found), [], []
        for image in found.examples:
            whole = float(np.square(image - found.mean_image).sum())
            pictures.append(as_pixels(image, ends))
            words.append("original")
            for count in counts:
                made = found.reconstruct(image, count)
                left = float(np.square(image - made).sum()) / whole if whole > 0 else 0.0
                pictures.append(as_pixels(made, ends))
                words.append(f"{count}: {100 * left:.{1 if left < 0.1 else 0}f} %")
        return gallery(pictures, words, together=1 + len(counts))

    caption = (
        f"Images, and what {', '.join(map(str, counts))} components keep of them; below each, the share of the "
        "squared difference from the mean image that is missing. The components were learnt from these images, too."
    )
    return Chart("Reconstructions", draw, caption, wide=True, alt="Originals beside their reconstructions")


# ---------------------------------------------------------------- recognition


def _recognition_facts(found: Recognition) -> list[Fact]:
    place = found.counts.index(found.best)
    facts = []
    if np.isfinite(found.left_out).any():
        value = float(found.left_out[place])
        facts.append(
            Fact("recognised, left out", value, percent(value), f"with {found.best} components, against all others")
        )
    if len(found.split):
        value = float(found.split.mean(axis=0)[place])
        facts.append(
            Fact("recognised, split", value, percent(value), f"with {found.best} components, half of the images known")
        )
    return facts


def _recognition_words(found: Recognition, name: str) -> str:
    place, told = found.counts.index(found.best), []
    if np.isfinite(found.left_out).any():
        pixels = (
            f" ({percent(found.pixels_left_out)} by all pixels)"
            if found.pixels_left_out == found.pixels_left_out
            else ""
        )
        told.append(
            f"{percent(float(found.left_out[place]))} of the images if each is compared with all others{pixels}"
        )
    if len(found.split):
        own = float(found.split.mean(axis=0)[place])
        told.append(
            f"{percent(own)} if half of the images of each {name} are known ({percent(float(found.pixels_split.mean()))})"
        )
    if not told:
        return "Nothing is known about recognition."
    return f"The nearest other image in {found.best} components has the right {name} for {', and '.join(told)}."


def _recognition(found: Eigenfaces, seen: Recognition) -> list[Part]:
    table = seen.table.values
    shown = [[percent(value) if value == value else "-" for value in column] for column in table.T]
    spread = [f"{100 * value:.1f}" if value == value else "-" for value in table[:, 2]]
    columns = [
        Column("components", [*seen.counts, "all pixels"], left=True),
        Column("left out", table[:, 0].tolist(), shown[0]),
        Column("split", table[:, 1].tolist(), shown[1]),
        Column("give or take", table[:, 2].tolist(), spread),
        Column("without first 3", table[:, 3].tolist(), shown[3]),
        Column("whitened", table[:, 4].tolist(), shown[4]),
    ]
    how = "in components that did not see it" if seen.refitted else "in components of all images"
    caption = (
        f"Images whose nearest neighbour has their label. Left out: each of {seen.judged:,} images against all others, {how}. "
        f"Split: components and neighbours from half of the images of each label, the others recognised; mean of "
        f"{counted(len(seen.split), 'random split')}, give or take one standard deviation in points. On the same splits: "
        "without the first 3 components, which in faces mostly show the light, and with all components scaled to the same "
        f"variance. {seen.best} components are the fewest within one standard error of the best."
    )
    parts: list[Part] = [
        Chart("Recognition", lambda: _accuracy(seen), _ACCURACY_CAPTION, alt="Accuracy by number of components")
    ]
    parts += [_confusions(found, seen)] if seen.confused else []
    return [*parts, Table("Accuracy by number of components", columns, caption, wide=True)]


_ACCURACY_CAPTION = "Share of images whose nearest neighbour has the right label. Dashed: by all pixels."


def _accuracy(seen: Recognition) -> str | None:
    left, split = seen.left_out, seen.split.mean(axis=0) if len(seen.split) else np.full(len(seen.counts), np.nan)
    pixels = [seen.pixels_left_out, float(seen.pixels_split.mean()) if len(seen.pixels_split) else np.nan]
    drawn = [value for value in [*left, *split, *pixels] if value == value]
    if len(seen.counts) < 2 or not drawn:
        return None
    low, high = min(drawn), max(drawn)
    room = 0.1 * (high - low) or 0.05
    entries = [("left out", BLUE), ("split", ORANGE)]
    names, tall = legend(entries, 460)
    plot = Plot(
        (0, seen.counts[-1]),
        (max(0.0, low - room), min(1.0, high + room)),
        "components",
        height=280,
        whole=True,
        percent=True,
        top=tall + 12,
    )
    plot.add(names)
    for values, level, ink in ((left, pixels[0], BLUE), (split, pixels[1], ORANGE)):
        if level == level:
            plot.line((0, seen.counts[-1]), (level, level), ink, 1, dash=5)
        plot.line(seen.counts, values, ink)
        plot.dots(seen.counts, values, ink, 3, "{x:g} components: {y:.1%}")
    return plot.svg()


def _confusions(found: Eigenfaces, seen: Recognition) -> Chart:
    name = found.images.label_name
    shown = seen.confused[: len(found.pairs)]

    def draw() -> str:
        ends, pictures, words = _ends(found), [], []
        for pair, one in zip(found.pairs, shown, strict=True):
            pictures += [as_pixels(pair[0], ends), as_pixels(pair[1], ends)]
            times = f", {one.times} x" if one.times > 1 else ""
            words += [f"{name} {one.label}{times}", f"taken for {one.taken_for}"]
        return gallery(pictures, words, together=2)

    caption = (
        f"Left out with {seen.best} components, {seen.wrong:,} of {seen.judged:,} images are nearest to one with another "
        "label: an image of the most frequent such pairs, and the image it is nearest to."
    )
    return Chart("Taken for each other", draw, caption, alt="Pairs of images with different labels")


# ---------------------------------------------------------------- novelty

_NOVELTY_REMARK = "(the chance that what is none of these images scores higher than one that is)"
_SCORE = (
    "The score of an image is the mean of its squared residual and of the residual's share of the image's own variance, each "
    "divided by its median over {typical}: 1 is usual."
)
_FAINT = " The plain residual alone takes what is faint for one of the images."


def _auc(value: float) -> str:
    return f"{value:.4f}" if value > 0.999 else f"{value:.3f}"


def _novelty_words(seen: Novelty) -> str:
    what = "made for comparison" if seen.made else "given for comparison"
    return (
        f"Of {counted(seen.n_others, 'other image')} {what}, {seen.n_others - seen.misplaced:,} score higher than every one of "
        f"{len(seen.held_out):,} held-out images (AUC {_auc(seen.all_auc)})."
    )


def _novelty(found: Eigenfaces, seen: Novelty) -> list[Part]:
    table = seen.table.values
    columns = [
        Column("other images", [one.name for one in seen.others], left=True),
        Column("number", table[:, 0].astype(int).tolist(), "{:,}".format),
        Column("median score", table[:, 1].tolist(), "{:.2f}".format),
        Column("AUC", table[:, 2].tolist(), _auc),
        Column("AUC, plain residual", table[:, 3].tolist(), _auc),
        Column("not above all held out", table[:, 4].astype(int).tolist(), "{:,}".format),
    ]
    k = len(seen.pca.components_)
    fooled = _FAINT if any(plain < own - 0.05 for own, plain in table[:, 2:4]) else ""
    turned = (
        ""
        if all(one.counted for one in seen.others)
        else " Images upside down may still be such images: they count apart."
    )
    learnt = f"The {k} components were learnt from half of the images; {len(seen.held_out):,} others are held out."

    def pictures(part: tuple[Any, Any]) -> str:
        rows, scores = part
        ends = _ends(found)
        shown = [as_pixels(one, ends) for one in rows.reshape(-1, *found.shape)]
        return gallery(shown, [f"{score:.3g}" for score in scores], side=64)

    typical = f"{seen.n_typical:,} more images" if seen.n_typical else "the held-out images themselves"
    several: list[Table | Chart | Note] = [
        Table("Novelty by kind", columns, f"{learnt} {_SCORE.format(typical=typical)}{fooled}{turned}"),
        Chart("Scores", lambda: _scores(seen), "Numbers of images by score, on a logarithmic scale.", alt="Scores"),
        Chart(
            "Held-out images", lambda: pictures(seen.member_examples),
            "By score: the most usual ones, then the least usual ones.", alt="Held-out images by score",
        ),
        Chart(
            "Other images", lambda: pictures(seen.other_examples),
            "By score; those with the lowest are most like the images.", alt="Other images by score",
        ),
    ]  # fmt: skip
    return [Group(several, "Novelty: what is none of these images", wide=True), _everything(found, seen)]


def _scores(seen: Novelty) -> str | None:
    every = np.concatenate([seen.held_out, *(one.score for one in seen.others)])
    logs = [np.log10(np.maximum(one, 1e-6)) for one in (seen.held_out, np.concatenate([o.score for o in seen.others]))]
    low, high = float(np.log10(max(every.min(), 1e-6))), float(np.log10(np.quantile(every, 0.999)))
    if not high > low:
        return None
    edges = np.linspace(low - 0.02, high + 0.02, 50)
    counts = [np.histogram(np.clip(one, edges[0], edges[-1]), edges)[0] for one in logs]
    names, tall = legend([("held-out images", BLUE), ("other images", ORANGE)], 460)
    plot = Plot(
        (edges[0], edges[-1]), (0, 1.05 * max(1, *(c.max() for c in counts))), "log10 of the score", top=tall + 12
    )
    plot.add(names)
    for count, ink in ((counts[1], ORANGE), (counts[0], BLUE)):
        plot.bars(edges.tolist(), count.tolist(), ink, "{height:g}")
    if low < 0 < high:
        plot.line((0.0, 0.0), (0, 1.05 * max(c.max() for c in counts)), MUTED, 1, dash=4)
    return plot.svg()


def _everything(found: Eigenfaces, seen: Novelty) -> Chart:
    k = min(_AS_FACES, len(found.pca.components_))
    rows = seen.other_examples[0]
    some = rows[np.linspace(0, len(rows) - 1, min(8, len(rows))).astype(np.intp)].reshape(-1, *found.shape)

    def draw() -> str:
        ends = _ends(found)
        made = found.reconstruct(some, k)
        pictures = [as_pixels(one, ends) for one in [*some, *made]]
        order = [place for number in range(len(some)) for place in (number, number + len(some))]
        words = ["other image", f"with {k}"] * len(some)
        return gallery([pictures[place] for place in order], words, together=2)

    caption = (
        "Or whatever these images show: components can only make images like those they were learnt from. Other images, and "
        "what "
        f"{counted(k, 'component')} make of them."
    )
    return Chart("Everything is a face", draw, caption, alt="Other images beside their reconstructions")
