"""Reports on images."""
