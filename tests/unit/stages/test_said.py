"""What onnxruntime's log says about its transformers."""

from modelwright.stages.optimize._said import may_have_fired, with_idle

NAMES = ("constant_folding", "identity_elimination", "slice_elimination", "matmul_add_fusion")


def line(name, modified):
    return f"[I:onnxruntime:, graph_transformer.cc:15] GraphTransformer {name} modified: {modified} with status: OK\n"


def test_only_those_that_changed_something_are_asked_about():
    log = line("Level1_RuleBasedTransformer", 0) + line("ConstantFolding", 0) + line("MatMulAddFusion", 1)
    assert may_have_fired(NAMES, log) == ("matmul_add_fusion",)


def test_rules_have_no_line_of_their_own_so_all_of_them_may_have_been_it():
    log = line("Level1_RuleBasedTransformer", 1) + line("ConstantFolding", 0) + line("MatMulAddFusion", 0)
    assert may_have_fired(NAMES, log) == ("identity_elimination", "slice_elimination")


def test_a_transformer_that_runs_twice_counts_when_it_changed_something_once():
    assert "constant_folding" in may_have_fired(NAMES, line("ConstantFolding", 0) + line("ConstantFolding", 1))


def test_a_log_that_is_not_understood_rules_nothing_out():
    for log in ("[I] transformers: done\n", with_idle("[I] transformers: done\n", "constant_folding")):
        assert may_have_fired(NAMES, log) == NAMES


def test_a_pass_that_was_left_out_is_not_taken_for_a_rule():
    log = line("Level1_RuleBasedTransformer", 1) + line("MatMulAddFusion", 0)
    assert "constant_folding" in may_have_fired(NAMES, log)
    assert "constant_folding" not in may_have_fired(NAMES, with_idle(log, "constant_folding"))
