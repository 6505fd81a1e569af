"""Replaces DALI's script of this name, which writes indices of TFRecord files."""

from penstock.compat import index_creator


class IndexCreator(index_creator.IndexCreator):
    """Writes the index of a TFRecord file."""

    reader = "tfrecord"


main = IndexCreator.main

if __name__ == "__main__":
    main()
