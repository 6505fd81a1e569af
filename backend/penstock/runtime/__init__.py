"""How a pipeline runs: plan, executor, worker threads, sources."""

from penstock.runtime.batches import Result, Watch
from penstock.runtime.executor import Executor
from penstock.runtime.plan import Plan, Step, Transfer
from penstock.runtime.prefetching import PrefetchingExecutor
from penstock.runtime.workers import WorkerPool

__all__ = ["Executor", "Plan", "PrefetchingExecutor", "Result", "Step", "Transfer", "Watch", "WorkerPool"]
