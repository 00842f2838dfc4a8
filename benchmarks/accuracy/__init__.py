"""Accuracy of the results."""
