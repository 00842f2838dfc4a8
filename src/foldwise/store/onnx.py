"""Export to ONNX, which other languages and services run: a graph built by hand from the arrays of a fitted model."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

import foldwise
from foldwise.data.atomic import replacing
from foldwise.errors import MissingDependencyError, ParameterError, StoreError
from foldwise.models.autoencoder.activations import ACTIVATIONS
from foldwise.models.autoencoder.network import Network

_OPSET, _IR = 17, 8  # of 2022: newer ones would shut out older runtimes, and nothing here needs them
OUTPUTS = ("codes", "reconstruction", "error")


def save_onnx(model: Any, path: str | os.PathLike[str], output: str = "codes") -> None:
    """Write a fitted PCA, LinearAutoencoder or Autoencoder as an ONNX model: one file that runs without Foldwise or Python.

    Its input is named "rows": any number of dense rows with the columns of the fit, in the dtype of the fit. Its output is
    named as `output` says: "codes" (what `transform` gives), "reconstruction" (the rows encoded and decoded) or "error" (what
    `reconstruction_error` gives: how novel each row is). Rows are centred in double precision, so that offsets cost no digits.
    Missing cells (NaN) are dealt with as by the model, except for the conditional means of a model with missing="model": they
    are not part of the graph, and such rows come out as NaN. The file is replaced atomically.

    >>> import os, tempfile
    >>> import foldwise as fw
    >>> pca = fw.PCA(1).fit([[0.0, 1.0], [2.0, 5.0], [4.0, 9.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fw.save_onnx(pca, os.path.join(folder, "pca.onnx"))
    ...     os.listdir(folder)
    ['pca.onnx']
    """
    kind = type(model).__name__
    if kind not in _MODELS or type(model) is not getattr(foldwise, kind):
        raise StoreError(f"a {kind} cannot be written as ONNX; supported are {', '.join(sorted(_MODELS))}.")
    if output not in OUTPUTS:
        raise ParameterError(f"output={output!r} must be one of {', '.join(map(repr, OUTPUTS))}")
    try:
        import onnx
    except ImportError:
        raise MissingDependencyError("save_onnx needs onnx: pip install 'foldwise[onnx]'.") from None
    check_is_fitted(model)
    graph = _Graph(onnx)
    dtype, result = _build(graph, model, _MODELS[kind](model), output)
    columns = len(model.mean_)
    wide = {"codes": [model.n_components_], "reconstruction": [columns], "error": []}[output]
    ending = np.dtype(np.float64) if output == "error" else dtype
    graph.node("Identity", result, named=output)
    made = onnx.helper.make_graph(
        graph.nodes,
        kind,
        [onnx.helper.make_tensor_value_info("rows", graph.type_of(dtype), ["n", columns])],
        [onnx.helper.make_tensor_value_info(output, graph.type_of(ending), ["n", *wide])],
        graph.constants,
    )
    whole = onnx.helper.make_model(
        made,
        producer_name="foldwise",
        producer_version=foldwise.__version__,
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        ir_version=_IR,
    )
    names = getattr(model, "feature_names_in_", None)
    if names is not None:  # so that whoever runs it can tell the columns
        onnx.helper.set_model_props(whole, {"columns": "\n".join(map(str, names))})
    onnx.checker.check_model(whole)
    with replacing(path) as file:
        file.write(whole.SerializeToString())


@dataclass
class _Graph:
    """Nodes and constants so far; methods return the names of results."""

    onnx: Any
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def node(self, op: str, *inputs: str, named: str | None = None, **attributes: Any) -> str:
        """The result of an operator."""
        name = named or f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """An array that is part of the model."""
        name = f"constant{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(value, dtype=dtype), name))
        return name

    def cast(self, value: str, dtype: Any) -> str:
        """The same numbers in another type."""
        return self.node("Cast", value, to=self.type_of(np.dtype(dtype)))

    def times(self, value: str, matrix: NDArray[Any], dtype: Any = np.float64) -> str:
        """Rows times a matrix."""
        return self.node("MatMul", value, self.constant(matrix, dtype))

    def type_of(self, dtype: np.dtype[Any]) -> int:
        """ONNX's number for a type."""
        return int(self.onnx.TensorProto.DOUBLE if dtype == np.float64 else self.onnx.TensorProto.FLOAT)


Part: TypeAlias = Callable[[_Graph, str], str]


@dataclass(frozen=True)
class _Code:
    """What a model does with rows in double: (x - mean) / scale to codes, and codes to such rows."""

    dtype: np.dtype[Any]
    mean: NDArray[Any]
    scale: NDArray[Any] | None
    encode: Part
    decode: Part
    fill: NDArray[Any] | None = None  # for missing cells
    blank: bool = False  # whether rows with missing cells are NaN throughout, which activations do not see to


def _build(graph: _Graph, model: Any, code: _Code, output: str) -> tuple[np.dtype[Any], str]:
    """The dtype of the input, and the name of the result."""
    rows = graph.cast("rows", np.float64)
    if code.fill is not None:
        rows = graph.node("Where", graph.node("IsNaN", rows), graph.constant(code.fill), rows)
    seen = graph.node("Sub", rows, graph.constant(code.mean))
    if code.scale is not None:
        seen = graph.node("Div", seen, graph.constant(code.scale))
    blank = _blank(graph, rows) if code.blank else None
    codes = code.encode(graph, seen)
    if output == "codes":
        codes = codes if blank is None else graph.node("Where", blank, graph.constant(np.nan), codes)
        return code.dtype, graph.cast(codes, code.dtype)
    decoded = code.decode(graph, codes)
    if blank is not None:
        decoded = graph.node("Where", blank, graph.constant(np.nan), decoded)
    if output == "reconstruction":
        if code.scale is not None:
            decoded = graph.node("Mul", decoded, graph.constant(code.scale))
        return code.dtype, graph.cast(graph.node("Add", decoded, graph.constant(code.mean)), code.dtype)
    rest = graph.node("Sub", seen, decoded)
    squares = graph.node("Mul", rest, rest)
    return code.dtype, graph.node("ReduceSum", squares, graph.constant([1], np.int64), keepdims=0)


def _blank(graph: _Graph, rows: str) -> str:
    """Whether a cell of each row is missing."""
    cells = graph.cast(graph.node("IsNaN", rows), np.float32)
    return graph.node("Greater", graph.node("ReduceMax", cells, axes=[1], keepdims=1), graph.constant(0.0, np.float32))


# ---------------------------------------------------------------- models


def _pca(model: Any) -> _Code:
    if model.n_components_ == 0:
        raise StoreError("this PCA has kept no components, so there is nothing to compute.")
    directions = np.asarray(model.components_, dtype=np.float64)
    deviations = model._projection(whiten=model.whiten).deviations

    def encode(graph: _Graph, rows: str) -> str:
        scores = graph.times(rows, directions.T)
        return scores if deviations is None else graph.node("Div", scores, graph.constant(deviations))

    def decode(graph: _Graph, codes: str) -> str:
        if deviations is not None:
            codes = graph.node("Mul", codes, graph.constant(deviations))
        return graph.times(codes, directions)

    return _Code(
        model.components_.dtype, model.mean_, model.scale_, encode, decode, getattr(model, "fill_values_", None)
    )


def _linear(model: Any) -> _Code:
    encoder, decoder = model.encoder_weights_, model.decoder_weights_

    def encode(graph: _Graph, rows: str) -> str:
        return graph.times(rows, encoder.T)

    def decode(graph: _Graph, codes: str) -> str:
        return graph.times(codes, decoder.T)

    return _Code(encoder.dtype, model.mean_, model.scale_, encode, decode, getattr(model, "fill_values_", None))


def _networks(model: Any) -> _Code:
    coder = model._coder()
    inputs, unit = coder.inputs, coder.inputs.unit

    def encode(graph: _Graph, rows: str) -> str:
        if inputs.directions is not None:
            rows = graph.times(rows, np.asarray(inputs.directions, dtype=np.float64).T)
        seen = graph.cast(graph.node("Div", rows, graph.constant(unit)), np.float32)
        codes = graph.cast(_apply(graph, seen, coder.encoder), np.float64)
        return graph.node("Mul", codes, graph.constant(unit))

    def decode(graph: _Graph, codes: str) -> str:
        seen = graph.cast(graph.node("Div", codes, graph.constant(unit)), np.float32)
        rows = graph.node("Mul", graph.cast(_apply(graph, seen, coder.decoder), np.float64), graph.constant(unit))
        return rows if inputs.directions is None else graph.times(rows, inputs.directions)

    return _Code(
        np.dtype(model.manifest_.dtype),
        inputs.mean,
        inputs.scale,
        encode,
        decode,
        getattr(model, "fill_values_", None),
        blank=model.missing == "model",
    )


def _apply(graph: _Graph, rows: str, network: Network) -> str:
    """The outputs of a network, in single precision as in NumPy."""
    found = rows
    for layer in network.layers:
        found = graph.node(
            "Add", graph.times(found, layer.weights.T, np.float32), graph.constant(layer.bias, np.float32)
        )
        found = _activated(graph, found, layer.activation)
    if network.shortcut is None:
        return found
    return graph.node("Add", found, graph.times(rows, network.shortcut.T, np.float32))


def _activated(graph: _Graph, value: str, activation: str) -> str:
    """The operators of an activation: of its input ("x"), of results of its steps so far, and of constants."""
    steps: list[str] = []

    def operand(given: str | int | float) -> str:
        if isinstance(given, float):
            return graph.constant(given, np.float32)
        return value if isinstance(given, str) else steps[given]

    for op, operands in ACTIVATIONS[activation].onnx:
        steps.append(graph.node(op, *(operand(one) for one in operands)))
    return steps[-1] if steps else value


_MODELS: dict[str, Callable[[Any], _Code]] = {"PCA": _pca, "LinearAutoencoder": _linear, "Autoencoder": _networks}
