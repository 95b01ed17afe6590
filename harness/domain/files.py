import codecs
import fcntl
import json
import os
import secrets
import tokenize
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import IO, Any

from harness.domain.errors import HarnessError, StoreError

BYTE_ORDER_MARK = "\ufeff"  # Windows editors begin files with it
_WIDE_MARKS = (  # UTF-32's begins with UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def read_python(path: Path) -> str:
    """Raises OSError or ValueError."""
    return decode_python(path.read_bytes())


def decode_python(content: bytes) -> str:
    """Use the byte order mark, else the declared encoding, or UTF-8. Raises ValueError."""
    if b"\0" in content[:2]:
        raise ValueError("it looks like UTF-16 or UTF-32 without a byte order mark: save it as UTF-8")
    try:
        encoding = find_wide_encoding(content) or tokenize.detect_encoding(BytesIO(content).readline)[0]
        return TextIOWrapper(BytesIO(content), encoding).read()
    except (SyntaxError, UnicodeError) as error:  # SyntaxError: of the declaration
        raise ValueError(f"{error}: save it as UTF-8, or declare its encoding in the first line") from error


def find_wide_encoding(content: bytes) -> str | None:
    return next((name for mark, name in _WIDE_MARKS if content.startswith(mark)), None)


def explain_failure(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


@contextmanager
def raising(
    raised: type[HarnessError], action: str, remedy: str = "", *, also: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Raise `raised` for an OSError in the block, or for one of `also`: "cannot `action`: cause`remedy`"."""
    causes: tuple[type[Exception], ...] = (OSError, *also)
    try:
        yield
    except causes as error:
        raise raised(f"cannot {action}: {explain_failure(error)}{remedy}") from error


def read_json_record(path: Path, remedy: str) -> dict[str, Any] | None:
    """Return a JSON object, or None without a file. Raises StoreError, with the `remedy` for a damaged one."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record, dict):
            raise ValueError(f"expected a JSON object, found a {type(record).__name__}")
        return record
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {explain_failure(error)}") from error
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} is damaged ({error}): {remedy}") from error


def replace_text(path: Path, text: str) -> None:
    """Write UTF-8 atomically. Raises OSError."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def try_lock(file: IO[Any] | int, kind: int = fcntl.LOCK_EX) -> bool:
    """The lock is held until the file is closed."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path; rename it to `path` at the end, or remove it on an exception. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name[:100]}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
