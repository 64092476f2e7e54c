"""A real OCI registry on loopback: Debian's docker-registry."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

# `make registry` unpacks it beside the interpreter, where it is not installed.
PROGRAM = shutil.which("docker-registry") or shutil.which(
    "docker-registry", path=Path(sys.prefix, "registry", "usr", "bin")
)
_CONFIG = """\
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {root}}}, delete: {{enabled: true}}}}
http: {{addr: "127.0.0.1:{port}"}}
{auth}
"""


@contextlib.contextmanager
def registry(folder, auth=""):
    """Its host and port. `folder` gets what is pushed."""
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.yml"
    config.write_text(_CONFIG.format(root=folder / "data", port=port, auth=auth))
    environment = {**os.environ, "OTEL_TRACES_EXPORTER": "none"}
    server = subprocess.Popen(
        [PROGRAM, "serve", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    try:
        wait_for(f"http://127.0.0.1:{port}/v2/")
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for(url):
    for _ in range(600):
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"{url} never answered")
