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
