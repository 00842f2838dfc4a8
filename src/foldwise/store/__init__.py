"""Saving and loading: a model or a result as one safetensors file, arrays plus a JSON header, never pickle."""

from foldwise.store.files import load, save

__all__ = ["load", "save"]
