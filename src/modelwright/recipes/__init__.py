"""The catalogue: recipes that were shown to work, each about one pinned model, in a folder of its own beside this."""

from typing import TYPE_CHECKING

from modelwright._lazy import lazy_names
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

if TYPE_CHECKING:
    from modelwright.recipes._index import (
        INDEX_FILE,
        CatalogIndex,
        IndexRow,
        index_rows,
        write_index,
    )
    from modelwright.recipes._lint import CatalogLint, CatalogProblem, lint_catalog
else:
    # A build looks a recipe up; what was shown about it is what the catalogue's own commands ask for.
    __getattr__ = lazy_names(
        __name__,
        INDEX_FILE="_index",
        CatalogIndex="_index",
        IndexRow="_index",
        index_rows="_index",
        write_index="_index",
        CatalogLint="_lint",
        CatalogProblem="_lint",
        lint_catalog="_lint",
    )

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
