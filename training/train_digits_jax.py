"""Trains the digits classifier in JAX, with the same data, pipeline and network as `train_digits.py`.

    python training/train_digits_jax.py

Prints the held-out accuracy for each kind of image; writes nothing. Needs ``pip install penstock-triton[demo,jax]``; takes less than a minute
of processor time.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from digits_data import load_split, write_digits
from digits_evaluation import accuracies, table
from digits_pipeline import READER, digits_pipeline
from jax import Array
from rich.console import Console
from rich.progress import Progress

from penstock.plugin.jax import DALIGenericIterator, LastBatchPolicy

BATCH = 64
_CHANNELS = (1, 24, 48, 96)
_CLASSES, _SMOOTHING, _DROPPED = 10, 0.05, 0.3
_DECAY, _HIGHEST_RATE, _WARM_UP = 0.01, 4e-3, 0.3
_KEPT, _TINY = 0.9, 1e-5
# All weights of the network, and the statistics of its normalizations.
Weights = dict[str, Array]


class State(NamedTuple):
    """The state that training changes.

    Attributes:
        weights: the network's weights.
        statistics: running means and variances.
        first, second: Adam's moments.
        step: the number of steps so far.
    """

    weights: Weights
    statistics: Weights
    first: Weights
    second: Weights
    step: Array


def initial_state(key: Array) -> State:
    """Return random weights, as PyTorch draws them."""
    weights, statistics = {}, {}
    for number, (given, made) in enumerate(pairwise(_CHANNELS)):
        key, drawn = jax.random.split(key)
        bound = (given * 9) ** -0.5
        weights[f"convolution {number}"] = jax.random.uniform(drawn, (3, 3, given, made), minval=-bound, maxval=bound)
        weights[f"scale {number}"], weights[f"offset {number}"] = jnp.ones(made), jnp.zeros(made)
        statistics[f"mean {number}"], statistics[f"variance {number}"] = jnp.zeros(made), jnp.ones(made)
    features = _CHANNELS[-1] * 4 * 4
    weights["linear"] = jax.random.uniform(key, (features, _CLASSES), minval=-(features**-0.5), maxval=features**-0.5)
    weights["bias"] = jnp.zeros(_CLASSES)
    nothing = jax.tree.map(jnp.zeros_like, weights)
    return State(weights, statistics, nothing, jax.tree.map(jnp.copy, nothing), jnp.zeros((), jnp.int32))


def logits(weights: Weights, statistics: Weights, images: Array, key: Array | None = None) -> tuple[Array, Weights]:
    """Return logits from (n, 1, 32, 32) to (n, 10), and the new statistics; a key for dropout means training."""
    values, updated = jnp.moveaxis(images, 1, 3), dict(statistics)
    for number in range(len(_CHANNELS) - 1):
        values = jax.lax.conv_general_dilated(
            values, weights[f"convolution {number}"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        mean, variance = statistics[f"mean {number}"], statistics[f"variance {number}"]
        if key is not None:
            mean_now, variance_now = values.mean((0, 1, 2)), values.var((0, 1, 2))
            updated[f"mean {number}"] = _KEPT * mean + (1 - _KEPT) * mean_now
            updated[f"variance {number}"] = _KEPT * variance + (1 - _KEPT) * variance_now
            mean, variance = mean_now, variance_now
        values = (values - mean) * jax.lax.rsqrt(variance + _TINY)
        values = jax.nn.relu(values * weights[f"scale {number}"] + weights[f"offset {number}"])
        values = jax.lax.reduce_window(values, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    values = values.reshape(len(values), -1)
    if key is not None:
        values = values * jax.random.bernoulli(key, 1 - _DROPPED, values.shape) / (1 - _DROPPED)
    return values @ weights["linear"] + weights["bias"], updated


def learning_rate(step: Array, steps: int) -> Array:
    """Return the learning rate: it rises to its highest value, and falls to nothing, as cosines."""
    rise = _WARM_UP * steps
    phase = jnp.where(step < rise, step / rise - 1, (step - rise) / (steps - rise))
    return _HIGHEST_RATE * (1 + jnp.cos(jnp.pi * phase)) / 2


def learn(state: State, images: Array, labels: Array, key: Array, steps: int) -> tuple[State, Array]:
    """Do one step of AdamW on a batch; return the new state, and the loss."""
    wanted = jax.nn.one_hot(labels, _CLASSES) * (1 - _SMOOTHING) + _SMOOTHING / _CLASSES

    def loss_of(weights: Weights) -> tuple[Array, Weights]:
        found, updated = logits(weights, state.statistics, images, key)
        return -(wanted * jax.nn.log_softmax(found)).sum(1).mean(), updated

    (loss, statistics), gradients = jax.value_and_grad(loss_of, has_aux=True)(state.weights)
    step = state.step + 1
    rate = learning_rate(state.step, steps)
    first = jax.tree.map(lambda moment, gradient: 0.9 * moment + 0.1 * gradient, state.first, gradients)
    second = jax.tree.map(lambda moment, gradient: 0.999 * moment + 0.001 * gradient**2, state.second, gradients)

    def moved(weight: Array, a: Array, b: Array) -> Array:
        direction = a / (1 - 0.9**step) / (jnp.sqrt(b / (1 - 0.999**step)) + 1e-8)
        return weight * (1 - rate * _DECAY) - rate * direction

    return State(jax.tree.map(moved, state.weights, first, second), statistics, first, second, step), loss


def train(folder: Path, epochs: int, seed: int, progress: Progress) -> State:
    """Train on fresh looks of the training digits in each epoch; ``folder`` is for their files."""
    split = load_split()
    files = write_digits(folder, split.train_digits)
    # Batches of one size: another size would be compiled again.
    batches: Any = DALIGenericIterator(
        digits_pipeline(files, split.train_labels.tolist(), BATCH, seed=seed),
        ["image", "label"],
        reader_name=READER,
        last_batch_policy=LastBatchPolicy.DROP,
        auto_reset=True,
    )
    key, drawn = jax.random.split(jax.random.key(seed))
    state, steps = initial_state(drawn), epochs * len(batches)
    step_on = jax.jit(learn, static_argnames="steps", donate_argnums=0)
    shown = progress.add_task("training", total=steps * BATCH)
    for epoch in range(epochs):
        losses = []
        for batch in batches:
            key, drawn = jax.random.split(key)
            state, loss = step_on(state, batch["image"], batch["label"][:, 0], drawn, steps=steps)
            losses.append(loss)
            progress.update(shown, advance=BATCH)
        progress.update(shown, description=f"epoch {epoch + 1} of {epochs}, loss {np.mean(losses):.3f}")
    return state


def main() -> None:
    """Train, and print the held-out accuracy for each look."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    console = Console()
    with tempfile.TemporaryDirectory() as folder, Progress(console=console) as progress:
        state = train(Path(folder), arguments.epochs, arguments.seed, progress)
    network = jax.jit(lambda images: logits(state.weights, state.statistics, images)[0].argmax(1))
    console.print(table(accuracies(lambda images: np.asarray(network(images)), BATCH)))


if __name__ == "__main__":
    main()
