import sys

from bench.scale import run

run(sys.argv[1:])
