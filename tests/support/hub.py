"""A stand-in for the Hugging Face Hub: the HTTP that `huggingface_hub` speaks, with its state and its contract.

The real client is held to it in test_hub.py, so what it gets wrong the client would see.
"""

import base64
import contextlib
import fnmatch
import hashlib
import json
import re
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKENS = {"hf_me": ("me", "write"), "hf_reader": ("me", "read"), "hf_other": ("other", "write")}
ORGS = {"me": [{"name": "team", "roleInOrg": "write"}, {"name": "closed", "roleInOrg": "read"}], "other": []}
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
RULES = b"*.onnx filter=lfs diff=lfs merge=lfs -text\n*.bin filter=lfs diff=lfs merge=lfs -text\n"
LARGEST_REGULAR = 10 << 20
LICENCES = ("apache-2.0", "mit", "other")


class Refused(Exception):
    def __init__(self, status, code="", message=""):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class Repository:
    """Commits are never changed; objects are known by their SHA-256."""

    def __init__(self, private):
        self.private, self.commits, self.objects, self.parts = private, [], {}, {}
        self.add({".gitattributes": ("text", RULES)}, "initial commit")

    def add(self, changed, title):
        before = self.commits[-1] if self.commits else {"files": {}, "by": {}}
        number = len(self.commits)
        sha = hashlib.sha1(f"{id(self)} {number} {title}".encode()).hexdigest()
        about = {"id": sha, "title": title, "date": f"2026-01-01T00:00:{number % 60:02}.000Z"}
        by = {**before["by"], **dict.fromkeys(changed, about)}
        self.commits.append({"sha": sha, "files": {**before["files"], **changed}, "by": by, "title": title})
        return sha

    def at(self, revision):
        if revision == "main":
            return self.commits[-1]
        found = [commit for commit in self.commits if commit["sha"] == revision]
        if not found:
            raise Refused(404, "RevisionNotFound", "Invalid rev id")
        return found[0]

    def is_large(self, path, sample, size):
        _, rules = self.at("main")["files"][".gitattributes"]
        lines = [line.split()[0] for line in rules.decode().splitlines() if "filter=lfs" in line]
        named = any(fnmatch.fnmatch(path if "/" in line else path.split("/")[-1], line) for line in lines)
        return named or size > LARGEST_REGULAR or b"\0" in sample


class Hub:
    def __init__(self, part=None, page=1000, makes_public=False):
        self.repositories, self.turn = {}, threading.Lock()
        self.part, self.page, self.makes_public = part, page, makes_public

    def who(self, headers, writes=False):
        said = headers.get("Authorization", "")
        if not said:
            return None
        known = TOKENS.get(said.removeprefix("Bearer "))
        if known is None:
            raise Refused(401, "", "Invalid credentials in Authorization header")
        if writes and known[1] != "write":
            raise Refused(403, "", "Forbidden")
        return known[0]

    def writer(self, headers, owner):
        name = self.who(headers, writes=True)
        if name is None:
            raise Refused(401, "", "Invalid username or password.")
        if owner != name and owner not in [org["name"] for org in ORGS[name] if org["roleInOrg"] != "read"]:
            raise Refused(403, "", "You don't have the rights")
        return name

    def repository(self, name, headers, writes=False):
        owner = name.partition("/")[0]
        if writes:
            self.writer(headers, owner)
        who = self.who(headers)
        found = self.repositories.get(name)
        if found is None or (found.private and who is None):
            # To nobody in particular, the Hub does not say which of the two it is.
            raise Refused(401 if who is None else 404, "RepoNotFound", "Repository not found")
        return found


@contextlib.contextmanager
def hub(**said):
    """Its host and port, and itself."""
    state = Hub(**said)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.hub = state
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}", state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _any(self):
        self.close_connection = True
        path, _, query = self.path.partition("?")
        body = self._body()
        try:
            with self.state.turn:
                status, headers, data = self._routed(urllib.parse.unquote(path), query, body)
        except Refused as refused:
            headers = {"X-Error-Code": refused.code} if refused.code else {}
            headers["X-Error-Message"] = refused.message
            status, data = refused.status, json.dumps({"error": refused.message}).encode()
        self._say(status, headers, data)

    do_GET = do_HEAD = do_POST = do_PUT = _any

    def _body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _routed(self, path, query, body):
        reads = "GET|HEAD"
        routes = [
            (reads, r"/api/whoami-v2", self._whoami),
            ("POST", r"/api/repos/create", self._create),
            ("POST", r"/api/validate-yaml", self._validate),
            (reads, r"/api/models/([^/]+/[^/]+?)(?:/revision/([^/]+))?", self._about),
            ("POST", r"/api/models/([^/]+/[^/]+)/preupload/main", self._preupload),
            ("POST", r"/api/models/([^/]+/[^/]+)/paths-info/([^/]+)", self._paths),
            (reads, r"/api/models/([^/]+/[^/]+)/tree/([^/]+)", self._tree),
            ("POST", r"/api/models/([^/]+/[^/]+)/commit/main", self._commit),
            ("POST", r"/([^/]+/[^/]+)\.git/info/lfs/objects/batch", self._batch),
            ("PUT", r"/storage/([^/]+/[^/]+)/([0-9a-f]{64})(?:/(\d+))?", self._put),
            ("POST", r"/storage/([^/]+/[^/]+)/([0-9a-f]{64})/complete", self._complete),
            ("POST", r"/api/verify/([^/]+/[^/]+)", self._verify),
            (reads, r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", self._resolve),
            (reads, r"/api/resolve-cache/models/([^/]+/[^/]+)/([^/]+)/(.+)", self._text),
            (reads, r"/cdn/([^/]+/[^/]+)/([0-9a-f]{64})", self._cdn),
        ]
        for method, pattern, answer in routes:
            found = re.fullmatch(pattern, path)
            if found and re.fullmatch(method, self.command):
                return answer(body, dict(urllib.parse.parse_qsl(query)), *found.groups())
        raise Refused(404, "", f"no {self.command} {path}")

    def _whoami(self, body, query):
        name = self.state.who(self.headers)
        if name is None:
            raise Refused(401, "", "Invalid username or password.")
        role = TOKENS[self.headers["Authorization"].removeprefix("Bearer ")][1]
        return told({"name": name, "orgs": ORGS[name], "auth": {"accessToken": {"role": role}}})

    def _create(self, body, query):
        said = json.loads(body)
        unknown = set(said) - {"name", "organization", "private", "visibility", "type"}
        name = f"{said['organization']}/{said['name']}"
        bad = not REPOSITORY.fullmatch(name) or len(name) > 96 or "--" in name or ".." in name
        if unknown or bad or name.endswith((".git", ".ipynb")):
            raise Refused(400, "", f"{name} {unknown}")
        self.state.writer(self.headers, said["organization"])
        if name in self.state.repositories:
            raise Refused(409, "", "You already created this model repo")
        private = said.get("private") is True or said.get("visibility") == "private"
        self.state.repositories[name] = Repository(private and not self.state.makes_public)
        return told({"url": f"{self._own}/{name}"})

    def _validate(self, body, query):
        content = json.loads(body)["content"]
        found = re.search(r"^license: (.*)$", content, re.MULTILINE)
        if not content.startswith("---\n") or (found and found[1] not in LICENCES):
            return told({"errors": [{"message": '"license" must be one of'}], "warnings": []}, 400)
        return told({"errors": [], "warnings": []})

    def _about(self, body, query, name, revision=None):
        found = self.state.repository(name, self.headers)
        commit = found.at(revision or "main")
        siblings = [{"rfilename": path} for path in commit["files"]]
        return told({"id": name, "sha": commit["sha"], "private": found.private, "siblings": siblings})

    def _preupload(self, body, query, name):
        found, modes = self.state.repository(name, self.headers, writes=True), []
        for file in json.loads(body)["files"]:
            sample = base64.b64decode(file["sample"], validate=True)
            if len(sample) != min(512, file["size"]):
                raise Refused(400, "", "sample")
            large = found.is_large(file["path"], sample, file["size"])
            modes.append({"path": file["path"], "uploadMode": "lfs" if large else "regular", "shouldIgnore": False})
        return told({"files": modes})

    def _batch(self, body, query, name):
        found, said = self.state.repository(name, self.headers, writes=True), json.loads(body)
        wanted = "application/vnd.git-lfs+json"
        if (self.headers["Accept"], self.headers["Content-Type"]) != (wanted, wanted):
            raise Refused(415)
        if said["operation"] != "upload" or said["hash_algo"] != "sha256" or "basic" not in said["transfers"]:
            raise Refused(422)
        return told({"transfer": "basic", "objects": [self._action(name, found, each) for each in said["objects"]]})

    def _action(self, name, found, each):
        if each["oid"] in found.objects:
            return each
        place = f"{self._own}/storage/{name}/{each['oid']}"
        verify = {"href": f"{self._own}/api/verify/{name}"}
        if not self.state.part or each["size"] <= self.state.part:
            return {**each, "actions": {"upload": {"href": f"{place}?signed=yes"}, "verify": verify}}
        count = -(-each["size"] // self.state.part)
        parts = {f"{number + 1:05}": f"{place}/{number + 1}?signed=yes" for number in range(count)}
        header = {"chunk_size": str(self.state.part), **parts}
        return {**each, "actions": {"upload": {"href": f"{place}/complete", "header": header}, "verify": verify}}

    def _put(self, body, query, name, oid, part=None):
        self._nobody()
        if query != {"signed": "yes"} or not body:
            raise Refused(403 if query != {"signed": "yes"} else 501)
        found = self.state.repositories[name]
        if part:
            found.parts[oid, int(part)] = body
            return 200, {"ETag": f'"{hashlib.md5(body).hexdigest()}"'}, b""
        if hashlib.sha256(body).hexdigest() != oid:
            raise Refused(400, "", "BadDigest")
        found.objects[oid] = body
        return 200, {"ETag": '"x"'}, b""

    def _complete(self, body, query, name, oid):
        found, said = self.state.repositories[name], json.loads(body)
        pieces = [found.parts[oid, part["partNumber"]] for part in said["parts"]]
        tags = [f'"{hashlib.md5(piece).hexdigest()}"' for piece in pieces]
        data = b"".join(pieces)
        if tags != [part["etag"] for part in said["parts"]] or hashlib.sha256(data).hexdigest() != oid:
            raise Refused(400, "", "parts")
        found.objects[oid] = data
        return told({})

    def _verify(self, body, query, name):
        found, said = self.state.repository(name, self.headers, writes=True), json.loads(body)
        if len(found.objects.get(said["oid"], b"")) != said["size"]:
            raise Refused(404, "", "not uploaded")
        return told({})

    def _commit(self, body, query, name):
        found = self.state.repository(name, self.headers, writes=True)
        if self.headers["Content-Type"] != "application/x-ndjson":
            raise Refused(415)
        head, *lines = [json.loads(line) for line in body.splitlines()]
        if head["key"] != "header" or not head["value"]["summary"]:
            raise Refused(400, "", "header")
        parent = head["value"].get("parentCommit")
        if parent is not None and parent != found.at("main")["sha"]:
            raise Refused(412, "", "A commit has happened since. Please refresh and try again.")
        changed = dict(self._change(found, line["key"], line["value"]) for line in lines)
        sha = found.add(changed, head["value"]["summary"])
        return told({"success": True, "commitOid": sha, "commitUrl": f"{self._own}/{name}/commit/{sha}"})

    def _change(self, found, key, value):
        if key == "file":
            data = base64.b64decode(value["content"], validate=True)
            if value["encoding"] != "base64" or len(data) > LARGEST_REGULAR:
                raise Refused(400, "", "file")
            return value["path"], ("text", data)
        if key != "lfsFile" or value["algo"] != "sha256" or value["oid"] not in found.objects:
            raise Refused(400, "", f"{key} {value['path']}: an object is missing")
        return value["path"], ("lfs", value["oid"])

    def _paths(self, body, query, name, revision):
        found = self.state.repository(name, self.headers)
        said = urllib.parse.parse_qs(body.decode())
        if (
            not self.headers["Content-Type"].startswith("application/x-www-form-urlencoded")
            or len(said["paths"]) > 1000
        ):
            raise Refused(400)
        commit, expand = found.at(revision), said.get("expand", ["False"])[0].lower() == "true"
        asked = [path for path in said["paths"] if path in commit["files"]]
        return told([self._entry(found, commit, path, expand) for path in asked])

    def _entry(self, found, commit, path, expand=False):
        kind, what = commit["files"][path]
        data = found.objects[what] if kind == "lfs" else what
        about = {"type": "file", "path": path, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
        if kind == "lfs":
            about["lfs"] = {"oid": what, "size": len(data), "pointerSize": 130}
        return {**about, "lastCommit": commit["by"][path]} if expand else about

    def _tree(self, body, query, name, revision):
        found = self.state.repository(name, self.headers)
        commit, every = found.at(revision), query.get("recursive", "false").lower() == "true"
        folders = sorted({path.split("/")[0] for path in commit["files"] if "/" in path})
        entries = [{"type": "directory", "path": folder, "oid": "0" * 40, "size": 0} for folder in folders]
        entries += [self._entry(found, commit, path) for path in sorted(commit["files"]) if every or "/" not in path]
        start = int(query.get("cursor", 0))
        more = start + self.state.page < len(entries)
        following = {**query, "cursor": str(start + self.state.page)}
        link = f'<{self._own}{self.path.partition("?")[0]}?{urllib.parse.urlencode(following)}>; rel="next"'
        status, headers, data = told(entries[start : start + self.state.page])
        return status, {**headers, **({"Link": link} if more else {})}, data

    def _resolve(self, body, query, name, revision, path):
        found = self.state.repository(name, self.headers)
        commit = found.at(revision)
        if path not in commit["files"]:
            raise Refused(404, "EntryNotFound", "Entry not found")
        kind, what = commit["files"][path]
        data = found.objects[what] if kind == "lfs" else what
        etag = what if kind == "lfs" else hashlib.sha1(data).hexdigest()
        headers = {"X-Repo-Commit": commit["sha"], "X-Linked-Size": str(len(data)), "X-Linked-Etag": f'"{etag}"'}
        if kind == "lfs":
            return (
                302,
                {**headers, "Location": f"{self._own.replace('127.0.0.1', 'localhost')}/cdn/{name}/{what}"},
                b"",
            )
        where = f"/api/resolve-cache/models/{name}/{commit['sha']}/{urllib.parse.quote(path)}"
        return 307, {**headers, "Location": where, "ETag": f'"{etag}"'}, b""

    def _text(self, body, query, name, revision, path):
        data = self.state.repository(name, self.headers).at(revision)["files"][path][1]
        etag = f'"{hashlib.sha1(data).hexdigest()}"'
        return self._part(data, {"X-Repo-Commit": revision, "ETag": etag, "X-Linked-Size": str(len(data))})

    def _cdn(self, body, query, name, oid):
        self._nobody()
        return self._part(self.state.repositories[name].objects[oid], {"ETag": f'"{oid}"'})

    def _part(self, data, headers):
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not asked:
            return 200, headers, data
        end = int(asked[2] or len(data) - 1)
        return (
            206,
            {**headers, "Content-Range": f"bytes {asked[1]}-{end}/{len(data)}"},
            data[int(asked[1]) : end + 1],
        )

    def _nobody(self):
        """Servers of others never hear who we are."""
        if "Authorization" in self.headers:
            raise Refused(400, "", "a token was sent where it must not go")

    @property
    def state(self):
        return self.server.hub

    @property
    def _own(self):
        return f"http://{self.headers['Host']}"

    def _say(self, status, headers, data):
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(OSError):
                self.wfile.write(data)

    def log_message(self, *words):
        pass


def told(document, status=200):
    return status, {"Content-Type": "application/json"}, json.dumps(document).encode()
