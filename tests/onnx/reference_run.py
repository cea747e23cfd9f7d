#!/usr/bin/env python3
"""Runs a model with one input in onnxruntime without graph optimisation and keeps model, input and output:

  OUT/model.onnx, OUT/test_data_set_0/input_0.pb, output_0.pb

usage: reference_run.py OUT MODEL SHAPE      SHAPE as 1x3x48x192; the input is a seeded uniform in [-1, 1)
"""
import pathlib
import shutil
import sys

import numpy as np
import onnxruntime
from onnx import numpy_helper


def main(out, model, shape):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options)
    name = session.get_inputs()[0].name
    x = np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)
    y = session.run(None, {name: x})[0]
    data = out / "test_data_set_0"
    data.mkdir(parents=True)
    shutil.copy(model, out / "model.onnx")
    output = session.get_outputs()[0].name
    for stem, tensor_name, value in (("input", name, x), ("output", output, y)):
        (data / f"{stem}_0.pb").write_bytes(numpy_helper.from_array(value, tensor_name).SerializeToString())


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), [int(d) for d in sys.argv[3].split("x")])
