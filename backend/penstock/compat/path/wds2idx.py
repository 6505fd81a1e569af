"""Stands in for DALI's script of this name: indices of archives of WebDataset."""

from penstock.compat import index_creator


class IndexCreator(index_creator.IndexCreator):
    """Writes the index of a file."""

    reader = "webdataset"


main = IndexCreator.main

if __name__ == "__main__":
    main()
