"""Cluster ensembles: several clusterings of the same rows, and one that agrees with them."""

from foldwise.models.ensemble.coassociation import Coassociation, coassociation

__all__ = ["Coassociation", "coassociation"]
