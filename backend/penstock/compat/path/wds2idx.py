"""Replaces DALI's script of this name, which writes indices of WebDataset archives."""

from penstock.compat import index_creator


class IndexCreator(index_creator.IndexCreator):
    """Writes the index of a WebDataset archive."""

    reader = "webdataset"


main = IndexCreator.main

if __name__ == "__main__":
    main()
