"""Certificates: who has one of the cluster's authority is in, and nobody else."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright import home
from modelwright._lazy import lazy
from modelwright.errors import UsageError

if TYPE_CHECKING:
    import distributed
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
else:
    distributed = lazy("distributed")
    x509 = lazy("cryptography.x509")
    hashes = lazy("cryptography.hazmat.primitives.hashes")
    serialization = lazy("cryptography.hazmat.primitives.serialization")
    ec = lazy("cryptography.hazmat.primitives.asymmetric.ec")

AUTHORITY, CERTIFICATE, KEY = "ca.pem", "cert.pem", "key.pem"
AUTHORITY_KEY = "ca-key.pem"
_DAYS = 365
_MAKE = "wright cluster certs FOLDER"


def tls_folder(chosen: Path | None = None) -> Path:
    """Where this machine's three files are: what was said, else `tls` in the home."""
    return chosen if chosen is not None else home.home() / "tls"


def security(folder: Path) -> Any:
    """Dask's settings of a machine with these certificates: both sides of every connection show one."""
    for name in (AUTHORITY, CERTIFICATE, KEY):
        if not (folder / name).is_file():
            raise UsageError(
                f"{folder} holds no {name}",
                cause="machines of a cluster know each other by certificates of one authority",
                fix=f"make them with `{_MAKE}` and copy the folder of this machine there",
            )
    files = {f"tls_{role}_cert": str(folder / CERTIFICATE) for role in ("client", "scheduler", "worker")}
    files |= {f"tls_{role}_key": str(folder / KEY) for role in ("client", "scheduler", "worker")}
    return distributed.Security(require_encryption=True, tls_ca_file=str(folder / AUTHORITY), **files)


def require_tls(address: str) -> str:
    """The address of a scheduler; one without TLS would let anybody in the network run code on every machine."""
    if not address.startswith("tls://"):
        raise UsageError(
            f"{address} is no address of a cluster",
            cause="only tls:// is spoken: whoever can connect can have work done",
            fix="tls://HOST:8786, as `wright cluster scheduler` prints it",
        )
    return address


def make_certificates(folder: Path, names: tuple[str, ...]) -> tuple[Path, ...]:
    """An authority in `folder`, made once, and a folder with a new certificate for every name."""
    for name in names:
        if Path(name).name != name or not name or (folder / name).exists():
            raise UsageError(
                f"there is no certificate to make for {name!r}",
                cause="there is a folder of that name already" if name else "it has no name",
                fix="choose another name: each machine has a certificate of its own",
            )
    authority = _authority(folder)
    return tuple(_certificate(folder, name, *authority) for name in names)


def _authority(folder: Path) -> tuple[Any, Any]:
    if (folder / AUTHORITY_KEY).is_file():
        key = serialization.load_pem_private_key((folder / AUTHORITY_KEY).read_bytes(), None)
        return x509.load_pem_x509_certificate((folder / AUTHORITY).read_bytes()), key
    key = ec.generate_private_key(ec.SECP256R1())
    name = _named("modelwright cluster")
    found = _builder(name, name, key).add_extension(x509.BasicConstraints(True, 0), critical=True)
    signed = found.sign(key, hashes.SHA256())
    folder.mkdir(parents=True, exist_ok=True)
    _write_key(folder / AUTHORITY_KEY, key)
    (folder / AUTHORITY).write_bytes(_pem(signed))
    return signed, key


def _certificate(folder: Path, name: str, authority: Any, key: Any) -> Path:
    own, place = ec.generate_private_key(ec.SECP256R1()), folder / name
    found = _builder(_named(name), authority.subject, own)
    found = found.add_extension(x509.BasicConstraints(False, None), critical=True)
    found = found.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    place.mkdir(mode=0o700)
    _write_key(place / KEY, own)
    (place / CERTIFICATE).write_bytes(_pem(found.sign(key, hashes.SHA256())))
    (place / AUTHORITY).write_bytes(_pem(authority))
    return place


def _builder(subject: Any, issuer: Any, key: Any) -> Any:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
    )


def _named(name: str) -> Any:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _write_key(path: Path, key: Any) -> None:
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def _pem(certificate: Any) -> bytes:
    found: bytes = certificate.public_bytes(serialization.Encoding.PEM)
    return found
