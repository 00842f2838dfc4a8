"""Pictures by matplotlib (`pip install 'foldwise[plot]'`), one call each, returning the axes: `fw.plot.scree(model)` and so on.

Every function takes `ax`, axes to draw into; without it, it opens a figure. What `fw.explore` found can be given in place of
a model: the part of it that fits is drawn.
"""

from foldwise.plot.clusters import consensus, profiles, silhouette
from foldwise.plot.components import biplot, loadings, scores, scree
from foldwise.plot.fits import distribution, trace
from foldwise.plot.votes import kvotes

__all__ = [
    "biplot",
    "consensus",
    "distribution",
    "kvotes",
    "loadings",
    "profiles",
    "scores",
    "scree",
    "silhouette",
    "trace",
]
