"""A build of several graphs, run as the one model it was made from. Runs in a child.

How the graphs feed each other is in the build's manifest: an encoder and a decoder that keeps a cache, a prompt graph
and a graph for the tokens after it, or two towers whose embeddings are compared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.evaluation._types import EvalSide
from modelwright.models import MANIFEST, MODEL, BuildFolder
from modelwright.stages.export import Link
from modelwright.targets import SessionFacts, SessionTensor, open_session, parse_target

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

Feeds = Mapping[str, "NDArray[Any]"]
Kind = Literal["encoder-decoder", "language-model", "towers"]

DECODER_IDS = "decoder_input_ids"
IDS = "input_ids"
_POSITION, _MASK, _ENCODER_MASK = "cache_position", "attention_mask", "encoder_attention_mask"
_TEXT, _IMAGE = "text_embeds", "image_embeds"
_TOWERS = frozenset({"text", "vision"})


@dataclass(frozen=True)
class Parts:
    """`first` runs once for each sample, `second` for each token; towers run side by side."""

    kind: Kind
    first: str
    second: str
    links: tuple[Link, ...]
    names: tuple[str, str]


def parts_of(build: BuildFolder) -> Parts:
    """How the graphs of a build work together."""
    folder, folders = build.path, {part.name: part.folder for part in build.parts}
    try:
        links = tuple(Link(**link) for link in build.links)
    except TypeError as error:
        raise InputError(
            f"{folder.name} cannot be read as a build", cause=f"{MANIFEST}: {error}", fix="Build it again."
        ) from error
    own = {link.component for link in links if link.component == link.to_component}
    others = [name for name in folders if name not in own]
    if len(folders) == 2 and len(own) == 1:
        (second,), (first,) = own, others
        repeated = {link.to_input for link in links if link.component == second}
        prompts = repeated <= {link.to_input for link in links if link.component == first}
        kind: Kind = "language-model" if prompts else "encoder-decoder"
    elif folders.keys() == _TOWERS:
        first, second, kind = "vision", "text", "towers"
    else:
        raise InputError(
            f"{folder.name} is a build of several models",
            cause=f"its parts are {', '.join(folders)}, and how they work together is not known here",
            fix=f"Evaluate one part with `outputs`, for example {folder.name}/{next(iter(folders), '')}/{MODEL}.",
        )
    places = {name: str(build.model(name)) for name in folders}
    return Parts(kind, places[first], places[second], links, (first, second))


class PartsModel(ABC):
    """Both graphs on one target. `longest` is the most tokens of a text it takes."""

    def __init__(self, parts: Parts, name: str, target: str) -> None:
        self.parts = parts
        self.first = open_session(parts.first, parse_target(target))
        try:
            self.second = open_session(parts.second, parse_target(target))
        except BaseException:
            self.first.close()
            raise
        self.bound = _bound(name, self.first.facts, self.second.facts)
        self.longest: int | None = None

    @property
    @abstractmethod
    def inputs(self) -> Sequence[SessionTensor]: ...

    @abstractmethod
    def run(self, feeds: Feeds) -> dict[str, NDArray[Any]]: ...

    def close(self) -> None:
        self.first.close()
        self.second.close()

    def _carried(self, component: str, outputs: Feeds) -> dict[str, NDArray[Any]]:
        """What outputs of a component become inputs of the second graph."""
        second = self.parts.names[1]
        links = [link for link in self.parts.links if link.component == component and link.to_component == second]
        return {link.to_input: outputs[link.output] for link in links}

    @property
    def _cache(self) -> dict[str, SessionTensor]:
        second = self.parts.names[1]
        own = {link.to_input for link in self.parts.links if link.component == link.to_component == second}
        return {spec.name: spec for spec in self.second.inputs if spec.name in own}

    def _cache_length(self) -> int:
        return next(int(spec.shape[2] or 0) for spec in self._cache.values())

    def _step(self, name: str, token: int, position: int, given: Feeds) -> tuple[NDArray[Any], Feeds]:
        """The scores of the next token, and the cache for it."""
        if position >= self._cache_length():
            raise InputError(
                f"a text of more than {self._cache_length()} tokens does not fit the build",
                cause="its cache was built with that length",
                fix="Shorten the texts (`settings` longest=N for written ones), or build with a longer cache_length.",
            )
        feeds = {**given, name: np.array([[token]]), _POSITION: np.array([position])}
        typed = {spec.name: np.asarray(feeds[spec.name], spec.dtype) for spec in self.second.inputs}
        outputs = self.second.run(typed)
        return outputs["logits"][0, -1], self._carried(self.parts.names[1], outputs)


class EncoderDecoder(PartsModel):
    """Takes the encoder's inputs and all decoder tokens so far, like the whole model.

    A call that adds tokens to the last one goes on from its cache.
    """

    def __init__(self, parts: Parts, name: str, target: str) -> None:
        super().__init__(parts, name, target)
        self._given: Feeds = {}
        self._fixed: Feeds = {}
        self._past: Feeds = {}
        self._ids: list[int] = []
        self._logits: list[NDArray[Any]] = []

    @property
    def inputs(self) -> Sequence[SessionTensor]:
        return (*self.first.inputs, SessionTensor(DECODER_IDS, "int64", (1, "tokens")))

    def run(self, feeds: Feeds) -> dict[str, NDArray[Any]]:
        ids = [int(token) for token in feeds[DECODER_IDS][0]]
        given = {name: array for name, array in feeds.items() if name != DECODER_IDS}
        if ids[: len(self._ids)] != self._ids or not same_arrays(given, self._given):
            self._begin(given)
        for token in ids[len(self._ids) :]:
            given = {**self._fixed, **self._past}
            logits, self._past = self._step(DECODER_IDS, token, len(self._ids), given)
            self._logits.append(logits)
            self._ids.append(token)
        return {"logits": np.stack(self._logits)[None]}

    def _begin(self, given: Feeds) -> None:
        self._given, self._ids, self._logits = dict(given), [], []
        fixed = self._carried(self.parts.names[0], self.first.run(given))
        if _MASK in given:
            fixed[_ENCODER_MASK] = given[_MASK]
        self._fixed = fixed
        self._past = {name: np.zeros(_sizes(spec), spec.dtype) for name, spec in self._cache.items()}


class LanguageModel(PartsModel):
    """Takes a text, like the whole model: the first half goes through the prompt graph, the rest token by token.

    So both graphs are judged, each at the work it is there for.
    """

    def __init__(self, parts: Parts, name: str, target: str) -> None:
        super().__init__(parts, name, target)
        self.longest = self._cache_length()
        self._prompt = int(self.first.inputs[0].shape[1] or 0)

    @property
    def inputs(self) -> Sequence[SessionTensor]:
        return (SessionTensor(IDS, "int64", (1, "tokens")),)

    def run(self, feeds: Feeds) -> dict[str, NDArray[Any]]:
        ids = feeds[IDS][0]
        head = min(self._prompt, (len(ids) + 1) // 2)
        prompt = np.zeros((1, self._prompt), self.first.inputs[0].dtype)
        prompt[0, :head] = ids[:head]
        outputs = self.first.run({IDS: prompt})
        logits = list(outputs["logits"][0, :head])
        past: Feeds = self._carried(self.parts.names[0], outputs)
        for position in range(head, len(ids)):
            scores, past = self._step(IDS, int(ids[position]), position, past)
            logits.append(scores)
        return {"logits": np.stack(logits)[None]}


class Towers(PartsModel):
    """Takes an image and the text of every class. The embeddings have length one, as the whole model gives them."""

    def __init__(self, parts: Parts, name: str, target: str) -> None:
        super().__init__(parts, name, target)
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


_KINDS: Mapping[Kind, type[PartsModel]] = {
    "encoder-decoder": EncoderDecoder,
    "language-model": LanguageModel,
    "towers": Towers,
}


def open_parts(parts: Parts, name: str, target: str) -> PartsModel:
    return _KINDS[parts.kind](parts, name, target)


def same_arrays(one: Feeds, other: Feeds) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(array, other[name]) for name, array in one.items())


def _of_length_one(embeds: NDArray[Any]) -> NDArray[Any]:
    norms = np.linalg.norm(embeds, axis=-1, keepdims=True)
    return np.asarray(embeds / np.maximum(norms, np.finfo(np.float32).tiny), embeds.dtype)


def _sizes(spec: SessionTensor) -> tuple[int, ...]:
    return tuple(size if isinstance(size, int) else 1 for size in spec.shape)


def _bound(name: str, *facts: SessionFacts) -> EvalSide:
    nodes: dict[str, int] = {}
    for one in facts:
        for ep_name, count in one.nodes_per_ep.items():
            nodes[ep_name] = nodes.get(ep_name, 0) + count
    return EvalSide(
        model=name,
        engine=facts[0].engine,
        ep_version=facts[0].ep_version,
        target=facts[0].target,
        providers=facts[0].providers,
        nodes_per_ep=tuple(sorted(nodes.items())),
        simulated=any(one.simulated for one in facts),
    )
