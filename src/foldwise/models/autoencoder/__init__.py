"""Autoencoders: codes of a few numbers from which rows are rebuilt."""

from foldwise.models.autoencoder.estimator import Autoencoder

__all__ = ["Autoencoder"]
