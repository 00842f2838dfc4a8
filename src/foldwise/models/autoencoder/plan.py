"""The network and its training as they are to be: widths of layers, batches, epochs. Nothing else decides these."""

from __future__ import annotations

import math
from dataclasses import dataclass

_STEPS = 8_000  # of the optimiser, that max_iter="auto" allows
_MOST_EPOCHS = 2000
_FEWEST_EPOCHS = 6
_HELD_OUT, _ENOUGH_HELD_OUT, _MOST_HELD_OUT = 0.1, 40, 0.3  # of the rows; with few rows, so many but at most this share
_WARM_UP = 0.05  # the share of the training in which the learning rate rises


@dataclass(frozen=True)
class Plan:
    """What the training depends on, apart from the rows."""

    encoder: tuple[int, ...]  # widths, from the inputs to the code
    decoder: tuple[int, ...]  # from the code to the outputs
    activation: str
    linear: bool
    noise: float
    dropout: float
    batch_size: int
    learning_rate: float
    weight_decay: float
    epochs: int
    patience: int
    seed: int

    def rate(self, progress: float) -> float:
        """The learning rate after a share of the training: a rising line, then half a wave of the cosine down to zero."""
        if progress < _WARM_UP:
            return self.learning_rate * progress / _WARM_UP
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * (progress - _WARM_UP) / (1 - _WARM_UP)))


def default_widths(n_inputs: int, n_components: int) -> tuple[int, ...]:
    """Hidden layers of the encoder for so many inputs and so large a code.

    >>> default_widths(784, 32), default_widths(13, 2), default_widths(3, 2)
    ((512, 256), (64, 64), (64, 64))
    """
    first = min(512, max(64, 2 ** math.ceil(math.log2(max(n_inputs, 1)))))
    return first, min(max(first // 2, 64, 2 ** math.ceil(math.log2(2 * n_components))), 2 * first)


def default_epochs(n_rows: int, batch_size: int) -> int:
    """Epochs for so many rows: some thousands of steps, however few the rows, and a few epochs, however many.

    >>> default_epochs(150, 256), default_epochs(54_000, 256), default_epochs(2_000_000, 256)
    (2000, 38, 6)
    """
    steps = max(1, round(n_rows / batch_size))
    return min(_MOST_EPOCHS, max(_FEWEST_EPOCHS, math.ceil(_STEPS / steps)))


def default_share(n_rows: int) -> float:
    """The share of rows to hold out: a tenth, or of few rows more, for a handful says little.

    >>> default_share(60_000), default_share(200), default_share(50)
    (0.1, 0.2, 0.3)
    """
    return min(_MOST_HELD_OUT, max(_HELD_OUT, _ENOUGH_HELD_OUT / n_rows))


def default_patience(epochs: int) -> int:
    """How many epochs may pass without a better one."""
    return max(5, math.ceil(epochs / 5))
