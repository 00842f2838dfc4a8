"""Autoencoders: codes of a few numbers from which rows are rebuilt."""

from foldwise.models.autoencoder.estimator import Autoencoder
from foldwise.models.autoencoder.linear import LinearAutoencoder

__all__ = ["Autoencoder", "LinearAutoencoder"]
