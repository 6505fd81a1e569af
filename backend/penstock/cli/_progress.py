"""Progress bars on stderr, for slow commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter


@contextmanager
def measuring(description: str) -> Iterator[Callable[[int, float], None]]:
    """Show a progress bar with samples per second; yield a function to call after each batch with its number of samples and the
    fraction done.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=1.0, rate="compiling")
        samples, began = 0, perf_counter()

        def ran(count: int, done: float) -> None:
            nonlocal samples
            samples += count
            progress.update(task, completed=done, rate=f"{samples / (perf_counter() - began):,.0f} samples/s")

        yield ran
