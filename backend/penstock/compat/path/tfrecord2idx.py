"""Stands in for DALI's script of this name: indices of TFRecord files."""

from penstock.compat import index_creator


class IndexCreator(index_creator.IndexCreator):
    """Writes the index of a file."""

    reader = "tfrecord"


main = IndexCreator.main

if __name__ == "__main__":
    main()
