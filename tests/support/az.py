"""A stand-in for `az`: it keeps packages in a folder, enforces what the real one wants, and fails when it is told to.

What it wants is what azure-devops 1.0 wants: `az artifacts universal` by its reference, `az devops invoke` by its
source (`azext_devops/dev/team/invoke.py`), and the listing by the REST reference of "Get Packages".

AZ_STATE is the folder. `lies` in it holds lines "WORD TIMES VERB": WORD is what goes wrong with the call VERB.
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
    "artifacts universal publish": {"organization", "project", "scope", "feed", "name", "version", "path"},
    "artifacts universal download": {"organization", "project", "scope", "feed", "name", "version", "path"},
}
ALLOWED = {"artifacts universal download": {"file-filter"}, "artifacts universal publish": {"description"}}
SCOPES = ("organization", "project")
QUERIES = {
    "protocolType",
    "packageNameQuery",
    "includeAllVersions",
    "includeDescription",
    "includeDeleted",
    "$top",
    "$skip",
}
COMMON = {"only-show-errors", "output"}
NAME = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9a-z-]+(\.[0-9a-z-]+)*)?")
OF_THE_SHELL = set('"%!^&|<>')


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
    if options.get("scope", ["project"])[0] not in SCOPES:
        fail(2, f"argument --scope: invalid choice, choose from {SCOPES}")
    if any(OF_THE_SHELL & set(word) for words in options.values() for word in words):
        fail(2, "on Windows az is a batch file, and would not get these words as they are")
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
    name, version, source = (options[key][0] for key in ("name", "version", "path"))
    if not NAME.fullmatch(name) or len(name) > 255 or not VERSION.fullmatch(version) or len(version) > 127:
        fail(1, f"ERROR: {name} {version} is not valid")
    if not any(path.is_file() for path in Path(source).rglob("*")):
        fail(1, "ERROR: the directory is empty or not there")
    place = STATE / "packages" / name / version
    if place.exists():
        fail(1, "ERROR: 409")
    shutil.copytree(source, place / "files")
    (place / "about.json").write_text(json.dumps(about(version, options.get("description", [""])[0])))
    return {"Description": options.get("description", [None])[0], "ManifestId": "0" * 64, "Version": version}


def about(version, description):
    now = datetime.now(UTC).isoformat()
    return {
        "version": version,
        "packageDescription": description,
        "publishDate": now,
        "isListed": True,
        "isLatest": True,
    }


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
    float(options["api-version"][0].replace("-preview", ""))  # as the extension reads it
    if (options["area"][0].lower(), options["resource"][0].lower()) != ("packaging", "packages"):
        fail(1, "ERROR: --resource and --api-version combination is not correct")
    route, query = pairs(options["route-parameters"]), pairs(options["query-parameters"])
    if set(route) != {"project", "feedId"} or set(query) - QUERIES or query["protocolType"] != "UPack":
        fail(1, "ERROR: 400")
    folders = sorted(path for path in STATE.glob("packages/*") if query["packageNameQuery"] in path.name)
    start, most = int(query.get("$skip", 0)), int(query.get("$top", 1000))
    found = [listed(folder, query) for folder in folders[start : start + most]]
    return {"count": len(found), "value": found}


def pairs(words):
    if not all("=" in word for word in words):
        fail(1, "ERROR: it needs to be in format param=value")
    return dict(word.split("=", 1) for word in words)


def listed(folder, query):
    """Descriptions, deleted versions and all but the newest are only told to those who ask."""
    versions = [json.loads(path.read_text()) for path in folder.glob("*/about.json")]
    versions = sorted(versions, key=lambda version: version["publishDate"], reverse=True)
    if query.get("includeDeleted") != "true":
        versions = [version for version in versions if not version.get("isDeleted")]
    if query.get("includeAllVersions") != "true":
        versions = versions[:1]
    if query.get("includeDescription") != "true":
        versions = [{key: value for key, value in each.items() if key != "packageDescription"} for each in versions]
    return {"name": folder.name, "normalizedName": folder.name, "protocolType": "UPack", "versions": versions}


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
