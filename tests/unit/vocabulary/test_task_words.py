"""One table of task words: a build and an evaluation understand the same ones, and mean the same by them."""

from pathlib import Path

import pytest

from modelwright.errors import UsageError
from modelwright.evaluation.tasks import scored_task
from modelwright.models import OnnxSource, resolve
from modelwright.models._task import _HEADS
from modelwright.stages.export._classes import _BASE_TASKS, _TABLES
from modelwright.vocabulary import TASK_WORDS, TASKS, read_task

HEADS = {task.head for task in TASKS}


def test_no_word_stands_for_two_tasks():
    words = [word for task in TASKS for word in (task.name, *task.aliases)]
    assert len(words) == len(set(words))


def test_every_head_that_models_have_is_in_the_table_and_can_be_exported():
    assert {task for _, tasks in _HEADS for task in tasks.values()} == HEADS
    assert {*_TABLES, *_BASE_TASKS} == HEADS


def test_the_head_of_a_task_is_a_task_itself():
    assert all(read_task(task.head).head == task.head for task in TASKS)


@pytest.mark.parametrize("word", TASK_WORDS)
def test_a_word_means_the_same_to_build_and_to_eval(word, tmp_path):
    model = Path(tmp_path, "model.onnx")
    model.touch()
    source = resolve(str(model), task=word)
    assert isinstance(source, OnnxSource)
    task = read_task(word)
    assert source.task == task.head
    if task.scorer is None:
        with pytest.raises(UsageError, match=f"nothing scores {task.name}"):
            scored_task(word)
    else:
        assert read_task(scored_task(word)) is task


@pytest.mark.parametrize(
    ("word", "name", "head"),
    [
        ("Summarization", "summarization", "text2text-generation"),
        ("text2text_generation-with-past", "text2text-generation", "text2text-generation"),
        ("semantic-segmentation", "image-segmentation", "image-segmentation"),
        ("sentence_similarity", "sentence-similarity", "feature-extraction"),
    ],
)
def test_any_spelling_of_a_task_is_understood(word, name, head):
    assert (read_task(word).name, read_task(word).head) == (name, head)


def test_what_nothing_scores_points_to_what_does():
    with pytest.raises(UsageError) as caught:
        scored_task("seq2seq-lm")
    assert caught.value.fix == "use translation or summarization"


def test_a_misspelt_task_gets_a_hint():
    with pytest.raises(UsageError) as caught:
        read_task("text-clasification")
    assert "text-classification" in caught.value.fix
