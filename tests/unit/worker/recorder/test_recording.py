"""What the forwarding library records of a call."""


def test_a_recording_without_work_is_empty(run):
    found = run("answer = record()[0]")
    assert found == {
        "operations": [], "functions": [], "graphs": [], "images": {}, "globals": [], "streams": [], "memory": [],
        "unsupported": [], "has_fixed_addresses": False,
    }  # fmt: skip
