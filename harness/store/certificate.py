"""Red-team certificates: the evaluator classified every program of the corpus correctly on this machine.

One JSON file per kind of device, valid while its basis is unchanged (sources, corpus, torch, hardware, isolation
layers).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from pathlib import Path

from harness.domain import StoreError
from harness.domain.files import replacing
from harness.store.import_closure import find_closure

DIGEST_CHARACTERS = 16
DECIDING_MODULE = "harness.executors.local"  # starts the evaluator and the workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """`package` and `corpus` are file hashes, `confinement` names the isolation layers."""

    device: str  # "cpu" or "cuda"
    harness: str
    package: str
    corpus: str
    hardware: str
    torch: str
    python: str
    confinement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    basis: Basis
    made_at: str
    attacks: int
    controls: int

    @property
    def digest(self) -> str:
        return sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:DIGEST_CHARACTERS]

    def digest_behind(self, confinement: str) -> str:
        """The digest if the isolation layers are the certificate's, else ""."""
        return self.digest if confinement == self.basis.confinement else ""

    def explain_difference(self, now: Basis) -> str | None:
        changed = [
            f"{field.name} ({getattr(self.basis, field.name)} then, {getattr(now, field.name)} now)"
            for field in fields(Basis)
            if getattr(self.basis, field.name) != getattr(now, field.name)
        ]
        return f"changed since {self.made_at}: {'; '.join(changed)}" if changed else None


def hash_trusted_code(package: Path) -> str:
    """Of what decides verdicts: the command line and the reports do not end a certificate."""
    return hash_files(package, find_closure(package, DECIDING_MODULE))


def hash_corpus(corpus: Path) -> str:
    folders = [corpus / name for name in ("attacks", "controls", "problems")]
    return hash_files(corpus, (path for folder in folders for path in folder.rglob("*") if path.suffix != ".pyc"))


def hash_files(root: Path, paths: Iterable[Path]) -> str:
    whole = sha256()
    for path in sorted(path for path in paths if path.is_file()):
        content = sha256(path.read_bytes()).hexdigest()
        whole.update(f"{path.relative_to(root).as_posix()}\0{content}\0".encode())
    return whole.hexdigest()[:DIGEST_CHARACTERS]


def certificate_path(state_folder: Path, device: str) -> Path:
    return state_folder / f"certificate-{device}.json"


def write_certificate(state_folder: Path, certificate: Certificate) -> Path:
    """Replaces an earlier certificate. Raises StoreError."""
    path = certificate_path(state_folder, certificate.basis.device)
    text = json.dumps({"digest": certificate.digest, **asdict(certificate)}, indent=1) + "\n"
    try:
        with replacing(path) as partial:
            partial.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"cannot write the certificate {path}: {error}; make the folder writable") from error
    return path


def read_certificate(state_folder: Path, device: str) -> Certificate | None:
    """None without a valid file."""
    try:
        fields_read = json.loads(certificate_path(state_folder, device).read_text(encoding="utf-8"))
        digest = fields_read.pop("digest")
        certificate = Certificate(**{**fields_read, "basis": Basis(**fields_read["basis"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return certificate if certificate.digest == digest else None


def remove_certificate(state_folder: Path, device: str) -> None:
    """After a run with deviations, so that no older certificate remains in force."""
    certificate_path(state_folder, device).unlink(missing_ok=True)
