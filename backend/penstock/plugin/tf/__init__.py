"""TensorFlow: pipelines as data sets of ``tf.data``.

>>> batches = DALIDataset(pipe, output_dtypes=(tf.float32, tf.int32), batch_size=32, device_id=None)  # doctest: +SKIP
>>> model.fit(batches, steps_per_epoch=100)  # doctest: +SKIP
"""

from penstock.plugin.tf import experimental
from penstock.plugin.tf.datasets import DALIDataset, dataset_options, serialize_pipeline
from penstock.plugin.tf.iterators import DALIIterator, DALIIteratorWrapper, DALIRawIterator
from penstock.plugin.tf.versions import (
    dataset_compatible_tensorflow,
    dataset_distributed_compatible_tensorflow,
    dataset_inputs_compatible_tensorflow,
)

__all__ = [
    "DALIDataset",
    "DALIIterator",
    "DALIIteratorWrapper",
    "DALIRawIterator",
    "dataset_compatible_tensorflow",
    "dataset_distributed_compatible_tensorflow",
    "dataset_inputs_compatible_tensorflow",
    "dataset_options",
    "experimental",
    "serialize_pipeline",
]
