"""The operators, one per file, in folders by family. An operator is registered when its file is imported."""
