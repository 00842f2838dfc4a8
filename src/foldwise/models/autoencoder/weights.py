"""All weights of an encoder and a decoder in one vector, so that the optimiser, checkpoints and copies see one array."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from foldwise.models.autoencoder.activations import ACTIVATIONS, Floats32
from foldwise.models.autoencoder.network import Layer, Network
from foldwise.models.autoencoder.plan import Plan

_ALIGNED = 16  # numbers: each matrix begins at a multiple of 64 bytes, where all machines multiply alike
_WEIGHTS = 22  # tells the generator of the first weights from the others of a fit


@dataclass(frozen=True)
class Place:
    """Where one matrix or bias is in the vector."""

    start: int
    shape: tuple[int, ...]

    @property
    def stop(self) -> int:
        """The end of it."""
        return self.start + math.prod(self.shape)

    @property
    def decays(self) -> bool:
        """Whether weight decay applies: to matrices."""
        return len(self.shape) == 2


class Layout:
    """The places of all layers of a plan: weights and bias of each, encoder first."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        places: list[Place] = []
        self.size = 0
        for widths in (plan.encoder, plan.decoder):
            for n_inputs, n_outputs in pairwise(widths):
                for shape in ((n_outputs, n_inputs), (n_outputs,)):
                    places.append(Place(self.size, shape))
                    self.size += -(-math.prod(shape) // _ALIGNED) * _ALIGNED
        self.places = tuple(places)
        self.n_encoder = 2 * (len(plan.encoder) - 1)  # places of the encoder

    @cached_property
    def last(self) -> tuple[int, int]:
        """The places of the weights of the last layers of encoder and decoder."""
        return self.n_encoder - 2, len(self.places) - 2

    def first_weights(self) -> Floats32:
        """Uniform weights as usual for the activation; with a linear part, the last layers begin at zero."""
        vector = np.zeros(self.size, dtype=np.float32)
        rng = np.random.default_rng([self.plan.seed, _WEIGHTS])
        gain = ACTIVATIONS[self.plan.activation].gain
        for number, place in enumerate(self.places):
            if not place.decays:
                continue
            n_inputs = place.shape[1]
            reach = (1.0 if number in self.last else gain) * math.sqrt(3 / n_inputs)
            drawn = rng.uniform(-reach, reach, size=place.stop - place.start)
            if not (self.plan.linear and number in self.last):
                vector[place.start : place.stop] = drawn
        return vector

    def networks(self, vector: Floats32, start: Start) -> tuple[Network, Network]:
        """Encoder and decoder as plain arrays, with codes in units of the inputs."""
        arrays = [vector[place.start : place.stop].reshape(place.shape).copy() for place in self.places]
        layers = list(zip(arrays[::2], arrays[1::2], strict=True))
        encoder, decoder = layers[: self.n_encoder // 2], layers[self.n_encoder // 2 :]
        (weights, bias), sizes = encoder[-1], start.sizes
        encoder[-1] = weights * sizes[:, None], bias * sizes
        weights, bias = decoder[0]
        decoder[0] = weights / sizes, bias
        return self._network(encoder, start.encoder), self._network(decoder, start.decoder)

    def _network(self, pairs: list[tuple[Floats32, Floats32]], shortcut: Floats32 | None) -> Network:
        names = [self.plan.activation] * (len(pairs) - 1) + ["linear"]
        return Network(
            tuple(Layer(weights, bias, name) for (weights, bias), name in zip(pairs, names, strict=True)), shortcut
        )


@dataclass(frozen=True)
class Start:
    """The linear part, k directions of the inputs, and the sizes of codes, by which these are divided in training."""

    directions: Floats32 | None  # k x inputs
    sizes: Floats32

    @property
    def encoder(self) -> Floats32 | None:
        """The shortcut of the encoder."""
        return self.directions

    @property
    def decoder(self) -> Floats32 | None:
        """The shortcut of the decoder."""
        return None if self.directions is None else np.ascontiguousarray(self.directions.T)
