"""Build folders as a build writes them, without building."""

import hashlib
import json

from modelwright._output import SEAL, sealed


def file_facts(path):
    data = path.read_bytes()
    return {"name": path.name, "sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}


def write_manifest(folder, parts=("",), inputs=(), links=(), recipe=None):
    """A sealed manifest for the models that lie at `parts`; they must be there."""
    components = [
        {
            "name": part or "model",
            "folder": part,
            "files": [file_facts(path) for path in sorted((folder / part).glob("model.onnx*"))],
            "inputs": list(inputs),
        }
        for part in parts
    ]
    document = {"schema_version": 2, "components": components, "links": list(links), "recipe": recipe or {}}
    (folder / "wright.json").write_bytes(sealed(json.dumps({**document, "seal": SEAL})))


def reseal(folder):
    """The manifest again, for files that a test changed: as if they had been built like that."""
    document = json.loads((folder / "wright.json").read_text())
    for component in document["components"]:
        place = folder / component["folder"]
        component["files"] = [file_facts(place / file["name"]) for file in component["files"]]
    (folder / "wright.json").write_bytes(sealed(json.dumps({**document, "seal": SEAL})))
