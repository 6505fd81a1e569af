"""Data sets of pipelines that are fed by other data sets, or by Python."""

from penstock.plugin.tf.datasets import DALIDatasetWithInputs, Input

__all__ = ["DALIDatasetWithInputs", "Input"]
