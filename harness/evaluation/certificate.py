"""Red-team certificates: the evaluator classified every program of the corpus correctly on this machine.

Each kind of device has one JSON file, valid while its basis is unchanged (sources, corpus, torch, hardware, isolation
layers).
"""

import json
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from pathlib import Path

import harness
from harness.domain import StoreError
from harness.domain.files import raising, replace_text
from harness.domain.records import make_value
from harness.hardware.host import cpu_name, read_torch_build
from harness.sandbox.devices import Device
from harness.shipped import find_shipped

DIGEST_CHARACTERS = 16
# Parts of the package that decide no verdict; evaluator and worker import none of them.
BESIDE = frozenset({
    "__main__.py", "api.py", "capture", "cli", "client.py", "doctor", "formats", "generate", "pipeline", "redteam.py",
    "report", "search", "service",
})  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """`package` and `corpus` are file hashes; `isolation` names the isolation layers."""

    device: str  # "cpu" or "cuda"
    harness: str
    package: str
    corpus: str
    hardware: str
    torch: str
    python: str
    isolation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    basis: Basis
    made_at: str
    attacks: int
    controls: int

    @property
    def digest(self) -> str:
        return sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:DIGEST_CHARACTERS]

    def digest_behind(self, isolation: str) -> str:
        """Return the digest if the isolation layers are the certificate's, else ""."""
        return self.digest if isolation == self.basis.isolation else ""

    def explain_difference(self, now: Basis) -> str | None:
        changed = [
            f"{field.name} ({getattr(self.basis, field.name)} then, {getattr(now, field.name)} now)"
            for field in fields(Basis)
            if getattr(self.basis, field.name) != getattr(now, field.name)
        ]
        return f"changed since {self.made_at}: {'; '.join(changed)}" if changed else None


def hash_trusted_code(package: Path) -> str:
    """Hash the code that decides verdicts, without the command line and the reports."""
    deciding = (path for path in package.iterdir() if path.name not in BESIDE)
    files = (path for top in deciding for path in ([top] if top.is_file() else top.rglob("*")))
    return hash_files(package, (path for path in files if path.suffix != ".pyc"))


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
    with raising(StoreError, f"write the certificate {path}", "; make the folder writable"):
        replace_text(path, text)
    return path


def read_certificate(state_folder: Path, device: str) -> Certificate | None:
    try:
        fields_read = json.loads(certificate_path(state_folder, device).read_text(encoding="utf-8"))
        digest = fields_read.pop("digest")
        certificate: Certificate = make_value(Certificate, fields_read)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return certificate if certificate.digest == digest else None


def remove_certificate(state_folder: Path, device: str) -> None:
    """Call after a run with deviations, so that no older certificate remains valid."""
    certificate_path(state_folder, device).unlink(missing_ok=True)


RED_TEAM = "run harness red-team"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    certificate: Certificate | None
    reason: str = ""


def find_corpus() -> Path | None:
    folder = find_shipped("redteam_corpus")
    return folder if (folder / "attacks").is_dir() else None


def check_standing(machine_folder: Path, device: Device, isolation: str | None = None) -> Standing:
    """`isolation` None is not compared: it is unknown before a worker starts."""
    if not device.is_timed:
        return Standing(certificate=None, reason="the emulated device earns none")
    kind, corpus = device.torch_device.type, find_corpus()
    kept = read_certificate(machine_folder, kind)
    if kept is None:
        return Standing(certificate=None, reason=f"not earned yet: {RED_TEAM}")
    if corpus is None:
        return Standing(certificate=None, reason="the red-team corpus is not installed")
    now = describe_basis(device, corpus, kept.basis.isolation if isolation is None else isolation)
    difference = kept.explain_difference(now)
    if difference is not None:
        return Standing(certificate=None, reason=f"{difference}: {RED_TEAM}")
    return Standing(certificate=kept)


def describe_basis(device: Device, corpus: Path, isolation: str) -> Basis:
    facts = device.describe()
    hardware = f"{facts['gpu']}, driver {facts['driver']}, {cpu_name()}" if "gpu" in facts else cpu_name()
    return Basis(
        device=device.torch_device.type,
        harness=harness.__version__,
        package=hash_trusted_code(Path(harness.__file__).resolve().parent),
        corpus=hash_corpus(corpus),
        hardware=hardware,
        torch=read_torch_build().version,
        python=platform.python_version(),
        isolation=isolation,
    )
