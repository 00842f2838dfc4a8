"""The commands, gathered."""

from __future__ import annotations

from cyclopts import App

import foldwise
from foldwise.cli.apply import apply
from foldwise.cli.pca import pca

app = App(
    name="foldwise",
    help="Find the directions and the groups in unlabelled data, and say how far to trust them.",
    version=foldwise.__version__,
)
app.command(pca)
app.command(apply)
