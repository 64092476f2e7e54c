"""Several graphs, run as the one model they were made from. Runs in a child.

How the graphs feed each other is in their links: an encoder and a decoder that keeps a cache, a prompt graph and a
graph for the tokens after it, or two towers whose embeddings are compared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.stages.export import Link
from modelwright.targets import BoundSession, SessionTensor

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

Feeds = Mapping[str, "NDArray[Any]"]
Kind = Literal["encoder-decoder", "language-model", "towers"]
Opener = Callable[[str], BoundSession]

DECODER_IDS = "decoder_input_ids"
IDS = "input_ids"
_POSITION, _MASK, _ENCODER_MASK = "cache_position", "attention_mask", "encoder_attention_mask"
_TEXT, _IMAGE = "text_embeds", "image_embeds"
_TOWERS = frozenset({"text", "vision"})


@dataclass(frozen=True)
class Arrangement:
    """How graphs work together. `first` runs once for each sample, `second` for each token; towers run side by side."""

    kind: Kind
    first: str
    second: str

    @property
    def writes(self) -> bool:
        return self.kind != "towers"


@dataclass(frozen=True)
class Parts:
    """The two graphs as files, and what says how they feed each other."""

    kind: Kind
    first: str
    second: str
    links: tuple[Link, ...]
    names: tuple[str, str]


def arranged(names: Sequence[str], links: Sequence[Link]) -> Arrangement | None:
    """None where it is not known here how graphs of these names work together."""
    own = {link.component for link in links if link.component == link.to_component}
    others = [name for name in names if name not in own]
    if len(names) == 2 and len(own) == 1:
        (second,), (first,) = own, others
        repeated = {link.to_input for link in links if link.component == second}
        prompts = repeated <= {link.to_input for link in links if link.component == first}
        return Arrangement("language-model" if prompts else "encoder-decoder", first, second)
    return Arrangement("towers", "vision", "text") if set(names) == _TOWERS else None


class PartsModel(ABC):
    """Both graphs, opened. `longest` is the most tokens of a text it takes."""

    def __init__(self, parts: Parts, opener: Opener) -> None:
        self.parts = parts
        self.first = opener(parts.first)
        try:
            self.second = opener(parts.second)
        except BaseException:
            self.first.close()
            raise
        self.longest: int | None = None

    @property
    @abstractmethod
    def inputs(self) -> Sequence[SessionTensor]: ...

    @abstractmethod
    def run(self, feeds: Feeds) -> dict[str, NDArray[Any]]: ...

    def close(self) -> None:
        self.first.close()
        self.second.close()


class Decoder(PartsModel):
    """What writes: `begin` reads what a text is written about, `step` takes one token more.

    `fed` is what the second graph was given last, and `written` how many tokens are in its cache.
    """

    # The second graph's input for the token.
    _token: ClassVar[str]

    def __init__(self, parts: Parts, opener: Opener) -> None:
        super().__init__(parts, opener)
        self.fed: Feeds = {}
        self.written = 0
        self._fixed: Feeds = {}
        self._past: Feeds = {}

    @property
    @abstractmethod
    def given(self) -> Sequence[SessionTensor]:
        """What `begin` takes."""

    @abstractmethod
    def begin(self, given: Feeds) -> NDArray[Any] | None:
        """The scores of the first token, where the first graph gives them."""

    def step(self, token: int) -> NDArray[Any]:
        """The scores of the token after this one."""
        if self.written >= self.cache_length:
            raise InputError(
                f"a text of more than {self.cache_length} tokens does not fit the build",
                cause="its cache was built with that length",
                fix="Shorten the texts (`settings` longest=N for written ones), or build with a longer cache_length.",
            )
        given = {**self._fixed, **self._past, self._token: np.array([[token]]), _POSITION: np.array([self.written])}
        self.fed = {spec.name: np.asarray(given[spec.name], spec.dtype) for spec in self.second.inputs}
        outputs = self.second.run(self.fed)
        self._past = self._carried(self.parts.names[1], outputs)
        self.written += 1
        return np.asarray(outputs["logits"][0, -1])

    @property
    def cache_length(self) -> int:
        return next(int(spec.shape[2] or 0) for spec in self._cache.values())

    @property
    def _cache(self) -> dict[str, SessionTensor]:
        second = self.parts.names[1]
        own = {link.to_input for link in self.parts.links if link.component == link.to_component == second}
        return {spec.name: spec for spec in self.second.inputs if spec.name in own}

    def _carried(self, component: str, outputs: Feeds) -> dict[str, NDArray[Any]]:
        """What outputs of a component become inputs of the second graph."""
        second = self.parts.names[1]
        links = [link for link in self.parts.links if link.component == component and link.to_component == second]
        return {link.to_input: outputs[link.output] for link in links}


class EncoderDecoder(Decoder):
    """Takes the encoder's inputs and all decoder tokens so far, like the whole model.

    A call that adds tokens to the last one goes on from its cache.
    """

    _token = DECODER_IDS

    def __init__(self, parts: Parts, opener: Opener) -> None:
        super().__init__(parts, opener)
        self._about: Feeds = {}
        self._ids: list[int] = []
        self._logits: list[NDArray[Any]] = []

    @property
    def given(self) -> Sequence[SessionTensor]:
        return self.first.inputs

    @property
    def inputs(self) -> Sequence[SessionTensor]:
        return (*self.given, SessionTensor(DECODER_IDS, "int64", (1, "tokens")))

    def begin(self, given: Feeds) -> None:
        self._about, self._ids, self._logits, self.written = dict(given), [], [], 0
        self._fixed = self._carried(self.parts.names[0], self.first.run(given))
        if _MASK in given:
            self._fixed = {**self._fixed, _ENCODER_MASK: given[_MASK]}
        self._past = {name: np.zeros(_sizes(spec), spec.dtype) for name, spec in self._cache.items()}

    def run(self, feeds: Feeds) -> dict[str, NDArray[Any]]:
        ids = [int(token) for token in feeds[DECODER_IDS][0]]
        given = {name: array for name, array in feeds.items() if name != DECODER_IDS}
        if ids[: len(self._ids)] != self._ids or not same_arrays(given, self._about):
            self.begin(given)
        for token in ids[len(self._ids) :]:
            self._logits.append(self.step(token))
            self._ids.append(token)
        return {"logits": np.stack(self._logits)[None]}


class LanguageModel(Decoder):
    """Takes a text, like the whole model: the first half goes through the prompt graph, the rest token by token.

    So both graphs are judged, each at the work it is there for.
    """

    _token = IDS

    def __init__(self, parts: Parts, opener: Opener) -> None:
        super().__init__(parts, opener)
        self.longest = self.cache_length
        self._prompt = int(self.first.inputs[0].shape[1] or 0)

    @property
    def given(self) -> Sequence[SessionTensor]:
        return (SessionTensor(IDS, "int64", (1, "tokens")),)

    @property
    def inputs(self) -> Sequence[SessionTensor]:
        return self.given

    def prompt(self, ids: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """A text as the first graph takes it: cut, or padded on the right."""
        found = np.zeros((1, self._prompt), self.first.inputs[0].dtype)
        head = ids[: self._prompt]
        found[0, : len(head)] = head
        return {IDS: found}

    def begin(self, given: Feeds) -> NDArray[Any]:
        """With room in the cache for as much again as is read."""
        ids = given[IDS][0][: min(self._prompt, (self.cache_length + 1) // 2)]
        return np.asarray(self._read(ids)[-1])

    def run(self, feeds: Feeds) -> dict[str, NDArray[Any]]:
        ids = feeds[IDS][0]
        head = min(self._prompt, (len(ids) + 1) // 2)
        logits = [*self._read(ids[:head]), *(self.step(int(token)) for token in ids[head:])]
        return {"logits": np.stack(logits)[None]}

    def _read(self, ids: NDArray[Any]) -> NDArray[Any]:
        outputs = self.first.run(self.prompt(ids))
        self._past, self.written = self._carried(self.parts.names[0], outputs), len(ids)
        return np.asarray(outputs["logits"][0, : len(ids)])


class Towers(PartsModel):
    """Takes an image and the text of every class. The embeddings have length one, as the whole model gives them."""

    def __init__(self, parts: Parts, opener: Opener) -> None:
        super().__init__(parts, opener)
        self._texts: Feeds = {}
        self._embeds: NDArray[Any] = np.zeros((0, 0))

    @property
    def inputs(self) -> Sequence[SessionTensor]:
        classes = [SessionTensor(spec.name, spec.dtype, ("classes", *spec.shape[1:])) for spec in self.second.inputs]
        return (*self.first.inputs, *classes)

    def run(self, feeds: Feeds) -> dict[str, NDArray[Any]]:
        texts = {spec.name: feeds[spec.name] for spec in self.second.inputs}
        if not same_arrays(texts, self._texts):
            lines = range(len(next(iter(texts.values()))))
            embeds = [self.second.run({name: array[[line]] for name, array in texts.items()})[_TEXT] for line in lines]
            self._texts, self._embeds = dict(texts), _of_length_one(np.concatenate(embeds))
        image = self.first.run({spec.name: feeds[spec.name] for spec in self.first.inputs})[_IMAGE]
        return {_IMAGE: _of_length_one(image), _TEXT: self._embeds}


_WRITERS: Mapping[Kind, type[Decoder]] = {"encoder-decoder": EncoderDecoder, "language-model": LanguageModel}


def open_parts(parts: Parts, opener: Opener) -> PartsModel:
    return Towers(parts, opener) if parts.kind == "towers" else open_decoder(parts, opener)


def open_decoder(parts: Parts, opener: Opener) -> Decoder:
    return _WRITERS[parts.kind](parts, opener)


def same_arrays(one: Feeds, other: Feeds) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(array, other[name]) for name, array in one.items())


def _of_length_one(embeds: NDArray[Any]) -> NDArray[Any]:
    norms = np.linalg.norm(embeds, axis=-1, keepdims=True)
    return np.asarray(embeds / np.maximum(norms, np.finfo(np.float32).tiny), embeds.dtype)


def _sizes(spec: SessionTensor) -> tuple[int, ...]:
    return tuple(size if isinstance(size, int) else 1 for size in spec.shape)
