"""`modelwright.diagnose`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from modelwright import answers
from modelwright.answers import Diagnosis
from modelwright.api._kept import kept, verb
from modelwright.errors import UsageError
from modelwright.store import Store
from modelwright.vocabulary import OnProgress

if TYPE_CHECKING:
    from modelwright.api._model import Model


@verb
def diagnose(
    model: Model | None = None,
    *,
    log: str | Path | None = None,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> Diagnosis:
    """What is wrong, in words.

    `log` is a file with the error texts of onnxruntime or an EP: each is looked up in a catalogue of known ones.
    """
    if log is None:
        raise UsageError("there is nothing to diagnose", cause="neither a model nor a `log`", fix="give one of them")
    return kept(Diagnosis(None, None, None, (), (), (), log=answers.read_log(Path(log))))
