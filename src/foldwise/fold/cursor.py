"""Where in its plan a fit stands: whole numbers with names, which a state keeps as one array."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from foldwise.fold.iterate import State


class Place:
    """For dataclasses whose fields are all whole numbers."""

    def array(self) -> NDArray[np.int64]:
        """As a state keeps it."""
        return np.array(list(vars(self).values()), dtype=np.int64)

    @classmethod
    def of(cls, state: State) -> Self:
        """From a state."""
        return cls(*(int(value) for value in state["cursor"]))
