"""Saving and loading: a model or a result as one safetensors file, arrays plus a JSON header, never pickle; and ONNX."""

from foldwise.store.files import load, save
from foldwise.store.onnx import save_onnx

__all__ = ["load", "save", "save_onnx"]
