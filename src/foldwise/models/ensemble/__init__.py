"""Cluster ensembles: several clusterings of the same rows, and one that agrees with them."""

from foldwise.models.ensemble.choose import ConsensusChoice
from foldwise.models.ensemble.consensus_matrix import Coassociation, coassociation
from foldwise.models.ensemble.estimator import ClusterEnsemble

__all__ = ["ClusterEnsemble", "Coassociation", "ConsensusChoice", "coassociation"]
