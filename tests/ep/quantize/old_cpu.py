"""Asks the gate about each model and prints its answers. Runs under qemu, which is slow, so it does no more."""

import sys

from modelwright._json import dumps
from modelwright.data import DataSource
from modelwright.stages.validate import Gate, run_validate
from modelwright.vocabulary import Data

reference, data, workdir, *candidates = sys.argv[1:]
print(
    dumps(
        [
            run_validate(path, reference, workdir, Gate(samples=2, precision="w8a8"), DataSource(Data(data)))
            for path in candidates
        ]
    )
)
