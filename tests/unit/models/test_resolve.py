"""What the user points at, without torch, transformers or a network."""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from modelwright.errors import InputError
from modelwright.models import BuildSource, HfSource, OnnxSource, resolve

BERT = {"model_type": "bert", "architectures": ["BertForSequenceClassification"]}


def folder(tmp_path, config=BERT, weights=b"weights", name="model"):
    path = tmp_path / name
    path.mkdir()
    (path / "config.json").write_text(json.dumps(config))
    if weights is not None:
        (path / "model.safetensors").write_bytes(weights)
    return path


def test_a_model_folder(tmp_path):
    source = resolve(str(folder(tmp_path)))
    assert isinstance(source, HfSource)
    assert (source.task, source.model_type, source.architecture) == (
        "text-classification",
        "bert",
        "BertForSequenceClassification",
    )


def test_an_onnx_file_and_a_build_folder(tmp_path):
    assert isinstance(resolve(str(tmp_path / "model.onnx")), OnnxSource)
    (tmp_path / "wright.json").write_text("{}")
    assert isinstance(resolve(str(tmp_path)), BuildSource)


def test_identity_follows_the_content_not_the_place(tmp_path):
    one, two = folder(tmp_path, name="one"), folder(tmp_path, name="two")
    other = folder(tmp_path, weights=b"Weights", name="other")
    identity = resolve(str(one)).identity()
    assert identity == resolve(str(two)).identity()
    assert identity != resolve(str(other)).identity()
    (two / "README.md").write_text("words")
    assert identity == resolve(str(two)).identity()
    (two / "config.json").write_text(json.dumps({**BERT, "num_labels": 3}))
    assert identity != resolve(str(two)).identity()


def test_identity_sees_weights_that_changed_in_place(tmp_path):
    path = folder(tmp_path)
    before = resolve(str(path)).identity()
    (path / "model.safetensors").write_bytes(b"WEIGHTS")
    assert resolve(str(path)).identity() != before


def test_identity_of_an_onnx_file_covers_its_external_weights(tmp_path):
    weights = numpy_helper.from_array(np.zeros(500, np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [500])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [500])],
        [weights],
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    before = resolve(str(path)).identity()
    renamed = path.rename(tmp_path / "other.onnx")
    assert resolve(str(renamed)).identity() == before
    (tmp_path / "w.bin").write_bytes(np.ones(500, np.float32).tobytes())
    assert resolve(str(renamed)).identity() != before


def test_a_folder_without_weights_is_refused_unless_random_ones_are_wanted(tmp_path):
    path = folder(tmp_path, weights=None)
    with pytest.raises(InputError, match="no weights") as error:
        resolve(str(path))
    assert "`random_weights`" in error.value.fix
    source = resolve(str(path), random_weights=True)
    assert isinstance(source, HfSource)
    assert source.random_weights
    assert source.identity().startswith("sha256:")


def test_a_folder_with_only_onnx_files_points_at_them(tmp_path):
    path = folder(tmp_path, weights=None)
    (path / "encoder_model.onnx").touch()
    with pytest.raises(InputError) as error:
        resolve(str(path))
    assert "encoder_model.onnx" in error.value.fix


def test_a_missing_shard_is_named(tmp_path):
    path = folder(tmp_path, weights=None)
    (path / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "model-00001-of-00001.safetensors"}})
    )
    with pytest.raises(InputError, match="model-00001-of-00001"):
        resolve(str(path))


def test_a_task_the_head_cannot_do_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot do token-classification") as error:
        resolve(str(folder(tmp_path)), task="ner")
    assert "text-classification" in error.value.fix


def test_features_can_be_taken_from_any_head(tmp_path):
    source = resolve(str(folder(tmp_path)), task="sentence-similarity")
    assert isinstance(source, HfSource)
    assert source.task == "feature-extraction"


def test_a_model_without_a_known_head_needs_a_task(tmp_path):
    path = folder(tmp_path, {"model_type": "bert"})
    with pytest.raises(InputError, match="task of model is unknown"):
        resolve(str(path))
    assert isinstance(resolve(str(path), task="fill-mask"), HfSource)


def test_remote_code_runs_only_when_allowed(tmp_path):
    path = folder(tmp_path, {**BERT, "auto_map": {"AutoModel": "modeling.Mine"}})
    with pytest.raises(InputError, match="own Python code"):
        resolve(str(path))
    (path / "modeling.py").write_text("x = 1")
    source = resolve(str(path), trust_remote_code=True)
    assert isinstance(source, HfSource)
    assert source.trust_remote_code
    before = source.identity()
    (path / "modeling.py").write_text("x = 22")
    assert resolve(str(path), trust_remote_code=True).identity() != before


@pytest.mark.parametrize("option", [{"revision": "main"}, {"trust_remote_code": True}, {"random_weights": True}])
def test_hub_options_are_refused_for_onnx_files(tmp_path, option):
    with pytest.raises(InputError, match="cannot be used"):
        resolve(str(tmp_path / "model.onnx"), **option)


@pytest.mark.parametrize("content", ["{", "[]", "{}"])
def test_a_broken_configuration_is_said_so(tmp_path, content):
    path = folder(tmp_path)
    (path / "config.json").write_text(content)
    with pytest.raises(InputError):
        resolve(str(path))


def test_an_empty_folder_and_a_path_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="not a model folder"):
        resolve(str(tmp_path))
    with pytest.raises(InputError, match="does not exist"):
        resolve(str(tmp_path / "a" / "b" / "c"))


def ask_hub(tmp_path, **environment):
    """Resolve a Hub id in a child, because huggingface_hub reads its settings when it is imported."""
    code = (
        "from modelwright.models import resolve\n"
        "from modelwright.errors import WrightError\n"
        "try: resolve('someone/some-model')\n"
        "except WrightError as e: print(e.exit_code, e.problem, '|', e.cause, '|', e.fix)"
    )
    env = {**os.environ, "HF_HOME": str(tmp_path), **environment}
    # Without an answer it must give up by itself: the limit is there to end a test that hangs.
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


@pytest.mark.parametrize(
    ("environment", "word"),
    [({"HF_HUB_OFFLINE": "1"}, "offline mode is on"), ({"HF_ENDPOINT": "http://127.0.0.1:9"}, "did not answer")],
)
def test_an_unreachable_id_says_so(tmp_path, environment, word):
    pytest.importorskip("huggingface_hub")
    said = ask_hub(tmp_path, **environment)
    assert said.startswith("5 ")
    assert word in said


def test_nothing_heavy_is_imported_to_resolve_a_folder(tmp_path):
    code = (
        "import sys; from modelwright.models import resolve; resolve(sys.argv[1]).identity();"
        "print([m for m in ('torch', 'transformers', 'numpy', 'onnx', 'huggingface_hub') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder(tmp_path))], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "generation_config.json"])
@pytest.mark.parametrize("target", ["../secret", "{tmp}/secret", "/dev/zero", "../blobs/" + "2" * 64])
def test_a_link_that_leaves_the_model_folder_is_refused(tmp_path, name, target):
    path = folder(tmp_path)
    (tmp_path / "secret").write_text("{}")
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / ("2" * 64)).write_text("{}")
    (path / name).unlink(missing_ok=True)
    (path / name).symlink_to(target.format(tmp=tmp_path))
    with pytest.raises(InputError, match=f"{name} is refused") as error:
        resolve(str(path))
    assert "leads outside" in error.value.cause


def test_a_configuration_elsewhere_is_refused(tmp_path):
    path = folder(tmp_path)
    (path / "config.json").rename(tmp_path / "config.json")
    (path / "config.json").symlink_to("../config.json")
    with pytest.raises(InputError, match=r"config\.json is refused"):
        resolve(str(path))


@pytest.mark.parametrize(
    "shard", ["../w.safetensors", "{tmp}/w.safetensors", "sub/../../w.safetensors", "link/w", "\0"]
)
def test_shards_outside_the_model_folder_are_refused(tmp_path, shard):
    path = folder(tmp_path, weights=None)
    (tmp_path / "w.safetensors").write_bytes(b"weights")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "w").write_bytes(b"weights")
    (path / "link").symlink_to(tmp_path / "other")
    (path / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": shard.format(tmp=tmp_path)}}, ensure_ascii=True)
    )
    with pytest.raises(InputError, match="is refused"):
        resolve(str(path))


@pytest.mark.parametrize("weight_map", [[], ["a"], {"a": 1}, {"a": ["b"]}, "a", 3])
def test_an_index_that_names_no_files_is_said_so(tmp_path, weight_map):
    path = folder(tmp_path, weights=None)
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(InputError):
        resolve(str(path))


def test_a_pipe_in_the_model_folder_is_refused_instead_of_waited_for(tmp_path):
    path = folder(tmp_path)
    os.mkfifo(path / "tokenizer.json")
    with pytest.raises(InputError, match=r"tokenizer\.json is refused") as error:
        resolve(str(path))
    assert "not a regular file" in error.value.cause


def test_a_model_folder_that_is_a_link_is_as_good_as_the_folder(tmp_path):
    path = folder(tmp_path)
    (tmp_path / "link").symlink_to(path)
    assert resolve(str(tmp_path / "link")).identity() == resolve(str(path)).identity()


def test_identity_covers_the_weights_that_the_configuration_names(tmp_path):
    path = folder(tmp_path, {**BERT, "transformers_weights": "other.safetensors"})
    with pytest.raises(InputError, match="holds no weights"):
        resolve(str(path))
    (path / "other.safetensors").write_bytes(b"weights")
    before = resolve(str(path)).identity()
    (path / "other.safetensors").write_bytes(b"other weights")
    assert resolve(str(path)).identity() != before


def test_an_adapter_is_refused_because_its_weights_are_elsewhere(tmp_path):
    path = folder(tmp_path)
    (path / "adapter_config.json").write_text('{"base_model_name_or_path": "../other"}')
    with pytest.raises(InputError, match="is an adapter"):
        resolve(str(path))
