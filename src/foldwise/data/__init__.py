"""Access to data: `scan` opens data of any kind as a `Source` of blocks."""

from __future__ import annotations

from foldwise.data.block import Block, DenseBlock, SparseBlock
from foldwise.data.scan import scan
from foldwise.data.source import Piece, Source

__all__ = ["Block", "DenseBlock", "Piece", "Source", "SparseBlock", "scan"]
