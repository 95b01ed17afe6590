"""Faults of a GPU that its driver reports while it is idle."""

from types import SimpleNamespace

from harness.executors.evaluator_process import Assignment, Lost, _evaluate


def test_a_fault_of_an_idle_gpu_is_found_before_the_next_evaluation():
    watch = SimpleNamespace(find_fault=lambda: "Xid 79, a fault of the GPU or its driver")
    work = Assignment(task=None, ahead=None)
    answer = _evaluate(device=None, evaluators=None, work=work, watch=watch)
    assert answer == Lost(reason="Xid 79, a fault of the GPU or its driver", for_good=True)
