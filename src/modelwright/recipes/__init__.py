"""The catalogue: recipes that were shown to work, each about one pinned model, in a folder of its own beside this."""

from modelwright.recipes._entry import (
    CATALOG_WORD,
    ENTRY_FILE,
    EVIDENCE_FILE,
    RECIPE_FILE,
    CatalogEntry,
    EntryFile,
    KnownBad,
    find_entry,
    matching_entry,
    own_folder,
    read_entries,
)
from modelwright.recipes._index import (
    INDEX_FILE,
    CatalogIndex,
    IndexRow,
    index_rows,
    write_index,
)
from modelwright.recipes._lint import CatalogLint, CatalogProblem, lint_catalog

__all__ = [
    "CATALOG_WORD",
    "ENTRY_FILE",
    "EVIDENCE_FILE",
    "INDEX_FILE",
    "RECIPE_FILE",
    "CatalogEntry",
    "CatalogIndex",
    "CatalogLint",
    "CatalogProblem",
    "EntryFile",
    "IndexRow",
    "KnownBad",
    "find_entry",
    "index_rows",
    "lint_catalog",
    "matching_entry",
    "own_folder",
    "read_entries",
    "write_index",
]
