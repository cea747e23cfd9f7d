#!/usr/bin/env python3
"""Gives the onnx package's constant-weight architectures random weights and records a reference run.

As shipped every weight of these nets comes from ConstantOfShape, so that every output is 0.001 and a
permutation error would pass. Each such node becomes an initializer: He-scaled for weights, positive for
scales and variances, small for biases. The last linear layer is scaled so that the logits have a standard
deviation of 2 and the softmax stays soft. onnxruntime without graph optimisation gives the output.

  OUT/NET/model.onnx, OUT/NET/test_data_set_0/input_0.pb, output_0.pb

usage: randomise_nets.py OUT NET...
"""
import pathlib
import sys
import zlib

import numpy as np
import onnx
import onnx.backend.test
import onnxruntime
from onnx import helper, numpy_helper

SOURCE = pathlib.Path(onnx.backend.test.__file__).parent / "data" / "light"
LINEAR = ("Conv", "ConvTranspose", "Gemm", "MatMul")
LOGIT_DEVIATION = 2.0


def roles(graph):
    """Tensor name -> weight | scale | variance | bias, seen through Unsqueeze."""
    alias = {n.output[0]: n.input[0] for n in graph.node if n.op_type == "Unsqueeze"}
    found = {}

    def set_role(name, role):
        found.setdefault(alias.get(name, name), role)

    for n in graph.node:
        if n.op_type in LINEAR:
            set_role(n.input[1], "weight")
        elif n.op_type == "BatchNormalization":
            set_role(n.input[1], "scale")
            set_role(n.input[4], "variance")
    for n in graph.node:
        if n.op_type == "Mul":
            for name in n.input:
                set_role(name, "scale")
    return found


def random_weights(net, name, shape, role):
    rng = np.random.default_rng(zlib.crc32(f"{net}/{name}".encode()))
    if role == "weight":
        fan_in = max(1, int(np.prod(shape[1:])))
        values = rng.standard_normal(shape) * np.sqrt(2.0 / fan_in)
    elif role == "scale":
        values = rng.uniform(0.3, 0.8, shape)
    elif role == "variance":
        values = rng.uniform(0.5, 1.5, shape)
    else:
        values = rng.standard_normal(shape) * 0.02
    return numpy_helper.from_array(values.astype(np.float32), name)


def randomise(net, model):
    graph = model.graph
    shapes = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    role_of = roles(graph)
    kept, weights = [], []
    for n in graph.node:
        if n.op_type == "ConstantOfShape" and n.input[0] in shapes:
            shape = [int(d) for d in shapes[n.input[0]]]
            weights.append(random_weights(net, n.output[0], shape, role_of.get(n.output[0])))
        else:
            kept.append(n)
    used = {name for n in kept for name in n.input}
    left = [i for i in graph.initializer if i.name in used]
    inputs = [i for i in graph.input if i.name not in shapes]
    for field, values in ((graph.node, kept), (graph.initializer, left + weights), (graph.input, inputs)):
        del field[:]
        field.extend(values)
    del graph.value_info[:]
    model.ir_version = max(model.ir_version, 4)  # since then initializers need not be inputs


def session(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def soften(model, feed):
    """Scales the last linear layer's weights so that the logits spread by LOGIT_DEVIATION."""
    graph = model.graph
    logits = [n for n in graph.node if n.op_type == "Softmax"][-1].input[0]
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    probe.graph.output.append(helper.make_empty_tensor_value_info(logits))
    deviation = float(session(probe).run([logits], feed)[0].std())
    producer = {o: n for n in graph.node for o in n.output}
    layer = producer[logits]
    while layer.op_type not in LINEAR:
        layer = producer[layer.input[0]]
    for i in graph.initializer:
        if i.name in layer.input[1:]:
            scaled = numpy_helper.to_array(i) * np.float32(LOGIT_DEVIATION / deviation)
            i.CopyFrom(numpy_helper.from_array(scaled, i.name))


def write_net(out, net):
    model = onnx.load(SOURCE / f"light_{net}.onnx")
    randomise(net, model)
    info = model.graph.input[0]
    shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    if any(n.op_type == "Softmax" for n in model.graph.node):
        soften(model, {info.name: x})
    onnx.checker.check_model(model)
    y = session(model).run(None, {info.name: x})[0]
    if not np.isfinite(y).all() or y.std() == 0:
        raise SystemExit(f"{net}: the reference output is not finite or constant")
    data = out / net / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, out / net / "model.onnx")
    for stem, name, value in (("input", info.name, x), ("output", model.graph.output[0].name, y)):
        (data / f"{stem}_0.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())
    print(f"{net}: output deviation {y.std():.3g}")


if __name__ == "__main__":
    for name in sys.argv[2:]:
        write_net(pathlib.Path(sys.argv[1]), name)
