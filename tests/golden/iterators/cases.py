"""Cases of iterators over readers of several sizes, numbers of shards and policies, with one or two pipelines."""

from __future__ import annotations

import itertools
from typing import Any

EPOCHS = 4


def cases() -> list[dict[str, Any]]:
    """Return the cases; ``pipelines`` lists, for each pipeline, the shard with which it begins."""
    found = []
    for samples, batch_size, policy, pad, stick in itertools.product(
        (1, 5, 7, 12, 13), (2, 4), ("FILL", "DROP", "PARTIAL"), (False, True), (False, True)
    ):
        for shards, pipelines in ((1, [0]), (2, [0, 1]), (3, [1])):
            if samples < shards * batch_size and policy == "DROP":
                continue
            found.append(
                dict(
                    samples=samples,
                    batch_size=batch_size,
                    policy=policy,
                    pad=pad,
                    stick=stick,
                    shards=shards,
                    pipelines=pipelines,
                    size=-1,
                )
            )
    for samples, batch_size, policy, pad in itertools.product((5, 8), (2, 3), ("FILL", "DROP"), (False, True)):
        found.append(
            dict(
                samples=samples,
                batch_size=batch_size,
                policy=policy,
                pad=pad,
                stick=False,
                shards=1,
                pipelines=[0],
                size=samples,
            )
        )
    return [case for case in found if case["samples"] >= case["shards"]]
