"""Autoencoders: codes from which rows can be reconstructed."""

from foldwise.models.autoencoder.linear import LinearAutoencoder

__all__ = ["LinearAutoencoder"]
