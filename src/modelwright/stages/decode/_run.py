"""Greedy texts: the float model writes them, and an artifact is asked for the next token at every place of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._json import dumps
from modelwright._lazy import lazy
from modelwright.data import DataSource, DrawnRow, Samples, keep_arrays
from modelwright.errors import InputError, WrightError
from modelwright.stages.decode._parts import Decoder, Feeds, LanguageModel, Parts, open_decoder
from modelwright.stages.decode._types import (
    FEWEST_TEXTS,
    AgreeOutcome,
    AgreeParams,
    DecodeOutcome,
    DecodeParams,
    WrittenText,
)
from modelwright.stages.decode._writing import Writing
from modelwright.stages.validate import is_quantized
from modelwright.targets import (
    CALM,
    BoundSession,
    open_as_meant,
    open_session,
    parse_target,
    products_saturate,
)
from modelwright.worker import progress, task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

REPORT = "agreement.json"
# Two scores that are closer than this share of their spread are a tie: any rounding may turn it.
_TIE = 0.05
_MOST_BYTES = 1 << 30


@task
def run_decode(first: str, second: str, workdir: str, params: DecodeParams, data: DataSource) -> DecodeOutcome:
    """Write a text about each sample with the float graphs, and keep what the second one was fed on the way."""
    texts, kept = [], []
    with closing(open_decoder(params.parts(first, second), _open)) as model:
        for number, given in enumerate(_given(data, model, params.texts)):
            progress(f"text {number + 1} of at most {params.texts}", number / params.texts)
            spread = _Spread(params.steps)
            texts.append(_write(model, given, params, spread))
            kept.append(spread.kept())
        prompts = _prompts(model, data, params, Path(workdir))
    return DecodeOutcome(data.rows().kind, tuple(texts), prompts, _keep(kept, Path(workdir)))


@task
def run_agree(
    first: str, second: str, workdir: str, params: AgreeParams, data: DataSource, texts: tuple[WrittenText, ...]
) -> AgreeOutcome:
    """Ask the artifact for the token at every place of the float model's texts."""
    outcome = _agreement(params, data, texts, params.decoding.parts(first, second))
    Path(workdir, REPORT).write_text(dumps(outcome), encoding="utf-8")
    return outcome


def _agreement(params: AgreeParams, data: DataSource, texts: tuple[WrittenText, ...], parts: Parts) -> AgreeOutcome:
    exact = params.exact_products and products_saturate()
    agreed: list[list[bool]] = []
    try:
        with closing(open_decoder(parts, open_as_meant if exact else _open)) as model:
            for number, (given, text) in enumerate(zip(_given(data, model, len(texts)), texts, strict=True)):
                progress(f"text {number + 1} of {len(texts)}", number / len(texts))
                agreed.append(_same(model, given, text, params.decoding.writing))
    except WrightError as error:
        return AgreeOutcome(False, str(error), len(agreed), 0, 0, None, params.bound)
    return _judged(agreed, texts, params)


def _open(path: str) -> BoundSession:
    return open_session(path, parse_target("cpu"), CALM)


def _given(data: DataSource, model: Decoder, count: int) -> Iterator[Feeds]:
    """What the texts are about, sample by sample."""
    return iter(Samples(data, tuple(model.given), (), count, longest=model.longest))


def _prompts(model: Decoder, data: DataSource, params: DecodeParams, folder: Path) -> tuple[DrawnRow, ...]:
    """Texts as a prompt graph takes them."""
    if not isinstance(model, LanguageModel):
        return ()
    given = _given(data, model, params.prompts)
    return tuple(keep_arrays(model.prompt(feeds["input_ids"][0]), folder) for feeds in given)


@dataclass
class _Spread:
    """At most `count` of what is offered, evenly spread over all of it, without holding all of it."""

    count: int
    _held: list[Feeds] = field(default_factory=list)
    _seen: int = 0
    _stride: int = 1

    def offer(self, feeds: Feeds) -> None:
        if self._seen % self._stride == 0:
            self._held.append(feeds)
        self._seen += 1
        if len(self._held) > 2 * self.count:
            self._held, self._stride = self._held[::2], 2 * self._stride

    def kept(self) -> list[Feeds]:
        places = np.linspace(0, len(self._held) - 1, min(self.count, len(self._held)))
        return [self._held[round(float(place))] for place in places]


def _write(model: Decoder, given: Feeds, params: DecodeParams, spread: _Spread) -> WrittenText:
    writing = params.writing
    scores = _begin(model, given, writing, spread)
    tokens: list[int] = []
    ties: list[tuple[int, ...]] = []
    while True:
        allowed = _finite(writing.allowed(scores))
        tokens.append(int(allowed.argmax()))
        ties.append(_ties(allowed))
        full = model.written >= model.cache_length
        if tokens[-1] in writing.end or len(tokens) >= params.tokens or full:
            return WrittenText(tuple(tokens), tuple(ties))
        scores = model.step(tokens[-1])
        spread.offer(model.fed)


def _begin(model: Decoder, given: Feeds, writing: Writing, spread: _Spread | None = None) -> NDArray[Any]:
    """The scores of the first token that is the model's own."""
    scores = model.begin(given)
    for token in writing.start if scores is None else ():
        scores = model.step(token)
        if spread is not None:
            spread.offer(model.fed)
    if scores is None:
        raise InputError(
            "with which token a text starts is unknown",
            cause="neither config.json nor generation_config.json of the model says decoder_start_token_id",
            fix="Write it into generation_config.json beside the model.",
        )
    return scores


def _finite(scores: NDArray[Any]) -> NDArray[Any]:
    if np.isnan(scores).any() or np.isposinf(scores).any():
        raise InputError(
            "the model answers NaN or infinity where it should write a token",
            cause="its scores of the next token are not finite",
            fix="Look at the samples: does the model itself answer them in PyTorch?",
        )
    return scores


def _ties(scores: NDArray[Any]) -> tuple[int, ...]:
    """Tokens that are as good as the best one, itself left out."""
    best = int(scores.argmax())
    near = np.flatnonzero(scores >= scores[best] - _TIE * float(scores[np.isfinite(scores)].std()))
    return tuple(int(token) for token in near if token != best)


def _same(model: Decoder, given: Feeds, text: WrittenText, writing: Writing) -> list[bool]:
    scores, found = _begin(model, given, writing), []
    for place, (token, ties) in enumerate(zip(text.tokens, text.ties, strict=True)):
        found.append(int(_finite(writing.allowed(scores)).argmax()) in (token, *ties))
        if place + 1 < len(text.tokens):
            scores = model.step(token)
    return found


def _judged(agreed: Sequence[Sequence[bool]], texts: Sequence[WrittenText], params: AgreeParams) -> AgreeOutcome:
    """A few texts, or texts that say nothing, cannot show that a quantized model is good."""
    bound, total, same = params.bound, sum(map(len, agreed)), sum(all(places) for places in agreed)
    share = sum(map(sum, agreed)) / total
    words = len({token for text in texts for token in text.tokens})
    detail = (
        f"{same} of {len(texts)} texts are those of the float model, {share:.1%} of {total} tokens, needs {bound:.0%}"
    )
    passed: bool | None = share >= bound
    if passed and is_quantized(params.precision) and min(len(texts), words) < FEWEST_TEXTS:
        passed = None
        detail += f"; {len(texts)} texts of {words} different tokens cannot tell, {FEWEST_TEXTS} at least would"
    return AgreeOutcome(passed, detail, len(texts), same, total, share, bound)


def _keep(kept: Sequence[Sequence[Feeds]], folder: Path) -> tuple[DrawnRow, ...]:
    """Samples of different texts come first, so that whoever takes a few sees several; within what may be stored."""
    rounds = range(max(map(len, kept), default=0))
    order = [(text, (turn + number) % len(text)) for turn in rounds for number, text in enumerate(kept) if text]
    found: dict[tuple[int, int], DrawnRow] = {}
    for text, place in order:
        held = sum(path.stat().st_size for path in folder.iterdir())
        if (id(text), place) not in found and (not found or held < _MOST_BYTES):
            found[id(text), place] = keep_arrays(text[place], folder)
    return tuple(found.values())
