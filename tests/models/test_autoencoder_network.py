"""The arithmetic of the networks: by hand, against torch's own derivatives and optimiser, and row by row."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.special import erf

from foldwise.errors import ParameterError
from foldwise.models.autoencoder.activations import ACTIVATIONS
from foldwise.models.autoencoder.fit import reconstruction_errors
from foldwise.models.autoencoder.inputs import Gaps, Part
from foldwise.models.autoencoder.network import Layer, Network
from foldwise.models.autoencoder.plan import Plan
from foldwise.models.autoencoder.torch_network import TorchNetwork
from foldwise.models.autoencoder.weights import Layout, Start

torch = pytest.importorskip("torch")
f32 = np.float32


def plan(**options: Any) -> Plan:
    usual = {"encoder": (5, 7, 6, 2), "decoder": (2, 4, 5), "activation": "silu", "linear": True, "noise": 0.0}
    usual |= {"dropout": 0.0, "batch_size": 8, "learning_rate": 1e-3, "weight_decay": 0.0, "epochs": 2, "patience": 2}
    return Plan(**{**usual, "seed": 3, **options})


def random_start(k: int = 2, d: int = 5) -> Start:
    directions = np.linalg.qr(np.random.default_rng(1).standard_normal((d, k)))[0].T
    return Start(np.ascontiguousarray(directions, dtype=f32), np.array([3.0, 0.5], dtype=f32))


def test_a_network_by_hand() -> None:
    hidden = Layer(np.array([[1, -1], [2, 0]], dtype=f32), np.array([0, -3], dtype=f32), "relu")
    last = Layer(np.array([[1, 10]], dtype=f32), np.array([0.5], dtype=f32), "linear")
    rows = np.array([[3, 1], [1, 2]], dtype=f32)
    # hidden of row 0: relu(3 - 1) = 2, relu(6 - 3) = 3; of row 1: relu(1 - 2) = 0, relu(2 - 3) = 0
    np.testing.assert_array_equal(Network((hidden, last))(rows), [[2 + 30 + 0.5], [0.5]])
    shortcut = np.array([[100, 1]], dtype=f32)
    np.testing.assert_array_equal(Network((hidden, last), shortcut)(rows), [[32.5 + 301], [0.5 + 102]])


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_agree(name: str) -> None:
    """NumPy, torch and ONNX's operators give the same, and the slope is that of torch's own derivative."""
    one = ACTIVATIONS[name]
    x = np.concatenate([np.linspace(-30, 30, 1001), [-1e4, 1e4, 0.0]]).astype(f32)
    given = torch.tensor(x, requires_grad=True)
    wanted = one.torch(given)
    found = one.numpy(x)
    assert found.dtype == f32
    np.testing.assert_allclose(found, wanted.detach().numpy(), rtol=2e-6, atol=1e-6)  # 1 + erf cancels
    outer = torch.linspace(-2, 3, len(x))
    slope = one.torch_slope(outer, given.detach(), wanted.detach())
    expected = torch.autograd.grad(wanted, given, outer)[0]
    np.testing.assert_allclose(slope.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(onnx_value(one.onnx, x), found, rtol=2e-6, atol=3e-6)


def onnx_value(steps: Any, x: np.ndarray) -> Any:
    """What ONNX's operators are defined to give."""
    wide = x.astype(np.float64)
    functions: dict[str, Any] = {
        "Relu": lambda a: np.maximum(a, 0),
        "Elu": lambda a: np.where(a > 0, a, np.expm1(np.minimum(a, 0))),
        "Sigmoid": lambda a: 0.5 * (1 + np.tanh(a / 2)),
        "Erf": erf,
        "Tanh": np.tanh,
        "Softplus": lambda a: np.logaddexp(a, 0),
        "Mul": np.multiply,
        "Add": np.add,
    }
    found: list[Any] = []
    for operator, operands in steps:
        found.append(
            functions[operator](*[wide if o == "x" else found[o] if isinstance(o, int) else o for o in operands])
        )
    return found[-1] if found else wide


@pytest.mark.parametrize("widths", [(33, 40, 17), (784, 128, 300), (5, 1, 3)])
def test_a_row_has_the_same_bits_alone_and_among_others(widths: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    layers = tuple(
        Layer(rng.standard_normal((o, i), dtype=f32), rng.standard_normal(o, dtype=f32), "silu")
        for i, o in pairwise(widths)
    )
    network = Network(layers, rng.standard_normal((widths[-1], widths[0]), dtype=f32))
    rows = rng.standard_normal((700, widths[0]), dtype=f32)
    whole = network(rows)
    for some in (slice(0, 1), slice(5, 6), slice(100, 300), slice(0, 700, 7), slice(None, None, -1)):
        np.testing.assert_array_equal(network(rows[some]), whole[some])
    assert network(rows[:0]).shape == (0, widths[-1])


def test_what_does_not_fit_is_refused() -> None:
    two = Layer(np.zeros((2, 3), f32), np.zeros(2, f32), "relu")
    with pytest.raises(ParameterError, match="do not fit"):
        Network((two, two))
    with pytest.raises(ParameterError, match="do not fit"):
        Network((two,), np.zeros((3, 2), f32))
    with pytest.raises(ParameterError, match="not known"):
        Layer(np.zeros((2, 3), f32), np.zeros(2, f32), "gauss")
    with pytest.raises(ParameterError, match="bias"):
        Layer(np.zeros((2, 3), f32), np.zeros(3, f32), "relu")


# ---------------------------------------------------------------- training, against torch's own


def by_torch(layout: Layout, start: Start, vector: Any, rows: Any, weights: Any, missing: Any) -> Any:
    """The summed error by torch's own layers."""
    views = [vector[place.start : place.stop].view(place.shape) for place in layout.places]
    act = ACTIVATIONS[layout.plan.activation].torch
    linear = torch.nn.functional.linear

    def apply(views: list[Any], x: Any, shortcut: Any) -> Any:
        found = x
        for w, b in zip(views[:-2:2], views[1:-2:2], strict=True):
            found = act(linear(found, w, b))
        found = linear(found, views[-2], views[-1])
        return found if shortcut is None else found + linear(x, shortcut)

    into = out = None
    if start.directions is not None:
        into = torch.tensor(start.directions / start.sizes[:, None])
        out = torch.tensor(start.directions.T * start.sizes)
    code = apply(views[: layout.n_encoder], rows, into)
    away = apply(views[layout.n_encoder :], code, out) - rows
    away = away if missing is None else away * ~missing
    squares = (away * away).sum(dim=1)
    return squares.sum() if weights is None else (squares * weights).sum()


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("kind", ["plain", "weights", "gaps"])
def test_steps_are_those_of_torch(activation: str, linear: bool, kind: str) -> None:
    """Three steps by our own slopes and updates are those of torch's autograd and AdamW."""
    layout = Layout(plan(activation=activation, linear=linear, weight_decay=0.01))
    start = random_start() if linear else Start(None, np.ones(2, f32))
    rng = np.random.default_rng(5)
    rows = torch.tensor(rng.standard_normal((8, 5), dtype=f32))
    weights = torch.tensor(rng.random(8, dtype=f32)) if kind == "weights" else None
    missing = torch.tensor(rng.random((8, 5)) < 0.2) if kind == "gaps" else None
    network = TorchNetwork(layout, start, n_threads=1)
    first = rng.standard_normal(layout.size).astype(f32) * f32(0.3)
    vectors = (torch.tensor(first), torch.zeros(layout.size), torch.zeros(layout.size))
    theirs = torch.tensor(first, requires_grad=True)
    twin = [theirs[p.start : p.stop].detach().clone().requires_grad_() for p in layout.places]
    groups = [{"params": [t for t, p in zip(twin, layout.places, strict=True) if p.decays is decays], "weight_decay": d}
              for decays, d in ((True, 0.01), (False, 0.0))]  # fmt: skip
    adam = torch.optim.AdamW(groups, lr=3e-3)
    for number in (1, 2, 3):
        error = network.step(vectors, rows, weights, 40.0, 3e-3, number, (0, 0), missing)
        packed = torch.cat([torch.cat([t, torch.zeros((-len(t)) % 16)]) for t in twin])
        loss = by_torch(layout, start, packed, rows, weights, missing)
        assert error == pytest.approx(float(loss.detach()), rel=1e-5)
        adam.zero_grad()
        (loss / 40.0).backward()
        adam.step()
    for place, one in zip(layout.places, twin, strict=True):
        np.testing.assert_allclose(
            vectors[0][place.start : place.stop].numpy(), one.detach().numpy(), rtol=2e-4, atol=2e-5
        )


@pytest.mark.parametrize("options", [{}, {"noise": 0.3}, {"dropout": 0.4}])
def test_threads_and_shards_do_not_change_bits(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foldwise.models.autoencoder.torch_network._SMALL", 0)
    monkeypatch.setattr("foldwise.models.autoencoder.torch_network._CHUNK", 10)
    found = []
    for n_threads in (1, 2, 5):
        layout = Layout(plan(**options))
        network = TorchNetwork(layout, random_start(), n_threads=n_threads)
        rows = torch.tensor(np.random.default_rng(2).standard_normal((50, 5), dtype=f32))
        vectors = (torch.tensor(layout.first_weights()), torch.zeros(layout.size), torch.zeros(layout.size))
        errors = [network.step(vectors, rows, None, 250.0, 1e-2, number, (7, number)) for number in (1, 2, 3, 4)]
        found.append((errors, vectors[0].numpy().tobytes()))
    assert found[0] == found[1] == found[2]
    assert found[0][0][3] != found[0][0][0]


def test_noise_and_dropout_leave_out_what_they_say() -> None:
    """Dropout of hidden units keeps their mean; noise widens the error of a network that copies by its variance."""
    layout = Layout(plan(dropout=0.25))
    network = TorchNetwork(layout, random_start(), n_threads=1)
    kept = network._kept((300, 100), np.random.default_rng(0)).numpy()
    assert set(np.unique(kept)) == {f32(0), f32(1 / 0.75)}
    assert kept.mean() == pytest.approx(1, abs=0.02)
    square = plan(encoder=(2, 2), decoder=(2, 2), noise=0.5)
    copying = TorchNetwork(Layout(square), Start(np.eye(2, dtype=f32), np.ones(2, f32)), n_threads=1)
    away, _, _ = copying._forward(
        copying._views(torch.tensor(copying.layout.first_weights())),
        torch.zeros(20_000, 2),
        None,
        np.random.default_rng(1),
    )
    assert float(away.std()) == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("reduced", [False, True])
def test_errors_of_rows_with_gaps(reduced: bool) -> None:
    """Of all cells that a row has, whether the inputs are its cells or scores on some directions: by torch and by NumPy."""
    layout, start = Layout(plan()), random_start()
    vector = np.random.default_rng(8).standard_normal(layout.size).astype(f32) * f32(0.3)
    rng = np.random.default_rng(9)
    basis = np.linalg.qr(rng.standard_normal((9, 5)))[0].T if reduced else np.eye(5)
    x = rng.standard_normal((40, 9 if reduced else 5))
    missing = rng.random(x.shape) < 0.1
    which = np.flatnonzero(missing.any(axis=1))
    assert 5 < len(which) < 35
    inputs = (x @ basis.T).astype(f32)
    rest = np.where(missing, np.nan, x - inputs @ basis)[which].astype(f32)
    gaps = Gaps(which, rest, basis) if reduced else Gaps(which, np.where(missing, np.nan, 0.0)[which].astype(f32))
    encoder, decoder = layout.networks(vector, start)
    away = decoder(encoder(inputs)) @ basis - x
    expected = np.where(missing, 0.0, away)[which]
    for found in (
        TorchNetwork(layout, start, n_threads=2).errors(vector, Part(inputs, None, gaps=gaps)),
        reconstruction_errors(encoder, decoder, Part(inputs, None, gaps=gaps)),
    ):
        np.testing.assert_allclose(found[which], (expected**2).sum(axis=1), rtol=1e-4, atol=1e-6)
        whole = np.setdiff1d(np.arange(40), which)
        inside = ((decoder(encoder(inputs)) - inputs) ** 2).sum(axis=1)
        np.testing.assert_allclose(found[whole], inside[whole], rtol=1e-4, atol=1e-6)


def test_plain_arrays_do_what_torch_does() -> None:
    """Codes in units of the inputs: what training divides by is put back into the weights."""
    layout, start = Layout(plan()), random_start()
    vector = np.random.default_rng(8).standard_normal(layout.size).astype(f32) * f32(0.3)
    rows = np.random.default_rng(9).standard_normal((2100, 5), dtype=f32)
    encoder, decoder = layout.networks(vector, start)
    away = decoder(encoder(rows)) - rows
    errors = TorchNetwork(layout, start, n_threads=2).errors(vector, Part(rows, None))
    np.testing.assert_allclose((away.astype(np.float64) ** 2).sum(axis=1), errors, rtol=1e-4, atol=1e-6)
    first = layout.networks(layout.first_weights(), start)
    assert start.directions is not None
    np.testing.assert_allclose(first[0](rows), rows @ start.directions.T, rtol=1e-5, atol=1e-6)
