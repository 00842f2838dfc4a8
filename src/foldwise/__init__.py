"""Foldwise."""
