#!/usr/bin/env python3
"""Writes the onnx package's operator cases, which it builds in memory, to files:

  OUT/NAME/model.onnx
  OUT/NAME/test_data_set_K/input_I.pb, output_I.pb
  OUT/index.tsv      name, operator, kind (direct | expanded), opset, rtol, atol

"Expanded" cases have the operator replaced by its function body. usage: dump_node_cases.py OUT
"""
import pathlib
import sys

from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases

ENCODERS = {
    "map_type": numpy_helper.from_dict,
    "sequence_type": numpy_helper.from_list,
    "optional_type": numpy_helper.from_optional,
}


def encode(value, info):
    if isinstance(value, TensorProto):
        return value
    encoder = ENCODERS.get(info.type.WhichOneof("value"), numpy_helper.from_array)
    return encoder(value, info.name)


def files_of(case):
    """Relative path -> bytes of everything the case consists of."""
    files = {"model.onnx": case.model.SerializeToString()}
    graph = case.model.graph
    for k, (inputs, outputs) in enumerate(case.data_sets):
        for stem, infos, values in (("input", graph.input, inputs), ("output", graph.output, outputs)):
            for i, (info, value) in enumerate(zip(infos, values)):
                path = f"test_data_set_{k}/{stem}_{i}.pb"
                files[path] = encode(value, info).SerializeToString()
    return files


def main(out):
    cases = collect_testcases(None)
    operator_of = {c.name: c.model.graph.node[0].op_type for c in cases if "_expanded" not in c.name}
    rows = ["name\toperator\tkind\topset\trtol\tatol"]
    for case in cases:
        for path, data in files_of(case).items():
            target = out / case.name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        base = case.name.split("_expanded")[0]
        operator = operator_of.get(base, case.model.graph.node[0].op_type)
        kind = "expanded" if "_expanded" in case.name else "direct"
        opsets = ",".join(f"{o.domain or 'ai.onnx'}:{o.version}" for o in case.model.opset_import)
        rows.append(f"{case.name}\t{operator}\t{kind}\t{opsets}\t{case.rtol}\t{case.atol}")
    (out / "index.tsv").write_text("\n".join(rows) + "\n")
    print(len(cases), "operator cases written")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
