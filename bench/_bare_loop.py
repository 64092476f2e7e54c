"""Two models in turns, by onnxruntime and numpy alone: BASE CHAMPION SAMPLE.npz SETTINGS-OF-THE-CHAMPION (JSON).

Fresh sessions for each round, the order drawn by a coin; a round's ratio is that of the medians of its runs. Prints the
median ratio over the rounds with a 95 % interval of the sign test.
"""

import json
import random
import statistics
import sys
import time

import numpy as np
import onnxruntime as ort

ROUNDS, ROUND_S, WARM = 15, 1.0, 5
LEVELS = {
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
}


def session(path, settings):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    for key, value in settings.items():
        if key == "threads":
            options.intra_op_num_threads = int(value)
        elif key == "level":
            options.graph_optimization_level = LEVELS[value]
        elif key.startswith("config."):
            options.add_session_config_entry(key.removeprefix("config."), value)
        else:
            raise SystemExit(f"the bare loop does not know the setting {key}")
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def median_s(opened, feed):
    times, end = [], time.perf_counter() + ROUND_S
    for _ in range(WARM):
        opened.run(None, feed)
    while time.perf_counter() < end or len(times) < 5:
        began = time.perf_counter()
        opened.run(None, feed)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main(base, champion, sample, settings):
    held = np.load(sample)
    ratios = []
    for _ in range(ROUNDS):
        arms = [(base, {}), (champion, json.loads(settings))]
        swapped = random.random() < 0.5
        took = []
        for path, own in reversed(arms) if swapped else arms:
            opened = session(path, own)
            wanted = [value.name for value in opened.get_inputs()]
            took.append(median_s(opened, {name: held[name] for name in wanted}))
            del opened
        before, after = reversed(took) if swapped else took
        ratios.append(before / after)
    ratios.sort()
    # Ranks 4 and 12 of 15 hold the median with 96.5 %.
    low, high = ratios[3], ratios[11]
    print(json.dumps({"ratio": statistics.median(ratios), "low": low, "high": high, "rounds": ROUNDS}))


main(*sys.argv[1:])
