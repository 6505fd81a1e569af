"""Python's interface to the compiled core (`backend/core`), most of whose functions are called without the GIL."""
