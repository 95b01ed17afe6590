from harness.report.terminal.search_progress import describe_builds


def test_builds_are_counted_by_strategy_with_the_commonest_reasons():
    counts = {
        "built": 6, "failed": 1, "cached": 2, "strategy fast": 4, "strategy plain": 3, "reason it uses requires": 1,
        "reason its headers cannot be precompiled here": 2,
    }  # fmt: skip
    assert describe_builds(counts, 5) == (
        "6 built, 2 cached, 1 failed, 5 waiting; 4 fast, 3 plain "
        "(2: its headers cannot be precompiled here; 1: it uses requires)"
    )


def test_before_the_first_build_no_strategy_is_named():
    assert describe_builds({}, 3) == "0 built, 0 cached, 0 failed, 3 waiting"
