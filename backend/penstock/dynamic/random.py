"""Random operators, and the generators from which they draw.

>>> from penstock.dynamic import random
>>> rng = random.RNG(seed=1)
>>> random.uniform(range=[0, 1], shape=[2], rng=rng)
Tensor(
    [0.6548561 0.235709 ],
    dtype=f32,
    device="cpu",
    shape=(2,))
"""

from __future__ import annotations

from penstock.dynamic._rngs import RNG, get_default_rng, set_seed

__all__ = ["RNG", "get_default_rng", "set_seed"]
