"""Models of images: palettes and codebooks, superpixels, eigenfaces."""
