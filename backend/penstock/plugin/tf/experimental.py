"""Data sets of pipelines that other data sets or Python sources feed."""

from penstock.plugin.tf.datasets import DALIDatasetWithInputs, Input

__all__ = ["DALIDatasetWithInputs", "Input"]
