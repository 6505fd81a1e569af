"""The operators, one file each, in folders by family. Each registers itself when it is imported."""
