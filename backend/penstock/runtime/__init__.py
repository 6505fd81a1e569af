"""Runs pipelines: plans, the executor, worker threads, external sources."""

from penstock.runtime.batch_queue import BatchQueue
from penstock.runtime.batches import Result, Watch
from penstock.runtime.executor import Executor
from penstock.runtime.plan import Plan, Step, Transfer
from penstock.runtime.workers import WorkerPool

__all__ = ["BatchQueue", "Executor", "Plan", "Result", "Step", "Transfer", "Watch", "WorkerPool"]
