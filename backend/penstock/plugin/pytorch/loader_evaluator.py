"""Measures how much of a training loop's time is spent waiting for the data loader."""

from __future__ import annotations

import itertools
import json
import time
from collections import deque
from collections.abc import Iterator

from torch.utils.data import DataLoader

__all__ = ["LoaderEvaluator"]


class LoaderEvaluator:
    """A data loader that measures the wait for each batch, or replays batches from memory.

    Train once with ``mode="log"`` and once with ``mode="replay"``: the difference in time is what a perfect loader would save.

    Args:
        dataloader: PyTorch's data loader, or an object with the same interface.
        mode: ``log``: batches are loaded; ``replay``: all batches are loaded up front, and the last ``num_cached_batches`` are repeated
            up to the loader's length.
        num_cached_batches: the number of batches to keep for ``replay``.
        metrics_file: the file that :meth:`save_metrics` writes.

    >>> loader = LoaderEvaluator(DataLoader(range(8), batch_size=4))
    >>> for batch in loader:
    ...     pass
    >>> loader.get_metrics()["total_batches"]
    2
    """

    def __init__(
        self,
        dataloader: DataLoader[object],
        mode: str = "log",
        num_cached_batches: int = 20,
        metrics_file: str | None = None,
    ) -> None:
        self.dataloader = dataloader
        self.mode = mode
        self.num_cached_batches = num_cached_batches
        self.metrics_file = metrics_file
        self.cached_batches: deque[object] = deque(maxlen=num_cached_batches)
        self.batch_times: list[float] = []
        self.start_time: float | None = None
        self.end_time: float | None = None
        if mode == "replay":
            self.cached_batches.extend(dataloader)

    @property
    def cache_ready(self) -> bool:
        """Whether there are batches to replay."""
        return bool(self.cached_batches)

    def __len__(self) -> int:
        return len(self.dataloader)

    def __iter__(self) -> Iterator[object]:
        if self.mode == "replay" and not self.cache_ready:
            raise RuntimeError("No cached batches available: the data loader gave none")
        replayed = itertools.islice(itertools.cycle(self.cached_batches), len(self))
        return self._timed(replayed if self.mode == "replay" else iter(self.dataloader))

    def _timed(self, batches: Iterator[object]) -> Iterator[object]:
        self.start_time, self.end_time, self.batch_times = time.time(), None, []
        while True:
            before = time.perf_counter()
            try:
                batch = next(batches)
            except StopIteration:
                break
            self.batch_times.append(time.perf_counter() - before)
            yield batch
        self.end_time = time.time()

    def get_metrics(self) -> dict[str, object]:
        """Return times in seconds, and counts, of the last iteration; an empty dictionary before the first one."""
        if not self.batch_times:
            return {}
        total = 0.0 if self.start_time is None or self.end_time is None else self.end_time - self.start_time
        return {
            "mode": self.mode,
            "total_batches": len(self.batch_times),
            "total_time": total,
            "avg_batch_time": sum(self.batch_times) / len(self.batch_times),
            "min_batch_time": min(self.batch_times),
            "max_batch_time": max(self.batch_times),
            "batch_times": list(self.batch_times),
            "cached_batches": len(self.cached_batches),
            "cache_ready": self.cache_ready,
        }

    def save_metrics(self, filename: str | None = None) -> None:
        """Write the metrics as JSON."""
        target = filename or self.metrics_file
        if target is None:
            print("No filename provided for saving metrics")
            return
        with open(target, "w") as file:
            json.dump(self.get_metrics(), file, indent=2)
        print(f"Metrics saved to: {target}")

    def print_summary(self) -> None:
        """Print the loader's sizes and the metrics."""
        lines = {
            "Mode": self.mode,
            "Dataset size": getattr(self.dataloader.dataset, "__len__", lambda: "unknown")(),
            "Number of batches": len(self),
            "Cache size": f"{len(self.cached_batches)}/{self.num_cached_batches}",
            "Cache ready": self.cache_ready,
        }
        metrics = self.get_metrics()
        if metrics:
            lines["Total batches processed"] = metrics["total_batches"]
            lines["Total time"] = f"{metrics['total_time']:.2f}s"
            for title, name in (("Average", "avg"), ("Min", "min"), ("Max", "max")):
                lines[f"{title} batch time"] = f"{metrics[f'{name}_batch_time']:.4f}s"
        print("Loader Evaluator Summary:")
        for title, value in lines.items():
            print(f"  {title}: {value}")
