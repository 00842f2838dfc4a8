"""`foldwise quantize`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from cyclopts import Parameter, validators

from foldwise.cli.options import Seed
from foldwise.errors import ParameterError

if TYPE_CHECKING:
    from foldwise.models.images.quantized import QuantizedImage

_Count: TypeAlias = Annotated[int | None, Parameter(validator=validators.Number(gte=1))]
_COLORS = 16


def quantize(
    *images: str,
    colors: Annotated[int | None, Parameter(name=["--colors", "-k"], validator=validators.Number(gte=1))] = None,
    space: Literal["auto", "balanced", "rgb", "lab", "oklab"] = "auto",
    dither: bool = False,
    blocks: Annotated[int | None, Parameter(validator=validators.Number(gte=2))] = None,
    shared_palette: bool = False,
    palette: Path | None = None,
    out: Path | None = None,
    palette_out: Path | None = None,
    codebook: Path | None = None,
    report: Path | None = None,
    json: bool = False,
    seed: Seed = 0,
    threads: _Count = None,
) -> int:
    """Reduce pictures to a few colours, or to a few small tiles, by k-means.

    Prints the palette, sizes before and after, and how much the picture changed (PSNR, and the mean colour difference).

    Parameters
    ----------
    images
        Image files, a folder of them, or a quoted pattern ("photos/*.jpg"). An .npz file that this command wrote is turned into
        a picture again.
    colors
        How many colours or, with --blocks, tiles. Default: 16.
    space
        Where distances between colours are measured: rgb gives the highest PSNR, lab the smallest differences to the eye, oklab
        is a newer space of that kind, balanced adds the squares of rgb and lab. auto: balanced, or rgb for --blocks.
    dither
        Pass the error of each pixel on to its neighbours, so that smooth areas show no steps.
    blocks
        Replace square blocks of this many pixels a side by tiles of a codebook of -k (vector quantisation).
    shared_palette
        One palette (or codebook) for all pictures, and not one for each.
    palette
        Use the colours of this file: a list of colours (#rrggbb, or red, green and blue), a .gpl palette, or a picture.
    out
        Write the picture: .png (a palette in as few bits as it takes), .gif, .bmp, .jpg, .webp, ..., or .npz, the numbers and
        codes themselves. Of several pictures: a folder (made if need be), in which each gets its name with .png (with --blocks:
        .npz).
    palette_out
        Write the palette: .csv (with shares), .gpl, .hex, .txt or .png.
    codebook
        With --blocks: write the tiles, side by side as a picture (.png) or as an array (.npy).
    report
        Write a web page with the pictures before and after to this file (.html).
    json
        Print the results as JSON.
    threads
        Number of threads; the result does not depend on it.
    """
    from foldwise import ImageQuantizer, progress
    from foldwise.cli.check_outputs import check_outputs
    from foldwise.cli.options import Output
    from foldwise.cli.output import finish
    from foldwise.data.palette_file import check_palette_name, read_palette

    inputs = _listed(images)
    output = Output(out=None, report=report, json=json)
    if out is None and len(inputs) > 1 and not (shared_palette and (palette_out or codebook)):
        raise ParameterError(f"{len(inputs)} pictures: give --out and a folder for what becomes of them.")
    targets = _targets(inputs, out, ".npz" if blocks else ".png")
    files = {"--palette-out": palette_out, "--codebook": codebook}
    if out is not None and len(inputs) > 1:
        _make_folder(out)
    first = {} if out is None or not targets else {"--out": Path(targets[0])}
    for option, path in {**files, "--report": report}.items():
        if path is not None and os.path.realpath(os.path.expanduser(path)) in map(os.path.realpath, targets):
            raise ParameterError(f"{option} {path}: a picture of --out gets this name. Give another one.")
    check_outputs("", output, rows=False, more={**{o: f for o, f in files.items() if f is not None}, **first})
    _keep_inputs([*inputs, *([os.fspath(palette)] if palette else [])], [*targets, palette_out, codebook, report])
    if palette_out is not None:
        check_palette_name(palette_out)
    if codebook is not None and codebook.suffix.lower() not in (".png", ".npy"):
        raise ParameterError(f"--codebook {codebook}: tiles are written as .png or .npy.")
    _check_options(inputs, colors, blocks, dither, palette, palette_out, codebook, shared_palette)
    if len(inputs) == 1 and inputs[0].lower().endswith(".npz"):
        if colors or blocks or dither or palette:
            raise ParameterError(
                f"{inputs[0]} is a finished result: -k, --blocks, --dither and --palette are for pictures."
            )
        return _one(_load(inputs[0]), targets, palette_out, codebook, output)
    model = ImageQuantizer(
        colors or _COLORS,
        space=space,
        block=blocks,
        dither=dither,
        palette=None if palette is None else read_palette(palette),
        random_state=seed,
        n_threads=threads,
    )
    if len(inputs) == 1:
        with progress():
            made = model.fit_transform(inputs[0])
        return _one(made, targets, palette_out, codebook, output)
    with progress():
        if shared_palette or palette is not None:
            model.fit(inputs)
        made_all = _several(model, inputs, targets, palette_out, codebook, paged=report is not None)
        return finish(made_all, output)


def _several(
    model: Any, inputs: list[str], targets: list[str], palette_out: Path | None, codebook: Path | None, *, paged: bool
) -> Any:
    """Make and write each picture; the report on all of them."""
    from foldwise.fold.events import Stage, emit
    from foldwise.report.quantize import THUMBNAILS, Written, folder_report

    fitted, total, rows, made = hasattr(model, "n_images_"), None, [], None
    for number, name in enumerate(inputs):
        emit(Stage(name, number + 1, len(inputs)))
        made = model.transform(name) if fitted else model.fit_transform(name)
        total = made.counts if total is None or not fitted else total + made.counts
        size = made.save(targets[number]) if targets else None
        rows.append(Written.of(made, size, shown=paged and number < THUMBNAILS))
    assert made is not None
    assert total is not None
    _write_codes(made, total, palette_out, codebook)
    return folder_report(rows, model.palette_ if fitted else None, total)


def _one(made: QuantizedImage, targets: list[str], palette_out: Path | None, codebook: Path | None, output: Any) -> int:
    from foldwise.cli.output import finish
    from foldwise.report.quantize import quantize_report

    _check_codes(made, palette_out, codebook)
    written = (targets[0], made.save(targets[0])) if targets else None
    _write_codes(made, made.counts, palette_out, codebook)
    return finish(quantize_report(made, written), output)


def _write_codes(made: QuantizedImage, counts: Any, palette_out: Path | None, codebook: Path | None) -> None:
    from foldwise.data.palette_file import write_palette
    from foldwise.models.images.quantized import write_codebook

    if palette_out is not None and made.palette is not None:
        write_palette(os.path.expanduser(palette_out), made.palette, [int(one) for one in counts])
    if codebook is not None and made.codebook is not None:
        write_codebook(os.path.expanduser(codebook), made.codebook)


def _check_codes(made: QuantizedImage, palette_out: Path | None, codebook: Path | None) -> None:
    """Refuse, before anything is written, what a finished result does not have."""
    if palette_out is not None and made.palette is None:
        raise ParameterError(f"--palette-out: {made.name} has tiles, not a palette; use --codebook.")
    if codebook is not None and made.codebook is None:
        raise ParameterError(f"--codebook: {made.name} has a palette, not tiles; use --palette-out.")


def _make_folder(out: Path) -> None:
    """The folder for several pictures, if it is not there."""
    from foldwise.data.atomic import explained

    with explained(out):
        os.makedirs(os.path.expanduser(out), exist_ok=True)


def _load(name: str) -> QuantizedImage:
    from foldwise import QuantizedImage

    return QuantizedImage.load(name)


def _listed(images: tuple[str, ...]) -> list[str]:
    """The files that were named, by patterns too."""
    from foldwise.models.images.picture import listed

    if not images:
        raise ParameterError("give an image file, as in `foldwise quantize photo.jpg -k 16 --out q.png`.")
    return [os.fspath(one) for one in listed(list(images))]


def _targets(inputs: list[str], out: Path | None, ending: str) -> list[str]:
    """The file that each picture is written to."""
    from foldwise.data.image_endings import ENDINGS

    if out is None:
        return []
    place = os.path.expanduser(os.fspath(out))
    if os.path.isdir(place) or len(inputs) > 1:
        if os.path.exists(place) and not os.path.isdir(place):
            raise ParameterError(f"--out {out}: for {len(inputs)} pictures this must be a folder, but it is a file.")
        made = [os.path.join(place, os.path.splitext(os.path.basename(name))[0] + ending) for name in inputs]
        if len(set(made)) < len(made):
            twice = next(one for one in made if made.count(one) > 1)
            both = " and ".join(name for name, one in zip(inputs, made, strict=True) if one == twice)
            raise ParameterError(f"--out {out}: {both} would both become {twice}. Do them one after the other.")
        return made
    suffix = os.path.splitext(place)[1].lower()
    if suffix != ".npz" and suffix not in ENDINGS:
        raise ParameterError(f"--out {out}: give a name that ends in .npz or in one of {', '.join(ENDINGS)}.")
    return [place]


def _keep_inputs(inputs: list[str], outputs: list[Any]) -> None:
    """Refuse to write over what is read."""
    read = {_identity(name) for name in inputs if os.path.exists(name)}
    for path in (os.path.expanduser(os.fspath(one)) for one in outputs if one is not None):
        if os.path.exists(path) and _identity(path) in read:
            raise ParameterError(f"{path}: this is the input file; writing would destroy it. Give another name.")


def _identity(path: str) -> tuple[int, int]:
    """What two names of one file have in common."""
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _check_options(
    inputs: list[str],
    colors: int | None,
    blocks: int | None,
    dither: bool,
    palette: Path | None,
    palette_out: Path | None,
    codebook: Path | None,
    shared: bool,
) -> None:
    """Refuse options that do not go together."""
    done = inputs[0].lower().endswith(".npz")
    if palette is not None and colors is not None:
        raise ParameterError("-k and --palette: the number of colours is that of the palette; give one of them.")
    if blocks is not None and (dither or palette is not None or palette_out is not None):
        wrong = "--dither" if dither else "--palette" if palette is not None else "--palette-out"
        raise ParameterError(f"{wrong} is for colours, --blocks for tiles: give one of them.")
    if codebook is not None and blocks is None and not done:
        raise ParameterError("--codebook writes the tiles of --blocks; the palette is written by --palette-out.")
    if shared and palette is not None:
        raise ParameterError("--shared-palette finds a palette, --palette has one: give one of them.")
    several = {"--palette-out": palette_out, "--codebook": codebook}
    if len(inputs) > 1 and not shared and palette is None:
        for option, path in several.items():
            if path is not None:
                raise ParameterError(f"{option}: each picture has its own; give --shared-palette for one of all.")
    if len(inputs) > 1 and any(name.lower().endswith(".npz") for name in inputs):
        raise ParameterError("an .npz file is turned into a picture on its own; give one at a time.")
