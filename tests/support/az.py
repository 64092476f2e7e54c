"""A stand-in for `az`: it keeps packages in a folder, enforces what the real one wants, and fails when it is told to.

AZ_STATE is the folder. `lies` in it holds lines "WORD VERB [TIMES]": WORD is what goes wrong with the call VERB.
"""

import fnmatch
import json
import os
import re
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

STATE = Path(os.environ["AZ_STATE"])
WANTED = {
    "extension show": {"name"},
    "account get-access-token": {"resource"},
    "devops invoke": {"organization", "area", "resource", "route-parameters", "query-parameters", "api-version"},
    "artifacts universal publish": {
        *("organization", "project", "scope", "feed", "name", "version", "description", "path"),
    },
    "artifacts universal download": {"organization", "project", "scope", "feed", "name", "version", "path"},
}
ALLOWED = {"artifacts universal download": {"file-filter"}}
COMMON = {"only-show-errors", "output"}
NAME = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?")
VERSION = re.compile(r"\d+\.\d+\.\d+(-[0-9a-z.-]+)?")


def main(words):
    verb, options = parsed(words)
    with (STATE / "calls").open("a") as log:
        log.write(verb + "\n")
    lie = told(verb)
    if lie == "denied":
        fail(1, "ERROR: TF400813: az login")
    if lie == "broken":
        fail(1, "ERROR: connection reset, HTTP 500")
    answer = DO[verb](options)
    if lie == "hang":
        time.sleep(60)
    if lie == "lost":
        fail(1, "ERROR: the operation timed out")
    if lie == "garbled":
        answer = "<html>"
    print(answer if isinstance(answer, str) else json.dumps(answer))


def parsed(words):
    verb = " ".join(words[: next(n for n, word in enumerate(words) if word.startswith("--"))])
    options, name = {}, None
    for word in words[len(verb.split()) :]:
        if word.startswith("--"):
            name = word[2:]
            options[name] = []
        else:
            options[name].append(word)
    if verb not in WANTED:
        fail(2, f"'{verb}' is misspelled or not recognized by the system.")
    missing = WANTED[verb] - set(options)
    unknown = set(options) - WANTED[verb] - COMMON - ALLOWED.get(verb, set())
    if missing or unknown:
        fail(2, f"the following arguments are required: {missing}, or not known: {unknown}")
    return verb, options


def told(verb):
    path = STATE / "lies"
    lines = [line.split(maxsplit=2) for line in path.read_text().splitlines()] if path.exists() else []
    for line in lines:
        if int(line[1]) and fnmatch.fnmatch(verb, line[2]):
            line[1] = str(int(line[1]) - 1)
            path.write_text("\n".join(map(" ".join, lines)))
            return line[0]
    return None


def publish(options):
    name, version = options["name"][0], options["version"][0]
    if not NAME.fullmatch(name) or len(name) > 255 or not VERSION.fullmatch(version) or len(version) > 127:
        fail(1, f"ERROR: {name} {version} is not valid")
    place = STATE / "packages" / name / version
    deleted = (STATE / "deleted").exists()
    if place.exists() or deleted:
        fail(1, "ERROR: 409")
    shutil.copytree(options["path"][0], place / "files")
    (place / "about.json").write_text(json.dumps(about(version, options["description"][0])))
    return {"Version": version}


def about(version, description):
    now = datetime.now(UTC).isoformat()
    return {"version": version, "packageDescription": description, "publishDate": now, "isListed": True}


def download(options):
    place = STATE / "packages" / options["name"][0] / options["version"][0] / "files"
    if not place.is_dir():
        fail(1, "ERROR: not found")
    wanted = options.get("file-filter", ["*"])[0]
    for path in place.rglob("*"):
        name = path.relative_to(place).as_posix()
        if path.is_file() and fnmatch.fnmatch(name, wanted):
            target = Path(options["path"][0], name)
            target.parent.mkdir(parents=True, exist_ok=True)
            data = path.read_bytes()
            target.write_bytes(data[:-1] + b"!" if (STATE / "wrong").exists() and name == "model.onnx" else data)
    return {}


def invoke(options):
    query = dict(word.split("=", 1) for word in options["query-parameters"])
    folders = sorted(path for path in STATE.glob("packages/*") if query["packageNameQuery"] in path.name)
    start, most = int(query["$skip"]), int(query["$top"])
    return {"value": [listed(folder) for folder in folders[start : start + most]]}


def listed(folder):
    versions = [json.loads(path.read_text()) for path in folder.glob("*/about.json")]
    return {"name": folder.name, "protocolType": "UPack", "versions": versions}


def fail(code, text):
    print(text, file=sys.stderr)
    raise SystemExit(code)


DO = {
    "extension show": lambda options: {"name": "azure-devops"},
    "account get-access-token": lambda options: {"accessToken": "x"},
    "devops invoke": invoke,
    "artifacts universal publish": publish,
    "artifacts universal download": download,
}

if __name__ == "__main__":
    main(sys.argv[1:])
