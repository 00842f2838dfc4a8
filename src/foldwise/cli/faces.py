"""`foldwise faces`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foldwise.cli.options import COMPUTE, Compute, Count, OptionalCount, Output, Seed


def faces(
    images: str,
    /,
    *,
    label: str | None = None,
    image_size: Annotated[str | None, Parameter(name=["--image-size", "--shape"])] = None,
    grey: bool = False,
    components: Annotated[str | None, Parameter(name=["--components", "-k"])] = None,
    reconstruct: str | None = None,
    novel: str | None = None,
    splits: OptionalCount = None,
    max_images: Count = 60_000,
    seed: Seed = 0,
    report: Path | None = None,
    model: Path | None = None,
    out: Path | None = None,
    json: bool = False,
    compute: Compute = COMPUTE,
) -> int:
    """Components of images (eigenfaces): what they have in common, who is on them, and what is none of them.

    For faces, digits or any other images of one size. Prints how many are recognised by their nearest neighbour, by number of
    components, and how well other images are told apart by what the components leave of them; the page (--report) shows the
    mean image, the components, reconstructions and the images that are confused most.

    Parameters
    ----------
    images
        A folder of images, of which each subfolder is a person; a .npy or .npz file; an IDX file such as MNIST's; or a table
        with a column for each pixel.
    label
        Who or what is on each image: a column of the table (by name, or by position, from 0, if it has none), an array of the
        .npz file, or a file (.npy, IDX, or text with one label in each line). Default: the subfolders, or labels beside the
        images. Without any, nothing is recognised; all else is the same.
    image_size
        Width and height, as in 64x64: images in a folder are resized to it, and rows of pixels that are no square need it.
    grey
        Take the colours away from images in a folder.
    components
        The numbers of components to recognise with, as in 10,20,50. Default: 10, 20, ..., 150.
    reconstruct
        The numbers of components to reconstruct images with. Default: 1,10,50,250.
    novel
        A folder or file of images that are none of these, to be told from held-out ones. Default: noise, images cut into
        shuffled tiles, and images upside down.
    splits
        How often the images are split at random into a half to learn from and a half to recognise. Default: 10; 3 of more than
        10,000 images.
    max_images
        Of more images than this, so many are drawn at random.
    report
        Write a web page with pictures and charts to this file (.html).
    model
        Save the components to this file; `foldwise apply` gives the scores of new images.
    out
        Write the results to this file as JSON.
    json
        Print the results as JSON.
    """
    import foldwise as fw
    from foldwise.cli.check_outputs import check_outputs
    from foldwise.cli.output import finish, save_early
    from foldwise.report.images.eigenfaces import eigenfaces_report

    output = Output(out=out, model=model, report=report, json=json)
    check_outputs(images, output, rows=False)
    with compute.engine_context():
        with fw.progress():
            found = fw.eigenfaces(
                images,
                label,
                n_components=_numbers(components, "--components"),
                reconstruct=_numbers(reconstruct, "--reconstruct"),
                image_size=image_size,
                grey=grey,
                novel=novel,
                n_splits=splits,
                max_images=max_images,
                random_state=seed,
                n_threads=compute.threads,
            )
        save_early(found.pca, output)
        return finish(eigenfaces_report(found), output, model=found.pca, interrupted=found.interrupted)


def _numbers(text: str | None, option: str) -> list[int] | None:
    """Numbers separated by commas.

    >>> _numbers("1,10, 50", "--reconstruct")
    [1, 10, 50]
    """
    from foldwise.errors import ParameterError

    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) >= 1 for part in parts):
        raise ParameterError(f"{option} {text}: give numbers of components, as in 10,20,50.")
    return [int(part) for part in parts]
