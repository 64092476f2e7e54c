"""A server that stands before a real one, and lies when it is told to."""

import contextlib
import http.client
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Lie:
    """What happens to requests that fit: `times` of them, None is all.

    status: answered with it, and not passed on. hang: passed on, and never answered. wrong: the answer has a byte
    changed. cut: the answer ends in the middle of what was promised. drop: half of what is sent is passed on, then the
    connection ends. slow: bytes come one piece at a time, with a pause. edit: a function of the answer's body.
    """

    def __init__(self, method=".*", path=".*", times=None, **what):
        self._fits = re.compile(f"(?:{method}) (?:{path})")
        self.left = times
        self.what = what
        self.told = 0

    def takes(self, method, path):
        if self.left == 0 or not self._fits.fullmatch(f"{method} {path}"):
            return False
        self.left = None if self.left is None else self.left - 1
        self.told += 1
        return True


@contextlib.contextmanager
def lying(upstream, *lies):
    """The host and port of the liar, and the requests it saw as (method, path)."""
    seen, ended = [], threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(upstream, list(lies), seen, ended))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}", seen
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(upstream, lies, seen, ended):  # noqa: C901 - one class, made for each server
    turn = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self):
            with turn:
                seen.append((self.command, self.path))
                lie = next((lie for lie in lies if lie.takes(self.command, self.path)), None)
            what = lie.what if lie else {}
            self.close_connection = True
            body = self._body(what)
            if "status" in what:
                self._say(what["status"], {}, what.get("body", b"{}"))
                return
            if "drop" in what:
                self._pass_half(body)
                return
            status, headers, data = self._passed(body)
            if "hang" in what:
                ended.wait(30)
                return
            data = what["edit"](data) if "edit" in what else data
            data = data[:-1] + bytes([data[-1] ^ 1]) if "wrong" in what and data else data
            self._say(status, headers, data, cut="cut" in what, slow="slow" in what)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _any

        def _body(self, what):
            left = int(self.headers.get("Content-Length") or 0)
            data = b""
            while len(data) < left:
                piece = self.rfile.read(min(left - len(data), 4096 if "slow" in what else 1 << 20))
                if not piece:
                    break
                data += piece
                if "slow" in what:
                    time.sleep(0.01)
            return data

        def _asked(self):
            kept = {name: value for name, value in self.headers.items() if name.lower() not in ("connection",)}
            return {**kept, "Connection": "close"}

        def _passed(self, body):
            connection = http.client.HTTPConnection(upstream, timeout=30)
            connection.request(self.command, self.path, body or None, self._asked())
            answer = connection.getresponse()
            data = answer.read()
            headers = dict(answer.getheaders())
            connection.close()
            return answer.status, headers, data

        def _pass_half(self, body):
            connection = http.client.HTTPConnection(upstream, timeout=30)
            connection.putrequest(self.command, self.path, skip_host=True)
            for name, value in self._asked().items():
                connection.putheader(name, value)
            connection.endheaders(body[: len(body) // 2])
            connection.close()
            time.sleep(0.2)
            self.connection.close()

        def _say(self, status, headers, data, cut=False, slow=False):
            self.send_response_only(status)
            length = headers.get("Content-Length", len(data)) if self.command == "HEAD" else len(data)
            for name, value in headers.items():
                if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(length))
            self.send_header("Connection", "close")
            self.end_headers()
            if self.command == "HEAD":
                return
            data = data[: len(data) // 2] if cut else data
            with contextlib.suppress(OSError):
                for start in range(0, len(data), 2048 if slow else max(1, len(data))):
                    self.wfile.write(data[start : start + (2048 if slow else len(data))])
                    if slow:
                        time.sleep(0.15)

        def log_message(self, *words):
            pass

    return Handler
