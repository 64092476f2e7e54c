"""A contribution climbs once more: in a process with an environment of its own, from a store that has nothing.

What it finds is evidence in a folder; who started it reads and judges that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright import _json
from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright._typed import typed
from modelwright.errors import ExecutionError, InputError, WrightError
from modelwright.home import HOME_VARIABLE, LOCKS_VARIABLE
from modelwright.store import Store
from modelwright.vocabulary import OnProgress, Progress

if TYPE_CHECKING:
    import modelwright.support as adding
    from modelwright.api import support as verbs
    from modelwright.support import Claim, Contribution
else:
    adding = lazy("modelwright.support")
    verbs = lazy("modelwright.api.support")

SAME, FAILED, JOB = "same", "failed.json", "job.json"
_KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "PROGRAMDATA", "TEMP", "TMP", "TMPDIR", LOCKS_VARIABLE)


@dataclass(frozen=True)
class AfreshJob:
    """`folder` is the contribution, `out` where evidence goes; seeds follow from the claim with `nonce` in it."""

    folder: str
    out: str
    nonce: str
    model: str | None = None
    data: str | None = None
    seeds: int = 5


def climb_afresh(job: AfreshJob, tell: OnProgress) -> None:
    """Raises what the climb raised; ends when it has ended."""
    out = Path(job.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / JOB).write_bytes(_json.canonical(job))
    code = "from modelwright.api._afresh import main; main()"
    with subprocess.Popen(
        [sys.executable, "-I", "-c", code, str(out / JOB)],
        cwd=out,
        env=clean_environment(out),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        try:
            for line in child.stdout:
                tell(Progress(line.rstrip("\n")))
        except BaseException:
            child.terminate()
            raise
        said = child.stderr.read()
    if child.returncode == 0:
        return
    if (out / FAILED).is_file():
        found = json.loads((out / FAILED).read_text(encoding="utf-8"))
        kind = InputError if found["exit_code"] == InputError.exit_code else ExecutionError
        raise kind(found["problem"], cause=found["cause"], fix=found["fix"])
    raise ExecutionError("the climb ended without an answer", cause=said.strip()[-300:], fix="run the review again")


def clean_environment(out: Path) -> dict[str, str]:
    """Nothing of the shell of whoever reviews, and nothing that says that this is a review."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT}
    home = out / "home"
    home.mkdir(exist_ok=True)
    return {**kept, "HOME": str(home), HOME_VARIABLE: str(home), "PYTHONUTF8": "1"}


def main() -> None:
    job = typed(AfreshJob, _json.loads(Path(sys.argv[1]).read_bytes()), strict=True)
    try:
        _climb(job, lambda progress: print(progress.message, flush=True))
    except WrightError as error:
        said = {"problem": error.problem, "cause": error.cause, "fix": error.fix, "exit_code": error.exit_code}
        Path(job.out, FAILED).write_bytes(_json.canonical(said))
        sys.exit(error.exit_code)


def _climb(job: AfreshJob, tell: OnProgress) -> None:
    folder, out = Path(job.folder), Path(job.out)
    here = adding.located(adding.read_claim(folder), folder, job.model, job.data)
    given = adding.contribution_in(here, folder)
    adding.require_data(here)
    _march(adding.redrawn(here, job.nonce, job.seeds), given, out, tell, gate=True)
    # Once more with the seeds of the claim: the same numbers come of it where nothing else is another.
    _march(here, given, out / SAME, tell, gate=False)


def _march(claim: Claim, given: Contribution, out: Path, tell: OnProgress, *, gate: bool) -> None:
    adding.frozen(claim, out, given)
    with Store() as store:
        answers = verbs.LevelVerbs(store, tell)
        march = adding.March(claim, given, adding.Notebook(claim, out, tell), store, answers, tell)
        adding.run_march(march, gate=gate, ladder=True)
