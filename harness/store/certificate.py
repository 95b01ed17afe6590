"""The red-team certificate: this code, on this machine, behind these walls, judged every file of the corpus right.

A JSON file per kind of device. It is valid as long as everything it was made from is the same now; any change of the
package's source, the corpus, torch, the hardware or the walls ends it. Nothing is run here: `harness red-team`
earns a certificate, and every evaluation made under a valid one carries its digest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from pathlib import Path

from harness.domain import StoreError
from harness.domain.files import replacing

DIGEST_CHARACTERS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What a certificate holds for. `package` and `corpus` are hashes of files, `confinement` the walls by name."""

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
    """A full run of the corpus without a surprise: when, on what, and how many files were judged."""

    basis: Basis
    made_at: str
    attacks: int
    controls: int

    @property
    def digest(self) -> str:
        return sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:DIGEST_CHARACTERS]

    def digest_behind(self, confinement: str) -> str:
        """The digest for what was judged behind those walls; empty where they are not the certificate's."""
        return self.digest if confinement == self.basis.confinement else ""

    def explain_difference(self, now: Basis) -> str | None:
        """Why the certificate does not hold for what is there now; None if it does."""
        changed = [
            f"{field.name} ({getattr(self.basis, field.name)} then, {getattr(now, field.name)} now)"
            for field in fields(Basis)
            if getattr(self.basis, field.name) != getattr(now, field.name)
        ]
        return f"changed since {self.made_at}: {'; '.join(changed)}" if changed else None


def hash_package(package: Path) -> str:
    """One hash over every Python file of a package."""
    return hash_files(package, package.rglob("*.py"))


def hash_corpus(corpus: Path) -> str:
    """One hash over the attacks, controls and problems of a corpus."""
    folders = [corpus / name for name in ("attacks", "controls", "problems")]
    return hash_files(corpus, (path for folder in folders for path in folder.rglob("*") if path.suffix != ".pyc"))


def hash_files(root: Path, paths: Iterable[Path]) -> str:
    """One hash over the names below `root` and the contents of these files; folders are left out."""
    whole = sha256()
    for path in sorted(path for path in paths if path.is_file()):
        content = sha256(path.read_bytes()).hexdigest()
        whole.update(f"{path.relative_to(root).as_posix()}\0{content}\0".encode())
    return whole.hexdigest()[:DIGEST_CHARACTERS]


def certificate_path(state_folder: Path, device: str) -> Path:
    return state_folder / f"certificate-{device}.json"


def write_certificate(state_folder: Path, certificate: Certificate) -> Path:
    """Keeps a certificate in the place of the one before. Raises StoreError if the folder cannot be written."""
    path = certificate_path(state_folder, certificate.basis.device)
    text = json.dumps({"digest": certificate.digest, **asdict(certificate)}, indent=1) + "\n"
    try:
        with replacing(path) as partial:
            partial.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"cannot write the certificate {path}: {error}; make the folder writable") from error
    return path


def read_certificate(state_folder: Path, device: str) -> Certificate | None:
    """The certificate kept for that kind of device; None if there is none, or none that can be read as one."""
    try:
        fields_read = json.loads(certificate_path(state_folder, device).read_text(encoding="utf-8"))
        digest = fields_read.pop("digest")
        certificate = Certificate(**{**fields_read, "basis": Basis(**fields_read["basis"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return certificate if certificate.digest == digest else None


def remove_certificate(state_folder: Path, device: str) -> None:
    """After a run that came out otherwise than expected, an older certificate would be a lie."""
    certificate_path(state_folder, device).unlink(missing_ok=True)
