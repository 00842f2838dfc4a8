"""The commands, gathered."""

from __future__ import annotations

from cyclopts import App, Parameter

import foldwise
from foldwise.cli.apply import apply
from foldwise.cli.autoencode import autoencode
from foldwise.cli.cluster import cluster
from foldwise.cli.ensemble import ensemble
from foldwise.cli.explore import explore
from foldwise.cli.faces import faces
from foldwise.cli.fit_distribution import fit_distribution
from foldwise.cli.look import look
from foldwise.cli.mixture import mixture
from foldwise.cli.pca import pca
from foldwise.cli.quantize import quantize
from foldwise.cli.select import select
from foldwise.cli.superpixels import superpixels

app = App(
    name="foldwise",
    help="Find the directions and the groups in unlabelled data, and say how far to trust them.",
    version=foldwise.__version__,
    default_parameter=Parameter(negative=()),
    help_format="plaintext",  # importing markdown would take longer than all the rest
    suppress_keyboard_interrupt=False,  # `main` says what became of the files
)
app.command(explore)
app.command(look)
app.command(pca)
app.command(cluster)
app.command(mixture)
app.command(ensemble)
app.command(select)
app.command(autoencode)
app.command(faces)
app.command(fit_distribution)
app.command(quantize)
app.command(superpixels)
app.command(apply)
