"""A photograph in superpixels, compactness 3, 10 and 40, as a picture: `python docs/gallery/superpixels.py in.jpg out.png`.

Above the outlines, below the mean colours. Needs Pillow.
"""

import sys

import numpy as np

import foldwise as fw
from foldwise.data.image_file import write_image

columns = []
for compactness in (3, 10, 40):
    found = fw.superpixels(sys.argv[1], 200, compactness)
    columns.append(np.concatenate([found.boundaries(), found.mean_image()]))
    print(f"compactness {compactness}: {found.explained_variation:.1%} explained, {found.isoperimetric_quotient:.3f}")
write_image(sys.argv[2], np.concatenate(columns, axis=1))
