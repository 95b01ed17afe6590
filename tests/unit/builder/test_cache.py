import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.builder.cache import IN_USE_S, LEFTOVER_S, parse_size, prune_cache, read_cache


@pytest.fixture(autouse=True, scope="module", params=[1e9, 3e9], ids=["behind", "ahead"])
def server_clock(request):
    """The cache lies on a file server whose clock is years behind this machine's, or ahead."""
    set_times = os.utime
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "utime", lambda path, times=None: set_times(path, times or (request.param, request.param)))
        yield


def use(path, age_s):
    """So long ago by the server's clock."""
    os.utime(path)
    used_at = path.stat().st_mtime - age_s
    os.utime(path, (used_at, used_at))


def keep(folder, key, size_bytes, age_s):
    """A build as it lies in the cache, used so long ago."""
    path = folder / key[:2] / key
    path.mkdir(parents=True)
    (path / "library.so").write_bytes(b"x" * size_bytes)
    use(path, age_s)
    return path


def test_the_build_that_was_not_used_for_longest_goes_first(tmp_path):
    old, new = keep(tmp_path, "aa01", 600, 9000.0), keep(tmp_path, "ab02", 600, 5000.0)
    assert prune_cache(tmp_path, 1000) == (1, 600)
    assert (old.exists(), new.exists()) == (False, True)


def test_a_build_used_a_moment_ago_stays_whatever_the_limit(tmp_path):
    path = keep(tmp_path, "aa01", 600, IN_USE_S / 2)
    assert prune_cache(tmp_path, 0) == (0, 0)
    assert path.exists()


def test_a_cache_within_its_limit_loses_nothing(tmp_path):
    keep(tmp_path, "aa01", 600, 9000.0)
    assert prune_cache(tmp_path, 600) == (0, 0)


@pytest.mark.parametrize(("age_s", "left"), [(LEFTOVER_S + 1, 0), (LEFTOVER_S - 1, 1)])
def test_partial_result_of_a_killed_build_is_removed_after_a_day(tmp_path, age_s, left):
    path = tmp_path / "build-left"
    (path / "work").mkdir(parents=True)
    use(path, age_s)
    prune_cache(tmp_path, 10**9)
    assert len(list(tmp_path.glob("build-*"))) == left


def test_locks_are_not_counted_as_builds(tmp_path):
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "aa01").touch()
    keep(tmp_path, "aa01", 10, 0.0)
    assert [entry.path.name for entry in read_cache(tmp_path).builds] == ["aa01"]


def test_a_cache_that_is_not_there_is_empty(tmp_path):
    assert read_cache(tmp_path / "missing").size_bytes == 0
    assert prune_cache(tmp_path / "missing", 0) == (0, 0)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("0", 0), ("512", 512), ("2K", 2048), ("1.5M", 1572864), ("20G", 20 << 30), ("1 TiB", 1 << 40)],
)
def test_a_size_is_a_number_with_a_unit(text, size_bytes):
    assert parse_size(text) == size_bytes


@given(st.text().filter(lambda text: not text.strip()[:1].isdigit()))
def test_invalid_size_is_refused_and_quoted(text):
    with pytest.raises(ValueError, match="expected a size such as 20G"):
        parse_size(text)


@given(st.lists(st.tuples(st.integers(0, 1000), st.floats(IN_USE_S, 1e6)), max_size=8), st.integers(0, 5000))
def test_after_pruning_the_rest_fits_and_no_more_than_needed_is_gone(tmp_path_factory, builds, limit):
    folder = tmp_path_factory.mktemp("cache")
    for number, (size_bytes, age_s) in enumerate(builds):
        keep(folder, f"{number:02x}01", size_bytes, age_s + 1)
    prune_cache(folder, limit)
    left = read_cache(folder)
    assert left.size_bytes <= limit or not left.builds
    gone = sum(size for size, _ in builds) - left.size_bytes
    assert gone == 0 or gone - max(size for size, _ in builds) <= max(0, sum(size for size, _ in builds) - limit)
