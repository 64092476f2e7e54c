"""The bare calls, as scripts for a process of their own."""

OPTIMIZE = """
import sys, onnxruntime as ort
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
options.optimized_model_filepath = sys.argv[2]
if sys.argv[3] == "external":
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "optimized.data")
    options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", "1024")
ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
"""
# Not a part of any bare call: what the content of a model costs to know it by, once, on this CPU.
HASH = """
import hashlib, sys
for name in sys.argv[1:]:
    with open(name, "rb") as file:
        hashlib.file_digest(file, "sha256")
"""
QUANTIZE = """
import sys, numpy as np
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
class Reader(CalibrationDataReader):
    left, rng = 4, np.random.default_rng(0)
    def get_next(self):
        self.left -= 1
        return {"x": self.rng.standard_normal((4, 16), dtype=np.float32)} if self.left >= 0 else None
quantize_static(sys.argv[1], sys.argv[2], Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, op_types_to_quantize=["Conv", "Gemm", "MatMul"])
"""
INT4 = """
import sys, onnx
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
quantizer = MatMulNBitsQuantizer(onnx.load(sys.argv[1]), block_size=32, is_symmetric=True)
quantizer.process()
onnx.save(quantizer.model.model, sys.argv[2])
"""
EVALUATE = """
import sys, numpy as np, onnxruntime as ort
sessions = [ort.InferenceSession(name, providers=["CPUExecutionProvider"]) for name in sys.argv[1:3]]
data = np.load(sys.argv[3])
images, labels, right = data["x"], data["label"], [0, 0]
for index, label in enumerate(labels):
    for place, session in enumerate(sessions):
        right[place] += int(session.run(None, {"x": images[index : index + 1]})[0].argmax() == label)
print(right)
"""
PLACE = """
import sys, onnxruntime as ort
options = ort.SessionOptions()
options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"], enable_fallback=0)
print(len(session.get_provider_graph_assignment_info()))
"""
# Options as ours: the chip, and what makes it fast.
COMPILE = """
import sys, numpy as np, onnxruntime as ort, onnxruntime_qnn as qnn
ort.register_execution_provider_library(qnn.get_ep_name(), qnn.get_library_path())
device = next(device for device in ort.get_ep_devices() if device.ep_name == qnn.get_ep_name())
chip = {"htp_arch": "73", "soc_model": "60", "htp_performance_mode": "burst"}
def options():
    made = ort.SessionOptions()
    made.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    made.add_provider_for_devices(
        [device], {"backend_path": qnn.get_qnn_htp_path(), "htp_graph_finalization_optimization_mode": "3", **chip})
    return made
ort.ModelCompiler(options(), sys.argv[1], embed_compiled_data_into_model=False).compile_to_file(sys.argv[2])
runs = int(sys.argv[3])
session = ort.InferenceSession(sys.argv[2], options()) if runs else None
for seed in range(runs):
    taken = session.get_inputs()[0]
    session.run(None, {taken.name: np.random.default_rng(seed).standard_normal(taken.shape, np.float32)})
"""
