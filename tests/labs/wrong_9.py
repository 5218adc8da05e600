"""Typical mistakes of lab 9: (name, edits of the solution, points lost, words of the message)."""
# SPDX-License-Identifier: Apache-2.0
TOOLS = ()


def sheet(*edits):
    return {"formulas.json": list(edits)}


WRONG = [
    ("gradients for each image", sheet(('"31049864"', '"31049864 * batch / 4"')), {"formula dp_bytes_at": 8},
     ["how many images has a gradient?"]),
    ("activations of the whole batch, whatever its pixels", sheet(("240 * batch * size * size", "240 * 128 * 128 * batch")),
     {"formula layers_bytes_at": 8}, ["activations are there for each image and each pixel"]),
    ("gains mixed up", sheet(('"dp_gain": 32.1', '"dp_gain": -24.4'), ('"layers_gain": -24.4', '"layers_gain": 32.1')),
     {"dp_gain": 5, "layers_gain": 5}, ["step 3 has it under speedup %"]),
    ("a place where data parallelism wins", sheet(('"layers_win_size": 64', '"layers_win_size": 128')), {"layers_win": 6},
     ["with 4 images of 128 x 128 layers gain -24.4 % and dp 32.1 %"]),
    ("a pipeline that does not pay", sheet(('"pipeline_pays_size": 128', '"pipeline_pays_size": 64')), {"pipeline_pays": 6},
     ["with 8 images of 64 x 64 pipeline:2 gains -"]),
    ("a batch that is not asked for", sheet(('"layers_win_batch": 4', '"layers_win_batch": 4000000')), {"layers_win": 6},
     ["is not asked for: even, 2 to 32"]),
    ("one machine's weights forgotten", sheet(('"weights_systolic": "1addb4952c00"', '"weights_systolic": null')),
     {"weights_systolic": 4}, ['not answered yet: "weights_systolic" in formulas.json']),
    ("megabytes for bytes", sheet(('"dp_bytes": 31049864', '"dp_bytes": 29.6')), {"dp_bytes": 5}, ["it is bytes_sent of step 3"]),
    ("other predictions than committed", {"answers.json": [('"dp_factor": 1', '"dp_factor": 2')]},
     {"same_weights": 5, "dp_megabytes": 5, "dp_factor": 5, "layers_factor": 5}, ["other predictions than those committed"]),
    ("a wrong answer", {"answers.json": [('"q3": "a"', '"q3": "b"')]}, {"q3": 4}, ["what does the first one do?"]),
]
