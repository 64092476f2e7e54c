"""What a repair says about each thing it raises."""

from modelwright.repairs import Promotion
from modelwright.report.fix import raised_words
from modelwright.stages.quantize import TensorOverride


def raised(what, level="float", node="block/conv", op_type="Conv", overrides=(), excludes=("block/conv",)):
    return raised_words(Promotion("t", node, what, level, 0.5, excludes, overrides, op_type=op_type))


def test_the_operator_is_named_with_its_type():
    wide = (TensorOverride("w", "int16"),)
    assert raised("activation") == "the output t of Conv block/conv to float: block/conv"
    assert raised("weight", "16bit", overrides=wide) == "the weights of Conv block/conv to 16 bits: w = int16"
    assert raised("activation", node="Conv(t)") == "the output t of Conv(t) to float: block/conv"
    assert raised("activation", node="(input)", op_type="(input)") == "the input t to float: block/conv"


def test_an_operator_without_weights_has_none_to_raise():
    assert (
        raised("node", node="block/add", op_type="Add", excludes=("block/add",)) == "Add block/add to float: block/add"
    )
