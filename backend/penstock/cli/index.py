"""``penstock index``: writes the index of a data set's records."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli._paths import ExistingPath

# The name of the index writer for each file extension.
_FORMATS = {".tar": "webdataset", ".rec": "mxnet", ".tfrecord": "tfrecord", ".tfrecords": "tfrecord"}


@click.command()
@click.argument("file", type=ExistingPath(dir_okay=False))
@click.argument("index", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.option(
    "--format",
    "kind",
    type=click.Choice(sorted(set(_FORMATS.values()))),
    help="The format of FILE; by default inferred from its name.",
)
def command(file: Path, index: Path | None, kind: str | None) -> None:
    """Write the index that a data set's reader takes as `index_path`.

    FILE is a tar archive (`fn.readers.webdataset`), a TFRecord file (`fn.readers.tfrecord`), or a RecordIO file
    (`fn.readers.mxnet`). INDEX defaults to FILE with the extension .idx.

    \b
    Examples:
      penstock index train-0001.tar
      penstock index train.rec train.idx
      penstock index shard-00001-of-01024 shard.idx --format tfrecord
    """
    from penstock.operators.readers.indexing import write_index

    kind = kind or _FORMATS.get(file.suffix)
    if kind is None:
        raise click.UsageError(f"The name of '{file}' does not tell its format: pass --format")
    index = index or file.with_suffix(".idx")
    try:
        count = write_index(kind, str(file), str(index))
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{index}: {count} lines")
