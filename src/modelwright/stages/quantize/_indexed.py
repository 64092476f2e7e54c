"""onnxruntime's quantizer over an index: it looks for every tensor and every reader by going through all of them.

That is quadratic in the nodes of a model. Here names lead to what carries them; what is written is the same.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import onnx
from onnxruntime.quantization import base_quantizer, onnx_model, quant_utils

from modelwright.graph import names_read
from modelwright.stages.quantize._order import drop_named

_PACKAGE = "onnxruntime.quantization"


class IndexedModel(onnx_model.ONNXModel):  # type: ignore[misc]
    """Knows tensors by name, and nodes by the names they read or write.

    The index of a list is made anew when its length is not the one it had when this last changed it. Nodes stay listed
    under names that they had before: whoever uses the list looks at them. Weights that are to go wait for one sweep.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        super().__init__(model)
        self._tensors: dict[str, onnx.TensorProto] = {}
        self._gone: set[str] = set()
        self._counted = -1
        self._readers: dict[str, list[onnx.NodeProto]] = {}
        self._writers: dict[str, list[onnx.NodeProto]] = {}
        self._nodes_counted = -1
        self._read_by: dict[str, list[onnx.NodeProto]] | None = None

    # tensors

    def initializer(self) -> TensorList:
        return TensorList(self)

    def get_initializer(self, name: str) -> onnx.TensorProto | None:
        stored = self.model.graph.initializer
        if len(stored) != self._counted:
            self._tensors = {tensor.name: tensor for tensor in reversed(stored) if tensor.name not in self._gone}
            self._counted = len(stored)
        return self._tensors.get(name)

    def add_initializer(self, tensor: onnx.TensorProto) -> None:
        if self.get_initializer(tensor.name) is None:
            self.initializer_extend([tensor])

    def initializer_extend(self, inits: list[onnx.TensorProto]) -> None:
        for tensor in inits:
            if tensor.name in self._gone:
                self._sweep()
            self.get_initializer(tensor.name)
            self.model.graph.initializer.append(self._check_init(tensor))
            self._tensors.setdefault(tensor.name, self.model.graph.initializer[-1])
            self._counted += 1

    def remove_initializer(self, tensor: onnx.TensorProto) -> None:
        if self.get_initializer(tensor.name) is not None:
            del self._tensors[tensor.name]
            self._gone.add(tensor.name)

    def clean_initializers(self) -> Any:
        graph = self.model.graph
        read = {name for node in graph.node for name in names_read(node)}.union(value.name for value in graph.output)
        self._gone.update(tensor.name for tensor in graph.initializer if tensor.name not in read)
        self._sweep()
        self._nodes_counted = -1
        return super().clean_initializers()

    def _sweep(self) -> None:
        graph = self.model.graph
        for listed in (graph.initializer, graph.input):
            drop_named(listed, self._gone)
        self._gone, self._counted = set(), -1

    # nodes

    def add_node(self, node: onnx.NodeProto) -> None:
        self._index_nodes()
        super().add_node(node)
        self._list(self.model.graph.node[-1])
        self._nodes_counted += 1
        self._read_by = None

    def replace_node_input(self, node: onnx.NodeProto, old_input_name: str, new_input_name: str) -> None:
        super().replace_node_input(node, old_input_name, new_input_name)
        self._index_nodes()
        self._readers.setdefault(new_input_name, []).append(node)
        self._read_by = None

    def replace_input_of_all_nodes(self, old_input_name: str, new_input_name: str) -> None:
        self._index_nodes()
        for node in tuple(self._readers.get(old_input_name, ())):
            self.replace_node_input(node, old_input_name, new_input_name)

    def replace_input_of_nodes(self, old_input_name: str, new_input_name: str, node_names_set: set[str]) -> None:
        self._index_nodes()
        for node in tuple(self._readers.get(old_input_name, ())):
            if node.name in node_names_set:
                self.replace_node_input(node, old_input_name, new_input_name)

    def replace_output_of_all_nodes(self, old_output_name: str, new_output_name: str) -> None:
        self._index_nodes()
        for node in tuple(self._writers.get(old_output_name, ())):
            self.replace_node_output(node, old_output_name, new_output_name)
            self._writers.setdefault(new_output_name, []).append(node)

    def input_name_to_nodes(self) -> dict[str, list[onnx.NodeProto]]:
        self._index_nodes()
        if self._read_by is None:
            self._read_by = super().input_name_to_nodes()
        return self._read_by

    def _index_nodes(self) -> None:
        nodes = self.model.graph.node
        if len(nodes) != self._nodes_counted:
            self._readers, self._writers, self._read_by = {}, {}, None
            self._nodes_counted = len(nodes)
            for node in nodes:
                self._list(node)

    def _list(self, node: onnx.NodeProto) -> None:
        for names, index in ((node.input, self._readers), (node.output, self._writers)):
            for name in names:
                index.setdefault(name, []).append(node)


class TensorList:
    """The tensors of a model, for those who go through all of them and those who want one."""

    def __init__(self, model: IndexedModel) -> None:
        self._model = model

    def __iter__(self) -> Iterator[onnx.TensorProto]:
        return (tensor for tensor in self._model.model.graph.initializer if tensor.name not in self._model._gone)

    def named(self, name: str) -> onnx.TensorProto | None:
        return self._model.get_initializer(name)


def find_by_name(item_name: str, item_list: Any) -> Any:
    """In place of onnxruntime's."""
    if isinstance(item_list, TensorList):
        return item_list.named(item_name)
    return quant_utils.find_by_name(item_name, item_list)


@contextlib.contextmanager
def indexed() -> Iterator[None]:
    """onnxruntime's quantizers inside use the index."""
    theirs = quant_utils.find_by_name
    users = [module for name, module in sys.modules.items() if name.startswith(f"{_PACKAGE}.")]
    users = [module for module in users if module is not quant_utils and vars(module).get("find_by_name") is theirs]
    for module in users:
        module.find_by_name = find_by_name  # type: ignore[attr-defined]
    base_quantizer.ONNXModel = IndexedModel
    try:
        yield
    finally:
        base_quantizer.ONNXModel = onnx_model.ONNXModel
        for module in users:
            module.find_by_name = theirs  # type: ignore[attr-defined]
