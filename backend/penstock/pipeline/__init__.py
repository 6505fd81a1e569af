"""The class of pipelines, and the decorator that makes a pipeline from a function."""

from penstock.graph.nodes import DataNode
from penstock.pipeline import experimental
from penstock.pipeline.definition import do_not_convert, pipeline_def
from penstock.pipeline.pipeline import OperatorConcurrency, Pipeline, StreamPolicy

__all__ = [
    "DataNode",
    "OperatorConcurrency",
    "Pipeline",
    "StreamPolicy",
    "do_not_convert",
    "experimental",
    "pipeline_def",
]
