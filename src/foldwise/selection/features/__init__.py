"""Which columns to keep: searches over subsets of columns, and criteria that judge a subset."""

from foldwise.selection.features.estimator import FeatureSelector
from foldwise.selection.features.path import SelectionPath, SelectionStep

__all__ = ["FeatureSelector", "SelectionPath", "SelectionStep"]
