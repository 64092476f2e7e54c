"""`modelwright.site`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from modelwright import overview, recipes
from modelwright._dataclass import dataclass
from modelwright._json import dumps
from modelwright._lazy import lazy
from modelwright._output import SEAL, is_sealed, write_output
from modelwright.api._opened import opened
from modelwright.api.read import read
from modelwright.errors import UsageError, WrightError
from modelwright.overview import Overview
from modelwright.store import Store
from modelwright.vocabulary import OnProgress, Progress, Result, silent

if TYPE_CHECKING:
    from modelwright.report import html as pages
    from modelwright.report.html import site as site_pages
else:
    pages = lazy("modelwright.report.html")
    site_pages = lazy("modelwright.report.html.site")

_DATA, _RECORDS = "site.json", "records"


@dataclass(frozen=True)
class SiteBuilt(Result):
    """`index` is the page to open; `bytes` what all files of the site weigh."""

    kind: ClassVar[str] = "site build"

    folder: Path
    index: Path
    pages: int
    bytes: int
    models: int
    targets: int
    cells: int
    records: int

    def content(self) -> dict[str, Any]:
        return dict(super().content())


def site(
    output: str | Path,
    *,
    catalogue: str | Path | None = None,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> SiteBuilt:
    """Write everything that is known as static pages into a folder: models by targets, a page per model, support,
    findings, history, and the page of every record that has one; its data as site.json beside them.

    An earlier site there is replaced; a folder with anything else in it is refused. Nothing is measured, and no host is
    asked.
    """
    folder, tell = Path(output).expanduser(), on_progress or silent
    _check_folder(folder)
    place = recipes.own_folder() if catalogue is None else Path(catalogue).expanduser()
    with opened(store) as kept:
        known = overview.gather(kept, lambda name: read(name, store=kept), place, on_progress)
        files = {**site_pages.site_pages(known), _DATA: _data(known), **_record_pages(known, kept, tell)}
    written = _write(folder, files)
    return SiteBuilt(
        folder=folder,
        index=folder / site_pages.INDEX,
        pages=sum(name.endswith(".html") for name in files),
        bytes=written,
        models=len(known.models),
        targets=len(known.targets),
        cells=len(known.cells),
        records=len(known.records),
    )


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", cause="a site is a folder", fix="give another name")
    data = folder / _DATA
    if folder.is_dir() and any(folder.iterdir()) and not (data.is_file() and is_sealed(data.read_bytes())):
        raise UsageError(
            f"{folder} stays as it is",
            cause="it holds files, and no site that was written here and is unchanged",
            fix="give a new or an empty folder, or the one of an earlier site",
        )


def _data(known: Overview) -> str:
    return dumps({**known.to_dict(), "seal": SEAL}) + "\n"


def _record_pages(known: Overview, store: Store, tell: OnProgress) -> dict[str, str]:
    """The page that the command of a record would write, with the way back."""
    found: dict[str, str] = {}
    for record in known.records:
        place = site_pages.record_place(record)
        if place is None:
            continue
        try:
            found[place] = site_pages.record_page(read(record.line.id, store=store).payload)
        except WrightError as error:
            tell(Progress(f"{record.line.id[:12]} has no page: {error}"))
    return found


def _write(folder: Path, files: dict[str, str]) -> int:
    """Each file whole or not at all; pages of ours that are no longer among them go."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_output(path, content)
    for old in [*folder.glob("models/*.html"), *folder.glob(f"{_RECORDS}/*.html")]:
        if old.relative_to(folder).as_posix() not in files and is_sealed(old.read_bytes()):
            old.unlink()
    return sum((folder / name).stat().st_size for name in files)
