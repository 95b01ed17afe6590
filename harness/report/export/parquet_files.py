"""Writes evaluations to a Parquet file. Needs pyarrow, the extra `parquet`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.domain import StoreError, UsageError
from harness.domain.files import explain_failure, replacing
from harness.report.values import make_printable
from harness.store.columns import COLUMNS, ResultRow


def write_parquet(rows: Sequence[ResultRow], columns: Sequence[str], path: Path) -> None:
    """Write atomically. Raises UsageError without pyarrow, and StoreError if the file cannot be written."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UsageError("--parquet needs pyarrow: pip install pyarrow, or use --csv") from error
    schema = pa.schema([(name, _choose_type(pa, name)) for name in columns])
    arrays = [_read_column(rows, name) for name in columns]
    table = pa.table([pa.array(values, kind) for values, kind in zip(arrays, schema.types, strict=True)], schema=schema)
    try:
        with replacing(path) as partial:
            pq.write_table(table, partial, compression="zstd")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {explain_failure(error)}; choose another path") from error


def _choose_type(pa: Any, name: str) -> Any:
    return {str: pa.string, int: pa.int64, float: pa.float64}[COLUMNS[name].kind]()


def _read_column(rows: Sequence[ResultRow], name: str) -> list[str | float | None]:
    values = [getattr(row, name) for row in rows]
    return [make_printable(value) if isinstance(value, str) else value for value in values]
