"""The digits classifier learns in JAX."""

from __future__ import annotations

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "training"))
from digits_data import load_split  # noqa: E402
from train_digits_jax import BATCH, initial_state, learn, learning_rate, logits, train  # noqa: E402


def test_an_epoch_teaches_something(tmp_path: Path) -> None:
    state = train(tmp_path, epochs=1, seed=0, progress=Progress(disable=True))
    assert int(state.step) == len(load_split().train_digits) // BATCH
    assert all(np.isfinite(values).all() for values in state.weights.values())
    fresh = initial_state(jax.random.key(0))
    assert not np.array_equal(state.weights["linear"], fresh.weights["linear"])


def test_a_batch_can_be_learnt_by_heart() -> None:
    rng = np.random.default_rng(0)
    images, labels = jnp.array(rng.normal(size=(10, 1, 32, 32)), jnp.float32), jnp.arange(10)
    state, key = initial_state(jax.random.key(0)), jax.random.key(1)
    step_on = jax.jit(learn, static_argnames="steps")
    losses = []
    for _ in range(30):
        key, drawn = jax.random.split(key)
        state, loss = step_on(state, images, labels, drawn, steps=30)
        losses.append(float(loss))
    assert losses[-1] < losses[0] / 2
    found, statistics = logits(state.weights, state.statistics, images)
    assert found.shape == (10, 10)
    assert statistics.keys() == state.statistics.keys()


def test_the_rate_rises_and_falls() -> None:
    rates = [float(learning_rate(jnp.array(step), 100)) for step in range(101)]
    assert rates[0] == pytest.approx(0, abs=1e-8)
    assert rates[100] == pytest.approx(0, abs=1e-8)
    assert rates.index(max(rates)) == 30
