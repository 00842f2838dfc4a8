"""The autoencoder that users meet: scikit-learn's manners outside, rounds of training inside."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from foldwise.data.source import Source
from foldwise.models.autoencoder.coded_rows import CodedRows
from foldwise.models.autoencoder.fit import Found, find
from foldwise.models.autoencoder.inputs import Inputs
from foldwise.models.autoencoder.parameters import PARAMETERS
from foldwise.models.autoencoder.row_output import Coder, record_dtype
from foldwise.models.autoencoder.torch_network import import_torch, one_thread_each
from foldwise.models.base import KnownParameters, RowOutput
from foldwise.models.fitted_rows import ShownModel
from foldwise.models.parameters import Parameter, constraints
from foldwise.models.session import session


class Autoencoder(
    ShownModel,
    KnownParameters,
    CodedRows,
    BaseEstimator,  # type: ignore[misc]
):
    """A network that squeezes each row into a few numbers, its code, and rebuilds the row from them.

    It begins as PCA and bends from there: code = V'x + mlp(x), row = Vz + mlp(z), where V are the principal directions. A part
    of the rows is held out and says when it was best; unless it was better than PCA there by twice the standard error, the
    result is PCA, of all rows. Takes what PCA takes, and reads files in rounds of 64 MB. Fitting needs torch (`pip install
    'foldwise[torch]'`), using a fitted model does not. Same seed, same bits, whatever n_threads, from memory or from a file.

    Parameters
    ----------
    n_components : how many numbers a code has.
    encoder, decoder : widths of the hidden layers; None is two layers by the number of columns, and the encoder's reversed.
    activation : "silu", "relu", "elu", "gelu", "tanh", "sigmoid", "softplus" or "linear".
    linear : False is the textbook network without PCA in it.
    noise : standard deviation of noise added to the scaled inputs in training; dropout: share of hidden units dropped.
    batch_size, learning_rate, weight_decay : of AdamW. The rate rises over the first twentieth, then falls to 0 as a cosine.
    max_iter : epochs; "auto" makes some 8,000 steps, in at least 6 and at most 2,000 epochs.
    validation_fraction : share of the rows held out; "auto" is a tenth, or of fewer than 400 rows up to three tenths. At most
        64 MB of rows are held out, and none of fewer than 20 rows: then the error of training rows chooses the epoch.
    patience : stops after so many epochs without a better one; "auto" is a fifth of max_iter.
    scale : columns are divided by their standard deviations, rather than all by one number.
    reduce_to : the network sees so many principal scores instead of the columns; "auto": 256 if rows are sparse or have more
        than 2,000 columns; None: never, except for sparse rows.
    missing : as for PCA; "model" completes rows by what PCA(missing="model") expects of their missing cells, in training and
        later, and counts errors of observed cells only (but training on scores, see reduce_to, counts filled ones too).
    prepare, random_state, time_budget, checkpoint, n_threads : as for PCA; a training that was killed goes on from its
        checkpoint.

    Attributes: `encoder_` and `decoder_` are plain arrays that map (x - mean_) / scale_ (scale_: one number per column, all
    equal without `scale`), or if `reduced_` the scores of `pca_` divided by `unit_`, to a code divided by `unit_`, and back. So
    codes begin as PCA's scores and have their units. `pca_`, if `reduced_` or missing="model" (else None), also completes rows.
    `held_out_error_`, `pca_error_` and `held_out_variance_` are mean squared errors of held-out rows, `validation_share_` of
    all: of the model, of PCA with as many numbers, and of the mean, none of which had seen them; if the result is PCA, it is
    then fitted to all rows. `trace_` has the errors of each epoch, `best_epoch_` the one kept (0: PCA), `n_iter_` how many
    there were. Citation: Hinton and Salakhutdinov, Science 313, 2006.

    >>> import numpy as np, foldwise as fw
    >>> t = np.linspace(-1, 1, 200)
    >>> rows = np.column_stack([t, t**2])  # a curve: one number tells where on it
    >>> ae = fw.Autoencoder(1, max_iter=200, random_state=0).fit(rows)
    >>> ae.transform(rows).shape, bool(ae.held_out_error_ < 0.1 * ae.pca_error_)
    ((200, 1), True)
    """

    PARAMETERS: ClassVar[dict[str, Parameter]] = PARAMETERS
    standardises: ClassVar[bool] = False  # the inputs of the network are scaled, not the rows
    _parameter_constraints: ClassVar[dict[str, Any]] = constraints(PARAMETERS)

    def __init__(
        self,
        n_components: int = 2,
        *,
        encoder: Sequence[int] | None = None,
        decoder: Sequence[int] | None = None,
        activation: str = "silu",
        linear: bool = True,
        noise: float = 0.0,
        dropout: float = 0.0,
        batch_size: int = 256,
        learning_rate: float = 2e-3,
        weight_decay: float = 0.0,
        max_iter: int | str = "auto",
        validation_fraction: float | str = "auto",
        patience: int | str = "auto",
        scale: bool = False,
        reduce_to: int | str | None = "auto",
        missing: str = "error",
        prepare: str | None = None,
        random_state: Any = None,
        time_budget: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.encoder = encoder
        self.decoder = decoder
        self.activation = activation
        self.linear = linear
        self.noise = noise
        self.dropout = dropout
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.scale = scale
        self.reduce_to = reduce_to
        self.missing = missing
        self.prepare = prepare
        self.random_state = random_state
        self.time_budget = time_budget
        self.checkpoint = checkpoint
        self.n_threads = n_threads

    # ---------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, engine: Any = None) -> Self:
        """Train the network; `sample_weight` counts a row as that many equal rows, `engine` reads the rows (`fw.engine`)."""
        self._validate_params()
        import_torch()
        with session(self, X, sample_weight, engine=engine) as opened, one_thread_each():
            found = find(self, opened)
            self._set(found)
            widths = "-".join(str(width) for width in self._widths())
            opened.finish(
                found.outcome,
                f"autoencoder {widths} ({self.activation}), AdamW",
                found.rows,
                resumed_at=found.resumed_at,
                notes=found.notes,
                warning="Autoencoder",
            )
        return self

    def _set(self, found: Found) -> None:
        inputs = found.inputs
        self.n_components_ = int(self.n_components)
        self.mean_, self.unit_ = inputs.mean, inputs.unit
        self.scale_ = inputs.scale * inputs.unit if inputs.directions is None else inputs.scale
        self.encoder_, self.decoder_ = found.encoder, found.decoder
        self.reduced_ = inputs.directions is not None
        self.pca_ = found.pca if self.reduced_ or self.missing == "model" else None
        self.validation_share_ = found.share
        self.held_out_error_, self.pca_error_ = found.error, found.judged.pca_error
        self.held_out_variance_ = found.judged.variance
        self.best_epoch_, self.n_iter_ = found.best_epoch, found.epochs
        self.trace_ = tuple(figures for figures in found.outcome.trace if "held_out_error" in figures)

    def _widths(self) -> list[int]:
        layers = (*self.encoder_.layers, *self.decoder_.layers)
        return [layers[0].weights.shape[1], *(len(layer.bias) for layer in layers)]

    # ---------------------------------------------------------------- rows

    def row_output(self, source: Source) -> RowOutput:
        """For streamed output: the code of each row, and its reconstruction error."""
        coder = self._coder()
        dtype = record_dtype(self.n_components_, source.dtype)
        return RowOutput(source, tuple(dtype.names or ()), dtype, coder.records)

    def _coder(self) -> Coder:
        check_is_fitted(self)
        unit, scale = float(self.unit_), np.asarray(self.scale_)
        pca: Any = self.pca_
        directions = pca.components_[: self.encoder_.n_inputs] if self.reduced_ else None
        fill = pca._normal if self.missing == "model" else None
        inputs = Inputs(self.mean_, scale / unit if directions is None else scale, unit, directions, fill)
        return Coder(inputs, self.encoder_, self.decoder_)
