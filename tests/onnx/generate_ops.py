#!/usr/bin/env python3
"""Writes tests/onnx/ops.pack: one small ONNX model per case with inputs and what onnxruntime answers.

    pip install onnx onnxruntime numpy
    tests/onnx/generate_ops.py tests/onnx/ops.pack

A case is one node (or a short list of nodes) at one opset. Names of axes in `dims` make them symbolic.
Format, little-endian: "SMGOPS1\\n", u32 count, then per case: text name, u32 + model bytes, u32 + inputs,
u32 + outputs. A text is u32 + bytes; a tensor is text name, text type, u32 rank, i64 dims, raw data. A case
whose name starts with "refused/" has no outputs: import must give a status, and its text names the node.
"""
import struct
import sys

import numpy as np
import onnx
import onnx.reference
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NotImplementedException
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(7)
cases = []
TYPES = {"float32": "f32", "float16": "f16", "int32": "i32", "int64": "i64", "bool": "bool"}
F32, I64 = np.float32, np.int64


def f(*dims, scale=1.0, shift=0.0):
    return (random.standard_normal(dims) * scale + shift).astype(F32)


def positive(*dims):
    return (random.random(dims) + 0.25).astype(F32)


def ints(low, high, *dims, kind=I64):
    return random.integers(low, high, dims).astype(kind)


def flags(*dims):
    return random.random(dims) < 0.5


def vector(*values, kind=I64):
    return np.array(values, kind)


class Given:
    """An input: `dims` names its symbolic axes; fixed makes it an initialiser."""

    def __init__(self, value, dims=None, fixed=False):
        self.value, self.dims, self.fixed = np.asarray(value), dims, fixed


def fixed(value):
    return Given(value, fixed=True)


def named(value, *dims):
    return Given(value, dims)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, name=f"{op}_to_{outputs[0]}", **attributes)


def model_of(nodes, given, outputs, opset):
    inputs, constants = [], []
    for name, item in given.items():
        if item.fixed:
            constants.append(numpy_helper.from_array(item.value, name))
            continue
        kind = helper.np_dtype_to_tensor_dtype(item.value.dtype)
        dims = [d if d is not None else n for d, n in zip(item.dims or item.value.shape, item.value.shape)]
        inputs.append(helper.make_tensor_value_info(name, kind, dims))
    made = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs]
    graph = helper.make_graph(nodes, "case", inputs, made, constants)
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in sorted({n.domain for n in nodes} - {""})]
    return helper.make_model(graph, opset_imports=imports, ir_version=8 if opset < 19 else 10)


def options():
    o = onnxruntime.SessionOptions()
    o.log_severity_level = 4
    o.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return o


def answers(model, names, feeds):
    """onnxruntime's, or the reference evaluator's of onnx where that lacks a kernel for the types."""
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options()).run(names, feeds)
    except NotImplementedException:
        return onnx.reference.ReferenceEvaluator(model).run(names, feeds)


def add_nodes(name, nodes, given, opset, count=1, expected=None, kinds=None):
    names = [f"y{i}" for i in range(count)]
    given = {k: v if isinstance(v, Given) else Given(v) for k, v in given.items()}
    feeds = {k: v.value for k, v in given.items() if not v.fixed}
    if expected is None:
        probe = model_of(nodes, given, [(n, TensorProto.UNDEFINED) for n in names], opset)
        inferred = onnx.shape_inference.infer_shapes(probe)
        kinds = [o.type.tensor_type.elem_type or TensorProto.FLOAT for o in inferred.graph.output]
        model = model_of(nodes, given, list(zip(names, kinds)), opset)
        expected = answers(model, names, feeds)
    else:
        kinds = kinds or [helper.np_dtype_to_tensor_dtype(np.asarray(e).dtype) for e in expected]
        model = model_of(nodes, given, list(zip(names, kinds)), opset)
    used = {i.name for i in model.graph.input}
    tensors = [(k, v) for k, v in feeds.items() if k in used]
    cases.append((name, model.SerializeToString(), tensors, list(zip(names, expected))))


def case(op, *inputs, opset=18, count=1, label="", expected=None, **attributes):
    """One node; an input None is left out."""
    given, names = {}, []
    for i, item in enumerate(inputs):
        names.append("" if item is None else f"x{i}")
        if item is not None:
            given[f"x{i}"] = item
    outputs = [f"y{i}" for i in range(count)]
    name = f"{op}/{opset}/{label or len(cases)}"
    add_nodes(name, [node(op, names, outputs, **attributes)], given, opset, count, expected)


def refused(op, *inputs, opset=18, count=1, label="", **attributes):
    given = {f"x{i}": v if isinstance(v, Given) else Given(v) for i, v in enumerate(inputs) if v is not None}
    names = ["" if v is None else f"x{i}" for i, v in enumerate(inputs)]
    outputs = [f"y{i}" for i in range(count)]
    model = model_of([node(op, names, outputs, **attributes)], given, [(n, TensorProto.FLOAT) for n in outputs], opset)
    cases.append((f"refused/{op}/{opset}/{label}", model.SerializeToString(), [], []))


# ---- elementwise ---------------------------------------------------------------------------------


def elementwise():
    edge = vector(-np.inf, -3.5, -2.5, -1.5, -0.5, 0.0, 0.5, 1.5, 2.5, 3.5, np.inf, np.nan, kind=F32)
    for op in "Abs Neg Floor Ceil Round Sign Relu Sigmoid Tanh Exp Softplus Softsign Identity".split():
        case(op, f(3, 5), label="plain")
        case(op, edge[1:-2] if op == "Softsign" else edge[:-1], label="edge")
    for op in "Erf Sin Cos Sinh Cosh".split():
        case(op, f(3, 5), label="plain")
    case("Tan", f(3, 5, scale=0.4), label="plain")
    for op in "Sqrt Log Reciprocal".split():
        case(op, positive(3, 5), label="plain")
    case("IsNaN", edge)
    case("IsInf", edge)
    case("IsInf", edge, detect_negative=0, label="positive")
    case("IsInf", edge, detect_positive=0, label="negative")
    case("IsInf", edge, detect_positive=0, detect_negative=0, opset=20, label="neither")
    case("Neg", ints(-9, 9, 7), label="i64")
    case("Abs", ints(-9, 9, 7, kind=np.int32), label="i32")
    case("Sign", ints(-2, 3, 9), label="i64")
    case("Not", flags(6))
    for op in "Add Sub Mul Div".split():
        case(op, f(2, 3, 4), f(2, 3, 4), opset=14, label="same")
        case(op, f(2, 3, 4), f(3, 1, shift=3.0), opset=13, label="broadcast")
        case(op, named(f(2, 3), "b", None), f(shift=2.0), opset=14, label="scalar")
        case(op, named(f(4, 1, 5), "b", None, "s"), named(f(3, 1), None, None), opset=14, label="symbols")
    for op in "Add Sub Mul".split():
        case(op, ints(-9, 9, 4, 3), ints(-9, 9, 3), opset=14, label="i64")
    case("Div", vector(-7, 7, -7, 7, 9, -9), vector(2, -2, -2, 2, 3, 4), opset=14, label="truncates")
    case("Div", vector(-7, 7, 8, kind=np.int32), vector(2, 2, 4, kind=np.int32), opset=14, label="i32")
    case("Mod", vector(-7, 7, -7, 7, 6), vector(3, -3, -3, 3, 3), label="sign of divisor")
    case("Mod", vector(-7, 7, -7, 7, 6), vector(3, -3, -3, 3, 3), fmod=1, label="sign of dividend")
    case("Mod", vector(-7.5, 7.5, -7.25, 7, 6, kind=F32), vector(3, -3, -3, 3, 2.5, kind=F32), fmod=1, label="floats")
    case("Pow", positive(3, 4), f(3, 4), opset=15)
    for power in (0.0, 0.5, 1.0, 2.0, 3.0, -1.0, -2.0, 4.0, 0.25):
        case("Pow", positive(3, 4), fixed(F32(power)), opset=15, label=f"to {power}")
    case("Pow", f(3, 4), fixed(F32(2)), opset=13, label="negative base 2")
    case("Pow", f(3, 4), fixed(F32(3)), opset=13, label="negative base 3")
    case("Pow", f(3, 4), fixed(I64(2)), opset=15, label="integer power")
    case("Pow", f(3, 4), fixed(vector(1, 2, 3, 4)), opset=15, label="integer powers")
    case("Pow", ints(-5, 6, 6), fixed(I64(3)), opset=15, label="integers")
    case("Pow", ints(0, 6, 6), ints(0, 4, 6), opset=15, label="integers by integers")
    for op in "Max Min Sum Mean".split():
        case(op, f(2, 3), label="one", opset=13)
        case(op, f(2, 3), f(3), label="two", opset=13)
        case(op, f(2, 3), f(2, 1), f(1, 3), f(1), label="four", opset=13)
    case("Max", vector(np.nan, 1, np.nan, 2, kind=F32), vector(1, np.nan, np.nan, 3, kind=F32), opset=13, label="nan")
    case("Min", vector(np.nan, 1, np.nan, 2, kind=F32), vector(1, np.nan, np.nan, 3, kind=F32), opset=13, label="nan")
    case("Max", ints(-9, 9, 5), ints(-9, 9, 5), opset=13, label="i64")
    for op in "Greater Less GreaterOrEqual LessOrEqual Equal".split():
        case(op, ints(0, 4, 3, 4).astype(F32), ints(0, 4, 4).astype(F32), opset=16)
        case(op, ints(0, 4, 3, 1), ints(0, 4, 4), opset=16, label="i64")
    case("Equal", flags(5), flags(5), opset=13, label="bool")
    case("Greater", vector(np.nan, 1, kind=F32), vector(1, np.nan, kind=F32), opset=13, label="nan")
    for op in "And Or Xor".split():
        case(op, flags(3, 4), flags(4))
    case("Where", flags(3, 1), f(3, 4), f(4))
    case("Where", named(flags(3, 4), "b", "s"), f(), fixed(F32(-np.inf)), label="scalars")
    case("Where", flags(4), ints(0, 9, 4), ints(0, 9, 2, 1), label="i64")
    case("Where", flags(4), flags(4), flags(2, 1), label="bool")
    case("Clip", f(3, 4), fixed(F32(-0.5)), fixed(F32(0.5)))
    case("Clip", f(3, 4), fixed(F32(-0.5)), label="low")
    case("Clip", f(3, 4), None, fixed(F32(0.5)), label="high")
    case("Clip", f(3, 4), label="neither")
    case("Clip", f(3, 4), F32(-0.5), F32(0.25), label="inputs")
    case("Clip", ints(-9, 9, 6), fixed(I64(-2)), fixed(I64(5)), label="i64")
    for kind, code in (("i64", TensorProto.INT64), ("i32", TensorProto.INT32), ("bool", TensorProto.BOOL)):
        case("Cast", vector(-2.7, -0.5, 0.0, 0.3, 1.0, 2.9, kind=F32), to=code, opset=13, label=f"f32 to {kind}")
    case("Cast", ints(-5, 5, 4), to=TensorProto.FLOAT, opset=13, label="i64 to f32")
    case("Cast", ints(-2, 2, 6), to=TensorProto.BOOL, opset=13, label="i64 to bool")
    case("Cast", flags(6), to=TensorProto.FLOAT, opset=13, label="bool to f32")
    case("Cast", flags(6), to=TensorProto.INT64, opset=13, label="bool to i64")
    case("Cast", f(6), to=TensorProto.FLOAT16, opset=13, label="f32 to f16")
    case("Cast", f(6).astype(np.float16), to=TensorProto.FLOAT, opset=13, label="f16 to f32")
    case("CastLike", ints(-5, 5, 4), fixed(F32(0)), opset=15)
    chain = [node("Cast", ["x"], ["a"], to=TensorProto.UINT8), node("Cast", ["a"], ["y0"], to=TensorProto.FLOAT)]
    add_nodes("Cast/13/through u8", chain, {"x": vector(0, 1, 200, 255)}, 13)
    chain = [node("Cast", ["x"], ["a"], to=TensorProto.DOUBLE), node("Cast", ["a"], ["y0"], to=TensorProto.FLOAT)]
    add_nodes("Cast/13/through f64", chain, {"x": f(5)}, 13)
    case("Add", f(4).astype(np.float16), f(4).astype(np.float16), opset=14, label="f16")


def activations():
    x = np.concatenate([f(3, 6, scale=3.0), vector(0, -0.0, 3, -3, 6, -6, kind=F32)[None]])
    case("LeakyRelu", x, opset=16)
    case("LeakyRelu", x, alpha=0.2, opset=11)
    case("PRelu", x, f(6), opset=16)
    case("PRelu", named(f(2, 3, 4), "b", None, None), fixed(f(3, 1)), opset=11, label="channels")
    for op in "Elu Celu Selu ThresholdedRelu HardSigmoid".split():
        case(op, x, opset=14)
        if op != "Selu":
            case(op, x, alpha=0.7, opset=14)
    case("Selu", x, alpha=1.5, gamma=1.2, opset=11)
    case("HardSigmoid", x, alpha=0.3, beta=0.4, opset=11)
    case("HardSwish", x, opset=14)
    case("Mish", x, opset=18)
    case("Gelu", x, opset=20)
    case("Gelu", x, approximate="tanh", opset=20)
    case("Shrink", x, lambd=0.7, bias=0.2, opset=11)
    case("Dropout", x, opset=11, label="attribute")
    case("Dropout", x, fixed(F32(0.3)), opset=13, label="ratio")
    case("Dropout", x, fixed(F32(0.3)), fixed(np.bool_(False)), opset=13, count=2, label="mask")
    refused("NonZero", f(4), label="of values")
    refused("NonZero", f(2, 3), label="of values of two axes")
    refused("Dropout", x, fixed(F32(0.3)), fixed(np.bool_(True)), opset=13, label="training")
    for opset, axes in ((11, (0, 1, 2, -1)), (13, (0, 1, 2, -1))):
        for op in "Softmax LogSoftmax Hardmax".split():
            for axis in axes:
                case(op, named(f(2, 3, 4, scale=2.0), "b", None, "s"), axis=axis, opset=opset, label=f"axis {axis}")
            case(op, f(2, 3, 4), opset=opset, label="default")
    case("Softmax", vector(-np.inf, 0, 1, kind=F32)[None], opset=13, label="infinite")


# ---- reductions ----------------------------------------------------------------------------------


def reductions():
    every = "Sum Mean Max Min Prod L1 L2 SumSquare LogSum LogSumExp".split()
    for name in every:
        op, x = "Reduce" + name, positive(2, 3, 4) if name == "LogSum" else f(2, 3, 4)
        case(op, named(x, "b", None, "s"), axes=[1], opset=11, label="attribute")
        case(op, x, axes=[-1, 0], keepdims=0, opset=11, label="two, dropped")
        case(op, named(x, "b", "s", None), opset=11, label="all")
        newer = 13 if name == "Sum" else 18
        case(op, named(x, "b", "s", None), fixed(vector(1, 2)), opset=newer, label="input")
        case(op, named(x, "b", "s", None), fixed(vector(-2)), keepdims=0, opset=newer, label="input, dropped")
        case(op, x, None, keepdims=0, opset=newer, label="all, dropped")
        case(op, x, fixed(np.zeros(0, I64)), noop_with_empty_axes=1, opset=newer, label="no axes")
        case(op, x, noop_with_empty_axes=0, opset=newer, label="no axes, all")
    case("ReduceMean", named(f(2, 3, 4, 5), "b", None, "h", "w"), fixed(vector(2, 3)), opset=18, label="two symbols")
    case("ReduceMean", f(2, 3, 4, 5), fixed(vector(1, 3)), opset=18, label="apart")
    case("ReduceSum", ints(-9, 9, 3, 4), fixed(vector(1)), opset=13, label="i64")
    case("ReduceMax", ints(-9, 9, 3, 4), fixed(vector(1)), opset=18, label="i64")
    case("ReduceMin", ints(-9, 9, 3, 4, kind=np.int32), fixed(vector(0)), opset=18, label="i32")
    case("ReduceProd", ints(1, 4, 3, 4), fixed(vector(0)), opset=18, label="i64")
    case("ReduceMax", flags(3, 4), fixed(vector(1)), opset=20, label="bool")
    case("ReduceMin", flags(3, 4), fixed(vector(1)), opset=20, label="bool")
    case("ReduceLogSumExp", vector(-1000, 1000, 999, kind=F32), fixed(vector(0)), opset=18, label="large")
    for op in ("ArgMax", "ArgMin"):
        x = ints(0, 4, 3, 5, 4).astype(F32)
        for axis in (0, 1, -1):
            for keep in (0, 1):
                case(op, named(x, "b", "s", None), axis=axis, keepdims=keep, opset=13, label=f"axis {axis} keep {keep}")
            case(op, x, axis=axis, select_last_index=1, opset=13, label=f"axis {axis} last")
        case(op, x, opset=11, label="default")
        case(op, ints(0, 4, 3, 5, kind=np.int32), axis=1, opset=13, label="i32")
    for exclusive in (0, 1):
        for reverse in (0, 1):
            for axis in (0, 1, -1):
                case("CumSum", named(f(3, 5, 2), "b", "s", None), fixed(I64(axis)), exclusive=exclusive, reverse=reverse,
                     opset=14, label=f"{axis} {exclusive} {reverse}")
    case("CumSum", ints(-4, 5, 2, 6), fixed(vector(1)), opset=14, label="i64")
    case("CumSum", named(ints(-4, 5, 6, kind=np.int32), "s"), fixed(np.int32(0)), opset=11, label="i32")
    for inverse in (0, 1):
        x = named(f(3, 7, 6, 2), "b", None, None, None)
        case("DFT", x, None, fixed(I64(2)), inverse=inverse, opset=20, label=f"complex, inverse {inverse}")
        case("DFT", x, fixed(I64(5)), fixed(I64(-3)), inverse=inverse, opset=20, label=f"cut off, inverse {inverse}")
        case("DFT", x, fixed(I64(9)), axis=2, inverse=inverse, opset=17, label=f"filled up, inverse {inverse}")
    case("DFT", named(f(2, 8, 1), "b", None, None), onesided=1, opset=17, label="one side")
    case("DFT", named(f(2, 3, 9, 1), "b", "s", None, None), opset=20, label="real")
    refused("DFT", named(f(2, 8, 2), "b", "s", None), opset=20, label="of any length")


# ---- shapes --------------------------------------------------------------------------------------


def shapes():
    x = named(f(2, 3, 4), "b", None, "s")
    case("Reshape", x, fixed(vector(0, -1)), opset=14)
    case("Reshape", x, fixed(vector(-1)), opset=14, label="flat")
    case("Reshape", x, fixed(vector(0, 3, 1, -1)), opset=14, label="one more")
    case("Reshape", named(f(2, 6, 8), "b", "s", None), fixed(vector(0, 0, 2, 4)), opset=14, label="heads")
    case("Reshape", f(2, 6, 8), fixed(vector(4, -1, 3)), opset=14, label="uneven")
    case("Reshape", f(2, 6, 8), fixed(vector(96)), opset=14, allowzero=1, label="allow zero")
    case("Reshape", f(1), fixed(np.zeros(0, I64)), opset=14, label="scalar")
    for axis in (0, 1, 2, 3, -1):
        case("Flatten", x, axis=axis, opset=13, label=f"axis {axis}")
    case("Squeeze", f(1, 3, 1, 4), fixed(vector(0, 2)), opset=13)
    case("Squeeze", f(1, 3, 1, 4), fixed(vector(-2)), opset=13)
    case("Squeeze", f(1, 3, 1, 4), opset=13, label="all")
    case("Squeeze", f(1, 3, 1, 4), axes=[0], opset=11, label="attribute")
    case("Unsqueeze", x, fixed(vector(0, 4)), opset=13)
    case("Unsqueeze", x, fixed(vector(-1)), opset=13)
    case("Unsqueeze", x, axes=[1, 2], opset=11, label="attribute")
    case("Transpose", x, opset=13)
    case("Transpose", x, perm=[0, 2, 1], opset=13, label="last two")
    case("Transpose", f(2, 3, 4, 5), perm=[2, 0, 3, 1], opset=13, label="four")
    case("Expand", named(f(3, 1), None, None), fixed(vector(2, 1, 4)), opset=13)
    case("Expand", f(3, 4), fixed(vector(1)), opset=13, label="smaller")
    case("Expand", f(), fixed(vector(2, 2)), opset=13, label="scalar")
    case("Tile", x, fixed(vector(1, 2, 3)), opset=13)
    case("Tile", named(f(2, 3), "b", None), fixed(vector(2, 1)), opset=13, label="symbol")
    full = f(4, 5, 6)
    for label, starts, ends, axes, steps in (
            ("plain", (1, 0), (3, 4), (0, 2), None), ("steps", (0, 1), (4, 6), (0, 2), (2, 3)),
            ("negative starts", (-2,), (-1,), (1,), None), ("reverse", (-1,), (-(2**63),), (1,), (-1,)),
            ("reverse steps", (4, 10), (0, -7), (1, 2), (-2, -1)), ("clamped", (-100, 2), (100, 2**63 - 1), (0, 1), None),
            ("negative axes", (1,), (3,), (-1,), (1,))):
        extra = [] if steps is None else [fixed(vector(*steps))]
        case("Slice", full, fixed(vector(*starts)), fixed(vector(*ends)), fixed(vector(*axes)), *extra, opset=13, label=label)
    case("Slice", full, fixed(vector(1, 2, 0)), fixed(vector(2, 4, 6)), opset=13, label="no axes")
    case("Slice", x, fixed(vector(1)), fixed(vector(2**63 - 1)), fixed(vector(2)), opset=13, label="symbol from 1")
    case("Slice", x, fixed(vector(0)), fixed(vector(-1)), fixed(vector(2)), opset=13, label="symbol to -1")
    case("Slice", x, fixed(vector(-1)), fixed(vector(2**63 - 1)), fixed(vector(2)), opset=13, label="symbol last")
    case("Slice", x, fixed(vector(-1)), fixed(vector(-(2**63))), fixed(vector(2)), fixed(vector(-1)), opset=13, label="symbol reversed")
    case("Split", f(2, 6), count=3, axis=1, opset=11, label="equal")
    case("Split", f(2, 6), count=2, axis=-1, split=[2, 4], opset=11, label="attribute")
    case("Split", f(6, 2), fixed(vector(1, 2, 3)), count=3, opset=13, label="input")
    case("Split", named(f(3, 6), "b", None), count=2, axis=1, num_outputs=2, opset=18, label="number")
    case("Split", f(7, 2), count=3, axis=0, num_outputs=3, opset=18, label="uneven")
    case("Concat", f(2, 3), f(2, 1), f(2, 4), axis=1, opset=13)
    case("Concat", f(2, 3), axis=0, opset=13, label="one")
    case("Concat", named(f(2, 3), "b", None), named(f(4, 3), "c", None), axis=0, opset=13, label="symbols")
    case("Concat", ints(0, 9, 2, 1), ints(0, 9, 2, 2), axis=-1, opset=13, label="i64")
    case("Concat", flags(2, 1), flags(2, 2), axis=-1, opset=13, label="bool")
    case("Concat", named(f(2, 1, 4), "b", None, None), named(f(2, 5, 4), "b", "s", None), axis=1, opset=13, label="class token")
    pads = vector(0, 1, 2, 0, 2, 1)
    for mode in ("constant", "reflect", "edge"):
        case("Pad", f(2, 4, 5), fixed(pads), mode=mode, opset=13)
    case("Pad", f(2, 4, 5), fixed(pads), mode="wrap", opset=19)
    case("Pad", f(2, 4, 5), fixed(pads), fixed(F32(1.5)), opset=13, label="value")
    case("Pad", f(2, 4, 5), fixed(vector(0, -1, 2, 0, 1, -2)), opset=13, label="negative")
    case("Pad", named(f(2, 4), "b", "s"), fixed(vector(1, 2)), None, fixed(vector(-1)), opset=18, label="axes")
    case("Pad", ints(0, 9, 4), fixed(vector(2, 1)), fixed(I64(-1)), opset=13, label="i64")
    case("DepthToSpace", f(2, 8, 2, 3), blocksize=2, opset=13)
    case("DepthToSpace", f(2, 8, 2, 3), blocksize=2, mode="CRD", opset=13)
    case("SpaceToDepth", f(2, 2, 4, 6), blocksize=2, opset=13)
    for op, upper in (("upper", 1), ("lower", 0)):
        case("Trilu", named(f(2, 4, 5), "b", None, None), upper=upper, opset=14, label=op)
        for k in (-1, 2):
            case("Trilu", named(f(4, 5), "s", None), fixed(I64(k)), upper=upper, opset=14, label=f"{op} {k}")
    case("Trilu", ints(0, 9, 4, 4), opset=14, label="i64")
    case("Range", fixed(I64(2)), fixed(I64(11)), fixed(I64(3)), opset=11)
    case("Range", fixed(I64(5)), fixed(I64(-3)), fixed(I64(-2)), opset=11, label="down")
    case("Range", fixed(F32(0.5)), fixed(F32(3.1)), fixed(F32(0.5)), opset=11, label="floats")
    case("ConstantOfShape", fixed(vector(2, 3)), opset=11)
    case("ConstantOfShape", fixed(vector(4)), value=numpy_helper.from_array(vector(7)), opset=11, label="i64")
    case("EyeLike", f(3, 4), opset=11)
    case("EyeLike", f(3, 4), k=1, dtype=TensorProto.INT64, opset=11, label="shifted")


def shape_arithmetic():
    """Shapes that are computed, as exporters write them."""
    x = named(f(2, 3, 8), "batch", "sequence", None)
    half = {"two": fixed(vector(2)), "four": fixed(vector(4)), "zero": fixed(I64(0)), "one": fixed(I64(1))}
    chain = [node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "zero"], ["b"]), node("Gather", ["shape", "one"], ["s"]),
             node("Unsqueeze", ["b", "axis"], ["b1"]), node("Unsqueeze", ["s", "axis"], ["s1"]),
             node("Concat", ["b1", "s1", "two", "four"], ["target"], axis=0), node("Reshape", ["x", "target"], ["h"]),
             node("Transpose", ["h"], ["y0"], perm=[0, 2, 1, 3])]
    add_nodes("shapes/14/heads", chain, {"x": x, "axis": fixed(vector(0)), **half}, 14)
    chain = [node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "one"], ["s"]), node("Range", ["zero", "s", "one"], ["r"]),
             node("Unsqueeze", ["r", "axis"], ["column"]), node("LessOrEqual", ["r", "column"], ["seen"]),
             node("Where", ["seen", "none", "low"], ["y0"])]
    add_nodes("shapes/16/causal mask", chain, {"x": x, "axis": fixed(vector(1)), "zero": fixed(I64(0)), "one": fixed(I64(1)),
                                             "none": fixed(F32(0)), "low": fixed(F32(-np.inf))}, 16)
    chain = [node("Shape", ["x"], ["shape"]), node("ConstantOfShape", ["shape"], ["ones"], value=numpy_helper.from_array(vector(2, kind=F32))),
             node("Mul", ["x", "ones"], ["y0"])]
    add_nodes("shapes/16/filled", chain, {"x": x}, 16)
    chain = [node("Shape", ["x"], ["shape"], start=1, end=2),
             node("ConstantOfShape", ["shape"], ["ones"], value=numpy_helper.from_array(vector(1))), node("NonZero", ["ones"], ["places"]),
             node("Transpose", ["places"], ["column"]), node("Cast", ["column"], ["r"], to=TensorProto.FLOAT), node("Mul", ["x", "r"], ["y0"])]
    add_nodes("shapes/17/count by what is not 0", chain, {"x": x}, 17)
    chain = [node("Shape", ["x"], ["shape"], start=-2), node("ReduceProd", ["shape"], ["count"], keepdims=0),
             node("Cast", ["count"], ["number"], to=TensorProto.FLOAT), node("Div", ["x", "number"], ["y0"])]
    add_nodes("shapes/15/count as a number", chain, {"x": x}, 15)
    chain = [node("Size", ["x"], ["size"]), node("Cast", ["size"], ["number"], to=TensorProto.FLOAT), node("Mul", ["x", "number"], ["y0"])]
    add_nodes("shapes/13/size", chain, {"x": x}, 13)
    chain = [node("Pow", ["area", "half"], ["side"]), node("Cast", ["side"], ["n"], to=TensorProto.INT64),
             node("Concat", ["rest", "n", "n"], ["target"], axis=0), node("Reshape", ["x", "target"], ["y0"])]
    add_nodes("shapes/13/side of a square", chain, {"x": named(f(2, 9), "b", None), "area": fixed(vector(9, kind=F32)),
              "half": fixed(vector(0.5, kind=F32)), "rest": fixed(vector(-1))}, 13)
    chain = [node("Shape", ["x"], ["shape"]), node("Identity", ["shape"], ["y0"])]
    add_nodes("shapes/13/shape as output", chain, {"x": x}, 13)


def inferred_equalities():
    """Files whose sizes are equal, or bounded, only because a later operator needs it."""
    x, numbers = named(f(2, 3, 4), "b", "s", None), {"zero": fixed(vector(0)), "one": fixed(vector(1)), "two": fixed(vector(2))}
    length = [node("Shape", ["x"], ["shape"]), node("Slice", ["shape", "one", "two"], ["s"])]
    rows = length + [node("Slice", ["table", "zero", "s", "zero"], ["rows"]), node("Add", ["x", "rows"], ["y0"])]
    add_nodes("bounds/14/first rows", rows, {"x": x, "table": fixed(f(9, 4)), **numbers}, 14)
    last = length + [node("Sub", ["nine", "s"], ["from"]), node("Max", ["from", "zero"], ["begin"]),
                     node("Slice", ["table", "begin", "nine", "zero"], ["rows"]), node("Add", ["x", "rows"], ["y0"])]
    add_nodes("bounds/14/last rows", last, {"x": x, "table": fixed(f(9, 4)), "nine": fixed(vector(9)), **numbers}, 14)
    chain = [node("Add", ["x", "z"], ["y0"])]
    add_nodes("bounds/14/other names", chain, {"x": named(f(2, 3), None, "s"), "z": named(f(2, 3), None, "s")}, 14)
    merge = [node("Reshape", ["x", "flat"], ["rows"]), node("Shape", ["z"], ["shape"]), node("Slice", ["shape", "zero", "one"], ["batch"]),
             node("Concat", ["batch", "rest"], ["target"], axis=0), node("Reshape", ["rows", "target"], ["y0"])]
    add_nodes("bounds/14/reshape between symbols", merge, {"x": x, "z": named(f(2, 5), "c", None), "flat": fixed(vector(0, -1)),
              "rest": fixed(vector(-1, 4)), **numbers}, 14)
    shrink = [node("Conv", ["t", "w"], ["c"], kernel_shape=[4], pads=[2, 2], strides=[2], group=1),
              node("Slice", ["c", "zero", "minus", "two"], ["cut"]), node("Reshape", ["cut", "heads"], ["h"]),
              node("Reshape", ["h", "back"], ["r"]), node("Add", ["cut", "r"], ["y0"])]
    add_nodes("bounds/14/cut to size", shrink, {"t": named(f(2, 3, 11), "b", None, "t"), "w": fixed(f(4, 3, 4)), "minus": fixed(vector(-1)),
              "heads": fixed(vector(0, 2, 2, -1)), "back": fixed(vector(0, 4, -1)), **numbers}, 14)


# ---- indices -------------------------------------------------------------------------------------


def indices():
    x = f(4, 5, 6)
    for axis in (0, 1, 2, -1):
        case("Gather", x, ints(-3, 4, 2, 3), axis=axis, opset=13, label=f"axis {axis}")
    case("Gather", named(x, "b", "s", None), fixed(I64(1)), axis=1, opset=13, label="scalar")
    case("Gather", x, fixed(I64(-1)), axis=2, opset=13, label="last")
    case("Gather", x, fixed(vector(1, 0, 2)), axis=1, opset=13, label="constant")
    case("Gather", fixed(f(9, 4)), named(ints(0, 9, 2, 3), "b", "s"), opset=13, label="embedding")
    case("Gather", fixed(f(9, 4)), named(ints(-9, 9, 2, 3), "b", "s"), opset=13, label="negative")
    case("Gather", ints(0, 99, 5), ints(0, 5, 3, kind=np.int32), opset=13, label="i64 by i32")
    for axis in (0, 1, -1):
        case("GatherElements", f(3, 4, 5), ints(-3, 3, 3, 4, 5), axis=axis, opset=13, label=f"axis {axis}")
    case("GatherElements", named(f(2, 6), "b", None), named(ints(0, 6, 2, 3), "b", "s"), axis=1, opset=13, label="fewer")
    case("GatherElements", f(3, 4, 5), ints(0, 5, 2, 3, 7), axis=2, opset=13, label="fewer everywhere")
    case("GatherND", f(3, 4, 5), ints(-3, 3, 2, 2), opset=13)
    case("GatherND", f(3, 4, 5), ints(0, 3, 6, 3), opset=13, label="elements")
    case("GatherND", f(3, 4, 5), ints(0, 3, 2, 6, 1), opset=13, label="rows")
    case("GatherND", f(2, 4, 5), ints(0, 4, 2, 3, 1), batch_dims=1, opset=13, label="batch 1")
    case("GatherND", named(f(2, 3, 4, 5), "b", None, None, None), named(ints(0, 4, 2, 3, 2), "b", None, None), batch_dims=2,
         opset=13, label="batch 2")
    case("GatherND", named(flags(3, 5), "b", "s"), ints(0, 3, 4, 2), opset=13, label="bool")
    for axis in (-1, 0, 1):
        case("OneHot", ints(-4, 5, 2, 3), fixed(I64(5)), fixed(vector(-1, 2, kind=F32)), axis=axis, opset=11, label=f"axis {axis}")
    case("OneHot", ints(0, 9, 4), fixed(vector(5)), fixed(vector(0, 1)), opset=11, label="outside")


# ---- products ------------------------------------------------------------------------------------


def products():
    for label, a, b in (
            ("matrix", f(3, 4), f(4, 5)), ("batch", f(2, 3, 4), f(2, 4, 5)), ("weights", f(2, 3, 4), f(4, 5)),
            ("left weights", f(3, 4), f(2, 4, 5)), ("broadcast", f(2, 1, 3, 4), f(5, 4, 6)), ("one", f(2, 1, 3, 4), f(1, 5, 4, 6)),
            ("vectors", f(4), f(4)), ("row", f(4), f(4, 5)), ("column", f(3, 4), f(4)), ("batch column", f(2, 3, 4), f(4)),
            ("row batch", f(4), f(2, 4, 5)), ("symbols", named(f(2, 3, 4), "b", "s", None), fixed(f(4, 5))),
            ("scores", named(f(2, 3, 5, 4), "b", None, "s", None), named(f(2, 3, 4, 5), "b", None, None, "s")),
            ("degenerate", f(3, 1), f(1, 2))):
        case("MatMul", a, b, opset=13, label=label)
    case("MatMul", ints(-4, 5, 3, 4, kind=np.int32), ints(-4, 5, 4, 2, kind=np.int32), opset=13, label="i32")
    case("Gemm", f(3, 4), f(4, 5), f(5), opset=13)
    case("Gemm", f(3, 4), f(4, 5), opset=13, label="no bias")
    case("Gemm", f(4, 3), f(5, 4), f(3, 1), transA=1, transB=1, alpha=0.5, beta=0.25, opset=13, label="transposed")
    case("Gemm", named(f(3, 4), "s", None), fixed(f(5, 4)), fixed(f(5)), transB=1, opset=11, label="linear")
    case("Gemm", f(3, 4), f(4, 5), f(), opset=13, label="scalar bias")
    case("Gemm", f(3, 4), f(4, 5), f(3, 5), alpha=2.0, beta=0.0, opset=13, label="beta 0")
    for equation, operands in (
            ("ij,jk->ik", (f(2, 3), f(3, 4))), ("bhid,bhjd->bhij", (f(2, 3, 4, 5), f(2, 3, 6, 5))), ("ij->ji", (f(2, 3),)),
            ("ij->i", (f(2, 3),)), ("ij->", (f(2, 3),)), ("ii->i", (f(3, 3),)), ("ii", (f(3, 3),)), ("bii->b", (f(2, 3, 3),)),
            ("i,j->ij", (f(3), f(4))), ("i,i->", (f(3), f(3))), ("i,i->i", (f(3), f(3))), ("ij,jk", (f(2, 3), f(3, 4))),
            ("ba,cb", (f(2, 3), f(4, 2))), ("...ij,...jk->...ik", (f(2, 3, 4), f(2, 4, 5))),
            ("...ij,jk->...ik", (f(2, 5, 3, 4), f(4, 5))), ("i...->...", (f(3, 4),)), ("ij,ik,il->jkl", (f(2, 3), f(2, 4), f(2, 5))),
            ("ij,kl->i", (f(2, 3), f(4, 5))), ("bij,bj->bi", (f(2, 3, 4), f(2, 4))), (" i j , j k -> k i ", (f(2, 3), f(3, 4))),
            ("...ij,...jk->...ik", (f(1, 3, 4), f(2, 4, 5)))):
        case("Einsum", *operands, equation=equation, opset=12, label=equation)
    case("Einsum", named(f(2, 3, 4), "b", "s", None), fixed(f(4, 2, 5)), equation="bsi,ihd->bhsd", opset=12, label="symbols")


def convolutions():
    for label, x, w, extra in (
            ("plain", f(2, 3, 6, 5), f(4, 3, 3, 2), {}), ("strides", f(1, 2, 7, 8), f(3, 2, 3, 3), {"strides": [2, 3]}),
            ("pads", f(1, 2, 5, 5), f(3, 2, 3, 3), {"pads": [1, 1, 1, 1]}), ("uneven pads", f(1, 2, 5, 5), f(3, 2, 3, 2), {"pads": [0, 1, 2, 0]}),
            ("dilations", f(1, 2, 8, 8), f(3, 2, 3, 2), {"dilations": [2, 3]}), ("groups", f(1, 4, 5, 5), f(6, 2, 3, 3), {"group": 2}),
            ("depthwise", f(2, 3, 5, 5), f(3, 1, 3, 3), {"group": 3, "pads": [1, 1, 1, 1]}),
            ("multiplier", f(1, 2, 5, 5), f(4, 1, 2, 2), {"group": 2}), ("patches", f(2, 3, 8, 8), f(5, 3, 4, 4), {"strides": [4, 4]}),
            ("patches, rest", f(2, 3, 9, 10), f(5, 3, 4, 4), {"strides": [4, 4]}), ("pointwise", f(2, 3, 4, 4), f(5, 3, 1, 1), {}),
            ("pointwise strided", f(2, 3, 5, 5), f(5, 3, 1, 1), {"strides": [2, 2]}), ("1-d", f(2, 3, 9), f(4, 3, 3), {"pads": [1, 1]}),
            ("1-d strided", f(2, 3, 9), f(4, 3, 3), {"pads": [1, 1], "strides": [2]}), ("1-d groups", f(2, 4, 9), f(4, 1, 3), {"group": 4}),
            ("all", f(1, 4, 9, 9), f(4, 2, 3, 3), {"group": 2, "pads": [1, 2, 1, 0], "strides": [2, 1], "dilations": [1, 2]}),
            ("same upper", f(1, 2, 5, 6), f(3, 2, 2, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
            ("same lower", f(1, 2, 5, 6), f(3, 2, 2, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
            ("valid", f(1, 2, 5, 6), f(3, 2, 2, 3), {"auto_pad": "VALID"})):
        case("Conv", x, fixed(w), opset=11, label=label, **extra)
        case("Conv", x, fixed(w), fixed(f(w.shape[0])), kernel_shape=list(w.shape[2:]), opset=11, label=label + ", bias", **extra)
    case("Conv", named(f(2, 3, 6, 6), "b", None, None, None), fixed(f(4, 3, 2, 2)), strides=[2, 2], opset=11, label="batch")
    case("Conv", named(f(2, 3, 10), "b", None, "t"), fixed(f(4, 3, 3)), pads=[1, 1], opset=11, label="time")
    case("Conv", named(f(2, 3, 10), "b", None, "t"), fixed(f(4, 3, 3)), pads=[1, 1], strides=[2], opset=11, label="time by 2")
    case("Conv", named(f(2, 3, 9), "b", None, "t"), fixed(f(4, 3, 3)), strides=[3], opset=11, label="time by 3")
    case("Conv", f(1, 2, 5, 5), f(3, 2, 3, 3), opset=11, label="weights as input")
    case("Conv", f(1, 2, 4, 4, 4), fixed(f(3, 2, 2, 2, 2)), opset=11, label="3-d")
    for op in ("AveragePool", "MaxPool"):
        for label, x, extra in (
                ("plain", f(2, 3, 6, 5), {"kernel_shape": [3, 2]}), ("strides", f(1, 2, 7, 8), {"kernel_shape": [3, 3], "strides": [2, 3]}),
                ("pads", f(1, 2, 5, 5), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}), ("tiles", f(1, 2, 6, 4), {"kernel_shape": [2, 2], "strides": [2, 2]}),
                ("uneven pads", f(1, 2, 5, 5), {"kernel_shape": [3, 3], "pads": [0, 1, 2, 0], "strides": [2, 2]}),
                ("ceil", f(1, 2, 6, 6), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
                ("same", f(1, 2, 5, 6), {"kernel_shape": [2, 3], "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
                ("1-d", f(2, 3, 9), {"kernel_shape": [3], "strides": [2], "pads": [1, 1]})):
            case(op, x, opset=11, label=label, **extra)
        case("Global" + op, f(2, 3, 4, 5), opset=11)
        case("Global" + op, named(f(2, 3, 4), "b", None, "t"), opset=11)
    case("AveragePool", f(1, 2, 5, 5), kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1, opset=11, label="count padding")
    case("AveragePool", f(1, 2, 6, 6), kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], ceil_mode=1, opset=11, label="ceil, pads")
    case("AveragePool", f(1, 2, 7, 7), kernel_shape=[2, 2], dilations=[2, 2], opset=19, label="dilations")
    case("MaxPool", f(1, 2, 7, 7), kernel_shape=[2, 2], dilations=[2, 3], opset=12, label="dilations")
    case("MaxPool", named(f(2, 3, 10), "b", None, "t"), kernel_shape=[2], strides=[2], opset=12, label="time")
    refused("MaxPool", f(1, 2, 4, 4), kernel_shape=[2, 2], opset=12, count=2, label="indices")


def resizes():
    x, whole = named(f(2, 3, 4, 5), "b", None, None, None), f(2, 3, 4, 5)
    none = fixed(np.zeros(0, F32))
    for places in "half_pixel pytorch_half_pixel align_corners asymmetric".split():
        for mode in "nearest linear cubic".split():
            case("Resize", whole, None, none, fixed(vector(2, 3, 7, 4)), mode=mode, coordinate_transformation_mode=places, opset=13,
                 label=f"{mode} {places}")
            case("Resize", x, None, fixed(vector(1, 1, 1.6, 0.75, kind=F32)), mode=mode, coordinate_transformation_mode=places, opset=13,
                 label=f"{mode} {places}, scales")
    for rounding in "round_prefer_floor round_prefer_ceil floor ceil".split():
        case("Resize", x, None, fixed(vector(1, 1, 2, 2.5, kind=F32)), nearest_mode=rounding, coordinate_transformation_mode="asymmetric",
             opset=13, label=rounding)
    case("Resize", whole, None, none, fixed(vector(2, 3, 9, 9)), mode="cubic", cubic_coeff_a=-0.5, exclude_outside=1, opset=13, label="inside")
    case("Resize", x, None, None, fixed(vector(8, 10)), mode="linear", axes=[2, 3], opset=18, label="axes")
    case("Resize", x, None, None, fixed(vector(2, 2)), mode="linear", axes=[2, 3], antialias=1, opset=18, label="smooth, to two")


# ---- norms ---------------------------------------------------------------------------------------


def norms():
    case("BatchNormalization", f(2, 3, 4, 5), fixed(f(3)), fixed(f(3)), fixed(f(3)), fixed(positive(3)), opset=15)
    case("BatchNormalization", named(f(2, 3), "b", None), fixed(f(3)), fixed(f(3)), fixed(f(3)), fixed(positive(3)), epsilon=0.1, opset=11,
         label="rows")
    refused("BatchNormalization", f(2, 3), fixed(f(3)), fixed(f(3)), fixed(f(3)), fixed(positive(3)), training_mode=1, count=3, opset=15, label="training")
    for axis, count in ((-1, 5), (1, 20), (2, 5)):
        dims = (4, 5)[-(3 - axis) if axis > 0 else -1:]
        case("LayerNormalization", f(2, 4, 5), f(*dims), f(*dims), axis=axis, opset=17, label=f"axis {axis}")
    case("LayerNormalization", named(f(2, 4, 8), "b", "s", None), fixed(f(8)), epsilon=1e-3, opset=17, label="no bias")
    case("LayerNormalization", f(2, 4, 5), f(5), f(5), opset=17, count=3, label="statistics")
    case("InstanceNormalization", f(2, 3, 4, 5), fixed(f(3)), fixed(f(3)), opset=11)
    case("InstanceNormalization", named(f(2, 3, 7), "b", None, "t"), fixed(f(3)), fixed(f(3)), epsilon=1e-2, opset=11, label="time")
    case("GroupNormalization", f(2, 6, 4), f(6), f(6), num_groups=3, opset=21, label="channels")
    case("GroupNormalization", named(f(2, 6, 4, 2), "b", None, None, None), f(6), f(6), num_groups=2, epsilon=1e-2, opset=21, label="images")
    for axis in (-1, 1):
        dims = (5,) if axis == -1 else (4, 5)
        case("RMSNormalization", f(2, 4, 5), f(*dims), axis=axis, opset=23, label=f"axis {axis}")
    for p in (1, 2):
        case("LpNormalization", f(2, 4, 5), p=p, axis=1, opset=11, label=f"p {p}")
    case("MeanVarianceNormalization", f(2, 3, 4, 5), opset=13)


# ---- Attention, rotary ---------------------------------------------------------------------------


def attention():
    q, k, v = (named(f(2, 4, 3, 8), "b", None, "s", None), named(f(2, 4, 5, 8), "b", None, "t", None),
               named(f(2, 4, 5, 6), "b", None, "t", None))
    case("Attention", q, k, v, opset=23)
    case("Attention", q, k, v, scale=0.3, opset=23, label="scale")
    case("Attention", q, k, v, softcap=1.5, opset=23, label="soft cap")
    case("Attention", q, k, v, is_causal=1, opset=23, label="causal")
    case("Attention", q, k, v, named(f(3, 5), "s", "t"), opset=23, label="mask")
    case("Attention", q, k, v, named(f(2, 1, 3, 5), "b", None, "s", "t"), opset=23, label="mask 4-d")
    case("Attention", q, k, v, named(f(4, 3, 5), None, "s", "t"), opset=23, label="mask 3-d")
    keep = flags(2, 1, 3, 5)
    keep[..., 0] = True
    keep = named(keep, "b", None, "s", "t")
    empty = flags(2, 1, 3, 5)
    empty[:, :, 1] = False
    case("Attention", q, k, v, named(empty, "b", None, "s", "t"), opset=23, label="rows that see nothing")
    case("Attention", q, k, v, named(f(3, 5), "s", "t"), softcap=1.5, opset=23, label="mask and soft cap")
    case("Attention", q, k, v, keep, opset=23, label="bool mask")
    case("Attention", q, k, v, keep, is_causal=1, softcap=2.0, scale=0.5, opset=23, label="everything")
    few = named(f(2, 2, 5, 8), "b", None, "t", None)
    case("Attention", q, few, named(f(2, 2, 5, 6), "b", None, "t", None), opset=23, label="grouped")
    case("Attention", q, few, named(f(2, 2, 5, 6), "b", None, "t", None), keep, is_causal=1, opset=23, label="grouped, masked")
    case("Attention", q, named(f(2, 1, 5, 8), "b", None, "t", None), named(f(2, 1, 5, 6), "b", None, "t", None), opset=23, label="one head")
    three = (named(f(2, 3, 32), "b", "s", None), named(f(2, 5, 16), "b", "t", None), named(f(2, 5, 12), "b", "t", None))
    case("Attention", *three, q_num_heads=4, kv_num_heads=2, opset=23, label="3-d")
    case("Attention", *three, None, named(f(2, 2, 4, 8), "b", None, "p", None), named(f(2, 2, 4, 6), "b", None, "p", None), q_num_heads=4, kv_num_heads=2, opset=23, count=3, label="past")
    case("Attention", *three, None, named(f(2, 2, 4, 8), "b", None, "p", None), named(f(2, 2, 4, 6), "b", None, "p", None), q_num_heads=4, kv_num_heads=2, is_causal=1, opset=23, count=3, label="past causal")
    refused("Attention", f(2, 4, 3, 8), f(2, 4, 5, 8), f(2, 4, 5, 6), qk_matmul_output_mode=2, count=4, opset=23, label="scores")
    angles = f(9, 4)
    cos, sin = np.cos(angles), np.sin(angles)
    x4, x3 = named(f(2, 3, 5, 8), "b", None, "s", None), named(f(2, 5, 24), "b", "s", None)
    for interleaved in (0, 1):
        label = "interleaved" if interleaved else "halves"
        case("RotaryEmbedding", x4, fixed(cos), fixed(sin), named(ints(0, 9, 2, 5), "b", "s"), interleaved=interleaved, opset=23, label=label)
        case("RotaryEmbedding", x3, fixed(cos), fixed(sin), named(ints(0, 9, 2, 5), "b", "s"), num_heads=3, interleaved=interleaved, opset=23,
             label=label + " 3-d")
        case("RotaryEmbedding", x4, named(np.cos(f(2, 5, 4)), "b", "s", None), named(np.sin(f(2, 5, 4)), "b", "s", None), interleaved=interleaved, opset=23, label=label + " no positions")
        case("RotaryEmbedding", x4, fixed(cos[:, :2]), fixed(sin[:, :2]), named(ints(0, 9, 2, 5), "b", "s"), rotary_embedding_dim=4, num_heads=3,
             interleaved=interleaved, opset=23, label=label + " partial")


def late():
    """Operators that came later, at the end so that the random numbers of the others stay."""
    for op, scale, shift in (("Atan", 3, 0), ("Asinh", 3, 0), ("Acosh", 0, 2.5)):
        case(op, f(3, 5, scale=scale or 0.4, shift=shift), opset=11, label="plain")
    for op in ("Asin", "Acos", "Atanh"):
        case(op, random.uniform(-0.95, 0.95, (3, 5)).astype(F32), opset=11, label="plain")
    case("Asin", vector(-1, 0, 1, kind=F32), opset=11, label="ends")
    case("Atan", vector(-np.inf, -0.4, 0, 2.5, np.inf, kind=F32), opset=11, label="ends")
    for label, x, w, extra in (
            ("plain", f(1, 3, 5), f(3, 2, 4), {}), ("strided", f(2, 3, 5), f(3, 2, 4), {"strides": [3]}),
            ("tiles", f(2, 3, 4, 3), f(3, 2, 2, 2), {"strides": [2, 2]}), ("pads", f(1, 3, 4, 4), f(3, 2, 3, 3), {"strides": [2, 2], "pads": [1, 0, 1, 1]}),
            ("groups", f(1, 4, 4, 4), f(4, 2, 3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1], "group": 2}),
            ("dilations", f(1, 2, 4, 5), f(2, 3, 3, 2), {"dilations": [2, 3], "strides": [1, 2]}),
            ("same", f(1, 2, 4, 5), f(2, 3, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
            ("shape", f(1, 2, 4, 5), f(2, 3, 3, 3), {"strides": [2, 2], "output_shape": [8, 10]}),
            ("far pads", f(1, 2, 6), f(2, 2, 2), {"strides": [2], "pads": [3, 2]})):
        case("ConvTranspose", x, fixed(w), opset=11, label=label, **extra)
    case("ConvTranspose", named(f(2, 3, 4, 3), "b", None, "h", "w"), fixed(f(3, 2, 2, 2)), fixed(f(2)), strides=[2, 2], opset=11, label="tiles, symbols")
    case("ConvTranspose", named(f(2, 3, 5), "b", None, "t"), fixed(f(3, 2, 4)), fixed(f(2)), strides=[2], pads=[1, 1], opset=11, label="time")
    case("Conv", named(f(2, 3, 4, 6, 4), "b", None, None, None, None), fixed(f(5, 3, 2, 3, 2)), fixed(f(5)), strides=[2, 3, 2], opset=11, label="3-d patches")
    case("Conv", f(1, 2, 4, 5, 3), fixed(f(3, 2, 3, 3, 3)), pads=[1, 1, 1, 1, 1, 1], opset=11, label="3-d pads")
    case("Conv", f(1, 4, 4, 4, 4), fixed(f(4, 2, 2, 2, 2)), group=2, opset=11, label="3-d groups")
    for op in ("AveragePool", "MaxPool"):
        case(op, f(1, 2, 4, 5, 4), kernel_shape=[2, 3, 2], strides=[2, 1, 2], pads=[0, 1, 0, 0, 1, 0], opset=11, label="3-d")
        case(op, f(1, 2, 5, 5), kernel_shape=[9, 9], pads=[3, 3, 3, 3], strides=[2, 2], ceil_mode=1, opset=11, label="larger than the image")
    x = named(f(3, 5), "b", None)
    case("ScatterElements", x, ints(0, 5, 3, 1), f(3, 1), axis=1, opset=18, label="one")
    case("ScatterElements", x, fixed(vector(1, -2, 0, 4, 2, -5).reshape(3, 2)), f(3, 2), axis=1, opset=13, label="two")
    case("ScatterElements", f(4, 5), fixed(vector(3, 0, 1, 2).reshape(2, 2)), f(2, 2), opset=11, label="fewer beside")
    for way in "add mul max min".split():
        case("ScatterElements", f(3, 5), ints(-5, 5, 3, 4), f(3, 4), axis=-1, reduction=way, opset=18, label=way)
    case("ScatterElements", flags(3, 5), ints(0, 5, 3, 1), flags(3, 1), axis=1, opset=18, label="bool")
    case("ScatterElements", ints(0, 9, 3, 5), ints(0, 3, 1, 5), ints(0, 9, 1, 5), axis=0, opset=18, label="i64")
    case("ScatterND", named(f(4, 5), "s", None), fixed(vector(2, 0).reshape(2, 1)), f(2, 5), opset=18, label="rows")
    case("ScatterND", f(3, 4, 2), vector(0, -1, 2, 1).reshape(2, 2), f(2, 2), opset=18, label="places")
    case("ScatterND", named(ints(0, 2, 3, 6), "b", "s"), named(vector(0, 3, 1, 5, 2, 0).reshape(3, 2), "b", None), named(vector(1, 1, 1), "b"), opset=18,
         label="ends of sequences")
    case("ScatterND", f(6), ints(0, 6, 4, 1), f(4), reduction="add", opset=18, label="sums")
    for largest in (0, 1):
        case("TopK", named(f(3, 7), "b", None), fixed(vector(3)), largest=largest, count=2, opset=11, label=f"largest {largest}")
    case("TopK", named(f(3, 7, 2), None, "s", None), fixed(vector(1)), axis=1, count=2, opset=11, label="one of a symbol")
    case("TopK", ints(0, 3, 2, 6), fixed(vector(4)), count=2, opset=11, label="ties")
    case("TopK", f(3, 99), fixed(vector(70)), count=2, opset=11, label="many")
    case("LRN", f(2, 6, 3, 2), size=3, opset=13)
    case("LRN", named(f(2, 5, 4, 3), "b", None, "h", "w"), size=5, alpha=0.1, beta=0.5, bias=2.0, opset=13, label="images")
    chain = [node("BatchNormalization", ["x", "scale", "shift", "mean", "var"], ["y0", "m", "v"], training_mode=1)]
    add_nodes("BatchNormalization/15/statistics of the batch", chain, {"x": named(f(2, 3, 4, 5), "b", None, None, None), "scale": fixed(f(3)),
              "shift": fixed(f(3)), "mean": fixed(f(3)), "var": fixed(positive(3))}, 15)


def quantised():
    weights, bytes_ = ints(-128, 128, 4, 6, kind=np.int8), ints(0, 256, 4, 6, kind=np.uint8)
    x = named(f(2, 3, 4), "b", "s", None)
    for label, w, scale, zero, extra in (
            ("tensor", weights, positive(), np.int8(3), {}), ("no zero point", weights, positive(), None, {}),
            ("columns", bytes_, positive(6), ints(100, 140, 6, kind=np.uint8), {"axis": 1}),
            ("blocks", bytes_, positive(2, 6), ints(100, 140, 2, 6, kind=np.uint8), {"axis": 0, "block_size": 2}),
            ("blocks, rest", weights, positive(4, 2), None, {"axis": 1, "block_size": 4})):
        given = {"x": x, "w": fixed(w), "s": fixed(scale * F32(0.01))}
        if zero is not None:
            given["z"] = fixed(zero)
        chain = [node("DequantizeLinear", [k for k in given if k != "x"], ["d"], **extra), node("MatMul", ["x", "d"], ["y0"])]
        add_nodes(f"DequantizeLinear/21/{label}", chain, given, 21)
    case("DequantizeLinear", fixed(ints(-999, 999, 4, kind=np.int32)), fixed(F32(0.01)), opset=13, label="i32")
    for kind, zero in ((np.uint8, 120), (np.int8, -3)):
        chain = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("DequantizeLinear", ["q", "s", "z"], ["y0"])]
        add_nodes(f"QuantizeLinear/13/{kind.__name__}", chain, {"x": x, "s": fixed(F32(0.0125)), "z": fixed(kind(zero))}, 13)
    chain = [node("QuantizeLinear", ["x", "s"], ["q"], axis=2), node("Cast", ["q"], ["y0"], to=TensorProto.INT32)]
    add_nodes("QuantizeLinear/13/columns", chain, {"x": named(f(2, 3, 4, shift=1), "b", "s", None), "s": fixed(positive(4) * F32(0.02))}, 13)
    chain = [node("DynamicQuantizeLinear", ["x"], ["q", "y1", "z"]), node("MatMulInteger", ["q", "w", "z", "v"], ["m"]),
             node("Cast", ["m"], ["f"], to=TensorProto.FLOAT), node("Mul", ["f", "y1"], ["y0"])]
    whole = np.round(f(2, 3, 4) * 20) / F32(10)  # far from ties
    whole[0, 0, 0], whole[0, 0, 1] = 25.5, 0
    add_nodes("MatMulInteger/13/dynamic", chain, {"x": named(np.abs(whole), "b", "s", None), "w": fixed(weights), "v": fixed(np.int8(5))}, 13, count=2)


def empties():
    """Values without elements, as exporters write registers that a model lacks."""
    nothing = fixed(np.zeros((1, 0, 4), F32))
    x = named(f(2, 3, 4), "b", "s", None)
    chain = [node("Shape", ["x"], ["all"], start=0, end=1), node("Concat", ["all", "minus", "minus"], ["shape"], axis=0),
             node("Equal", ["shape", "minus"], ["free"]), node("Where", ["free", "ones", "shape"], ["target"]),
             node("Expand", ["e", "target"], ["none"]), node("Concat", ["x", "none"], ["y0"], axis=1)]
    add_nodes("empty/18/expanded", chain, {"x": x, "e": nothing, "minus": fixed(vector(-1)), "ones": fixed(vector(1, 1, 1))}, 18)
    chain = [node("Slice", ["x", "at", "at", "axis"], ["e"]), node("Unsqueeze", ["e", "axis"], ["u"]), node("Tile", ["u", "many"], ["t"]),
             node("Squeeze", ["t", "axis"], ["w"]), node("Transpose", ["w"], ["v"], perm=[0, 2, 1]), node("Transpose", ["v"], ["q"], perm=[0, 2, 1]),
             node("Concat", ["q", "x"], ["y0"], axis=1)]
    add_nodes("empty/18/sliced", chain, {"x": x, "at": fixed(vector(0)), "axis": fixed(vector(1)), "many": fixed(vector(1, 1, 1, 1))}, 18)
    chain = [node("Conv", ["t", "w"], ["c"], kernel_shape=[3], strides=[2]), node("Shape", ["c"], ["dims"]), node("Equal", ["dims", "minus"], ["free"]),
             node("Where", ["free", "ones", "dims"], ["target"]), node("Expand", ["one", "target"], ["big"]), node("Add", ["big", "c"], ["y0"])]
    add_nodes("empty/18/never below one", chain, {"t": named(f(2, 3, 11), "b", None, "t"), "w": fixed(f(4, 3, 3)), "minus": fixed(vector(-1)),
              "ones": fixed(vector(1, 1, 1)), "one": fixed(f(1, 1, 1))}, 18)
    steps, last = [], "length"
    for i in range(2):
        steps += [node("Sub", [last, "three"], [f"a{i}"]), node("Div", [f"a{i}", "two"], [f"d{i}"]), node("Add", [f"d{i}", "one"], [f"n{i}"])]
        last = f"n{i}"
    chain = [node("Conv", ["t", "w"], ["c"], kernel_shape=[3], strides=[2]), node("Conv", ["c", "v"], ["e"], kernel_shape=[3], strides=[2]),
             node("Shape", ["t"], ["length"], start=2), *steps, node("Concat", ["minus", "n1", "four"], ["target"], axis=0), node("Reshape", ["e", "target"], ["y0"])]
    add_nodes("shapes/18/extents after strides", chain, {"t": named(f(2, 3, 11), "b", None, "t"), "w": fixed(f(4, 3, 3)), "v": fixed(f(4, 4, 3)),
              "minus": fixed(vector(-1)), "one": fixed(vector(1)), "two": fixed(vector(2)), "three": fixed(vector(3)), "four": fixed(vector(4))}, 18)


def contributed():
    """What onnxruntime writes into models that it optimises."""
    ms = {"domain": "com.microsoft"}
    x, y = named(f(2, 3, 8), "b", "s", None), named(f(2, 3, 8), "b", "s", None)
    case("SimplifiedLayerNormalization", x, fixed(f(8)), axis=-1, epsilon=1e-3, opset=17)
    case("SkipLayerNormalization", x, y, fixed(f(8)), fixed(f(8)), fixed(f(8)), opset=17, **ms)
    case("SkipLayerNormalization", x, y, fixed(f(8)), opset=17, epsilon=1e-2, label="no shift", **ms)
    case("SkipSimplifiedLayerNormalization", x, y, fixed(f(8)), opset=17, **ms)
    for op, more in (("SkipLayerNormalization", ["g", "h", "i"]), ("SkipSimplifiedLayerNormalization", ["g", "i"])):
        chain = [node(op, ["x", "y", *more], ["y0", "", "", "y1"], **ms)]
        add_nodes(op + "/17/sum", chain, {"x": x, "y": y, "g": fixed(f(8)), "h": fixed(f(8)), "i": fixed(f(8))}, 17, count=2)
    case("Gelu", x, opset=17, label="contributed", **ms)
    case("BiasGelu", x, fixed(f(8)), opset=17, **ms)
    case("FastGelu", x, fixed(f(8)), opset=17, **ms)
    case("FastGelu", x, opset=17, label="no bias", **ms)
    case("QuickGelu", x, opset=17, **ms)
    case("FusedMatMul", x, y, transB=1, alpha=0.5, opset=17, **ms)
    case("FusedMatMul", f(4, 3), fixed(f(4, 5)), transA=1, opset=17, label="left", **ms)
    refused("FusedMatMul", f(2, 3, 4), f(2, 3, 4), transBatchA=1, opset=17, label="batches", **ms)
    angles = f(9, 2)
    tables = fixed(np.cos(angles)), fixed(np.sin(angles))
    for interleaved in (0, 1):
        case("RotaryEmbedding", x, named(ints(0, 9, 2, 3), "b", "s"), *tables, interleaved=interleaved, opset=17, label=f"contributed {interleaved}", **ms)
    case("RotaryEmbedding", named(f(2, 2, 3, 4), "b", None, "s", None), vector(5), *tables, opset=17, label="contributed, from one", **ms)
    case("RotaryEmbedding", x, vector(2), fixed(np.cos(angles[:, :1])), fixed(np.sin(angles[:, :1])), num_heads=2, rotary_embedding_dim=2, opset=17,
         label="contributed, part", **ms)
    w, bias = fixed(f(8, 24, scale=0.4)), fixed(f(24))
    keep = ints(0, 2, 2, 3, kind=np.int32)
    keep[:, 0] = 1
    case("Attention", x, w, bias, num_heads=2, opset=17, label="contributed", **ms)
    case("Attention", x, w, bias, named(keep, "b", "s"), num_heads=2, opset=17, label="contributed, keys", **ms)
    case("Attention", x, w, bias, named(vector(1, 3, kind=np.int32), "b"), num_heads=2, opset=17, label="contributed, counts", **ms)
    case("Attention", x, w, bias, None, None, named(f(1, 2, 3, 3), None, None, "s", "s"), num_heads=2, scale=0.7, opset=17, label="contributed, bias of scores", **ms)
    case("Attention", x, fixed(f(8, 20, scale=0.4)), fixed(f(20)), num_heads=2, unidirectional=1, qkv_hidden_sizes=[8, 8, 4], opset=17, label="contributed, causal", **ms)
    chain = [node("Attention", ["x", "w", "v", "", "p"], ["y0", "y1"], num_heads=2, unidirectional=1, **ms)]
    add_nodes("Attention/17/contributed, past", chain, {"x": x, "w": w, "v": bias, "p": named(f(2, 2, 2, 5, 4), None, "b", None, "p", None)}, 17, count=2)
    refused("Attention", f(2, 3, 8), f(8, 24), f(24), num_heads=2, do_rotary=1, opset=17, label="rotary", **ms)
    k, v = named(f(2, 5, 8), "b", "t", None), named(f(2, 5, 6), "b", "t", None)
    case("MultiHeadAttention", x, k, v, num_heads=2, opset=17, **ms)
    case("MultiHeadAttention", x, k, v, fixed(f(22)), num_heads=2, scale=0.3, opset=17, label="bias", **ms)
    case("MultiHeadAttention", x, k, v, None, named(vector(1, 0, 1, 1, 0, 1, 1, 1, 0, 1, kind=np.int32).reshape(2, 5), "b", "t"), num_heads=2, opset=17, label="keys", **ms)
    case("MultiHeadAttention", x, named(f(2, 2, 5, 4), "b", None, "t", None), named(f(2, 2, 5, 4), "b", None, "t", None), num_heads=2, opset=17, label="heads apart", **ms)
    chain = [node("MultiHeadAttention", ["x", "y", "z", "", "", "a", "k", "v"], ["y0", "y1", "y2"], num_heads=2, **ms)]
    add_nodes("MultiHeadAttention/17/past", chain, {"x": x, "y": y, "z": named(f(2, 3, 8), "b", "s", None), "a": named(f(1, 2, 3, 7), None, None, "s", "t"),
              "k": named(f(2, 2, 4, 4), "b", None, "p", None), "v": named(f(2, 2, 4, 4), "b", None, "p", None)}, 17, count=3)
    tokens = named(ints(0, 9, 2, 3, kind=np.int32), "b", "s")
    tables = {"w": fixed(f(9, 8)), "p": fixed(f(7, 8)), "t": fixed(f(2, 8)), "g": fixed(f(8)), "h": fixed(f(8))}
    chain = [node("EmbedLayerNormalization", ["x", "s", "w", "p", "t", "g", "h", "m"], ["y0", "n"], epsilon=1e-5, **ms), node("Cast", ["n"], ["y1"], to=TensorProto.FLOAT)]
    add_nodes("EmbedLayerNormalization/17/segments", chain, {"x": tokens, "s": named(ints(0, 2, 2, 3, kind=np.int32), "b", "s"), "m": named(keep, "b", "s"), **tables},
              17, count=2)
    chain = [node("EmbedLayerNormalization", ["x", "", "w", "p", "", "g", "h", "", "q"], ["y0", "n", "y1"], **ms)]
    add_nodes("EmbedLayerNormalization/17/positions", chain, {"x": tokens, "q": named(ints(0, 7, 2, 3, kind=np.int32), "b", "s"), **tables}, 17, count=2)


def branches():
    """An If whose condition comes at run time is a choice between results."""
    def branch(*nodes):
        return helper.make_graph(list(nodes), "branch", [], [helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)])
    x = named(f(2, 3), "b", None)
    double, root = branch(node("Add", ["x", "x"], ["d"])), branch(node("Abs", ["x"], ["a"]), node("Sqrt", ["a"], ["r"]))
    for value in (False, True):
        chain = [node("If", ["c"], ["y0"], then_branch=double, else_branch=root)]
        add_nodes(f"If/17/given {value}", chain, {"x": x, "c": np.array(value)}, 17)
        chain = [node("ReduceMax", ["x"], ["m"], axes=[0, 1], keepdims=1), node("Greater", ["m", "k"], ["o"]), node("Squeeze", ["o", "all"], ["c"]),
                 node("If", ["c"], ["y0"], then_branch=root, else_branch=branch(node("Identity", ["x"], ["i"])))]
        add_nodes(f"If/17/computed {value}", chain, {"x": x, "k": fixed(np.full((1, 1), -9.0 if value else 9.0, F32)), "all": fixed(vector(0, 1))}, 17)
    chain = [node("Shape", ["x"], ["s"], start=0, end=1), node("Squeeze", ["s"], ["n"]), node("Greater", ["n", "one"], ["c"]),
             node("If", ["c"], ["y0"], then_branch=double, else_branch=root)]
    add_nodes("If/17/more than one", chain, {"x": x, "one": fixed(I64(1))}, 17)
    given = {"x": Given(x.value, x.dims), "c": Given(np.array(True)), "zero": fixed(vector(0))}
    chain = [node("If", ["c"], ["y0"], then_branch=double, else_branch=branch(node("Unsqueeze", ["x", "zero"], ["u"])))]
    cases.append(("refused/If/17/shapes", model_of(chain, given, [("y0", TensorProto.FLOAT)], 17).SerializeToString(), [], []))


def resizes_of_any_extent():
    x = named(f(2, 3, 5, 7), "b", None, "h", "w")
    places = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
    for place in places:
        for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
            case("Resize", x, None, fixed(F32([1, 1, 2, 0.6])), mode="nearest", coordinate_transformation_mode=place, nearest_mode=rounding, opset=13,
                 label=f"any {place} {rounding}")
        for mode in ("linear", "cubic"):
            case("Resize", x, None, fixed(F32([1, 1, 1.5, 2])), mode=mode, coordinate_transformation_mode=place, opset=13, label=f"any {mode} {place}")
    case("Resize", named(f(1, 2, 4, 6), None, None, "h", None), None, fixed(F32([1, 1, 3, 1])), mode="linear", coordinate_transformation_mode="half_pixel_symmetric",
         opset=19, label="any thrice")
    case("Resize", named(f(1, 2, 5, 6), None, None, "h", None), None, fixed(F32([1, 1, 0.2, 1])), mode="linear", coordinate_transformation_mode="pytorch_half_pixel",
         opset=13, label="any to one")
    for mode in ("nearest", "linear", "cubic"):
        chain = [node("Shape", ["z"], ["s"]), node("Resize", ["x", "", "", "s"], ["r"], mode=mode), node("Add", ["r", "z"], ["y0"])]
        add_nodes(f"Resize/13/any {mode} to another", chain, {"x": x, "z": named(f(2, 3, 8, 4), "b", None, "i", "j")}, 13)
    refused("Resize", named(f(1, 1, 5, 4), None, None, "h", None), fixed(np.zeros(0, F32)), fixed(F32([1, 1, 0.123457, 1])), opset=13, label="any fraction")


def far_bounds():
    """Exporters bound integers by the ends of 64 bits."""
    case("Clip", ints(-9, 9, 6), fixed(I64(0)), fixed(I64(2**63 - 1)), opset=12, label="i64, no end")
    case("Clip", ints(-9, 9, 6), fixed(I64(-(2**63))), fixed(I64(3)), opset=12, label="i64, no begin")
    case("Min", ints(-9, 9, 6), fixed(I64(2**63 - 1)), opset=12, label="i64, no end")


def grouped():
    """GroupQueryAttention with what onnxruntime's model builder puts around it: counts of keys from a mask."""
    ms, f32 = {"domain": "com.microsoft"}, {"one": fixed(I64(1)), "last": fixed(vector(1))}
    counts = [node("Shape", ["m"], ["shape"]), node("Gather", ["shape", "one"], ["wide"]), node("Cast", ["wide"], ["total"], to=TensorProto.INT32),
              node("ReduceSum", ["m", "last"], ["sum"], keepdims=0), node("Sub", ["sum", "one"], ["ends"]), node("Cast", ["ends"], ["keys"], to=TensorProto.INT32)]
    angles = f(9, 8)
    tables = {"cos": fixed(np.cos(angles)), "sin": fixed(np.sin(angles))}

    def attend(label, inputs, given, count=3, **attributes):
        chain = counts + [node("GroupQueryAttention", inputs, [f"y{i}" for i in range(count)], num_heads=4, kv_num_heads=2, **attributes, **ms)]
        add_nodes(f"GroupQueryAttention/17/{label}", chain, {**given, **f32}, 17, count=count)

    def apart(rows):
        return {"q": named(f(2, rows, 64), "b", "s", None), "k": named(f(2, rows, 32), "b", "s", None), "v": named(f(2, rows, 32), "b", "s", None)}

    whole = named(np.ones((2, 5), I64), "b", "s")
    attend("window", ["q", "k", "v", "", "", "keys", "total", "cos", "sin"], {**apart(5), "m": whole, **tables}, do_rotary=1, local_window_size=2)
    attend("packed", ["q", "", "", "", "", "keys", "total", "", "", "", "bias"], {"q": named(f(2, 5, 128), "b", "s", None), "m": whole,
           "bias": named(f(1, 4, 5, 5), None, None, "s", "s")}, count=1, softcap=1.5, scale=0.4)
    ragged = named(np.int64([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]), "b", "t")
    past = {"a": named(f(2, 2, 4, 16), "b", None, "p", None), "c": named(f(2, 2, 4, 16), "b", None, "p", None)}
    attend("past", ["q", "k", "v", "a", "c", "keys", "total", "cos", "sin"], {**apart(1), "m": ragged, **past, **tables}, do_rotary=1, rotary_interleaved=1)
    alone = node("GroupQueryAttention", ["q", "k", "v", "a", "c", "n", "t"], ["y0"], num_heads=4, kv_num_heads=2, **ms)
    given = {**apart(1), **past, "n": Given(vector(4, 2, kind=np.int32)), "t": Given(np.int32(5))}
    cases.append(("refused/GroupQueryAttention/17/total at run time", model_of([alone], given, [("y0", TensorProto.FLOAT)], 17).SerializeToString(), [], []))
    # Positions that are a slice of a table bound the sequence, whatever adds them.
    embed = {"x": named(ints(0, 9, 2, 3, kind=np.int32), "b", "s"), "w": fixed(f(9, 8)), "p": fixed(f(7, 8)), "g": fixed(f(8)), "h": fixed(f(8)),
             "all": fixed(np.arange(7, dtype=np.int32).reshape(1, 7)), "zero": fixed(vector(0))}
    chain = [node("Shape", ["x"], ["s"], start=1), node("Slice", ["all", "zero", "s", "last"], ["at"]),
             node("EmbedLayerNormalization", ["x", "", "w", "p", "", "g", "h", "", "at"], ["y0", "n"], **ms)]
    add_nodes("EmbedLayerNormalization/17/first positions", chain, {**embed, **f32}, 17)


def sampled():
    """Places that are data: of images, and of tables that lie in another order."""
    image, grid = named(f(2, 3, 5, 4), "n", None, "h", "w"), named(f(2, 3, 6, 2), "n", "i", "j", None)
    case("GridSample", image, grid, opset=16, label="linear")
    case("GridSample", image, grid, opset=20, mode="linear", padding_mode="border", align_corners=1, label="corners")
    case("GridSample", f(2, 3, 5, 4), grid, opset=20, mode="nearest", label="nearest")
    case("GridSample", f(2, 3, 5, 4), f(2, 3, 6, 2), opset=20, mode="cubic", label="cubic")
    chain = [node("Reshape", ["x", "apart"], ["a"]), node("Transpose", ["a"], ["t"], perm=[0, 3, 1, 2]), node("Reshape", ["t", "rows"], ["table"]),
             node("GatherElements", ["table", "i"], ["y0"], axis=1)]
    add_nodes("GatherElements/18/turned table", chain, {"x": named(f(2, 3, 32), "b", "s", None), "i": named(ints(0, 8, 24, 5), "r", None),
              "apart": fixed(vector(0, 0, 8, 4)), "rows": fixed(vector(-1, 8))}, 18)
    chain = [node("Shape", ["x"], ["s"]), node("Slice", ["all", "zero", "s"], ["r"]), node("Unsqueeze", ["r", "zero"], ["row"]),
             node("Unsqueeze", ["r", "one"], ["column"]), node("Mul", ["row", "column"], ["square"]), node("Concat", ["s", "minus"], ["target"], axis=0),
             node("Reshape", ["square", "target"], ["z"]), node("Add", ["z", "x"], ["y0"])]
    add_nodes("bounds/18/rows of a square", chain, {"x": named(f(5), "s"), "all": fixed(f(9)), "zero": fixed(vector(0)), "one": fixed(vector(1)),
              "minus": fixed(vector(-1))}, 18)


def folded():
    """Patches summed into images, smaller images that are smooth, products of integers."""
    ms = {"domain": "com.microsoft"}
    for label, image, block, more in (("overlapping", (5, 6), (3, 2), {"pads": [1, 0, 1, 1]}), ("tiles", (4, 6), (2, 3), {"strides": [2, 3]}),
                                      ("apart", (9, 5), (2, 2), {"strides": [3, 2], "dilations": [2, 1]}), ("a row", (8,), (3,), {"strides": [2]})):
        pads, strides, dilations = (more.get(k, [d] * (2 * len(image))) for k, d in (("pads", 0), ("strides", 1), ("dilations", 1)))
        count = np.prod([(image[i] + pads[i] + pads[len(image) + i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(len(image))])
        case("Col2Im", named(f(2, 2 * np.prod(block), count), "b", None, None), fixed(vector(*image)), fixed(vector(*block)), opset=18, label=label, **more)
    refused("Col2Im", f(2, 8, 12), fixed(vector(2, 2, 3)), fixed(vector(1, 1, 1)), label="three axes")
    for taps in (2, 3):
        chain = [node("Shape", ["x"], ["l"], start=2), node("Mul", ["l", "two"], ["l2"]), node("Add", ["l2", "more"], ["s"]), node("Col2Im", ["x", "s", "block"], ["y0"], strides=[2])]
        add_nodes(f"Col2Im/18/{taps} taps, any extent", chain, {"x": named(f(2, 6, 5), "b", None, "l"), "two": fixed(vector(2)), "more": fixed(vector(taps - 2)),
                  "block": fixed(vector(taps))}, 18)
    x = named(f(2, 2, 7, 5), "b", None, None, None)
    for mode in ("linear", "cubic"):
        for outside in (0, 1):
            case("Resize", x, None, None, fixed(vector(3, 4)), axes=[2, 3], mode=mode, antialias=1, exclude_outside=outside, opset=18, label=f"smooth {mode} {outside}")
    case("Resize", x, None, fixed(F32([1, 1, 0.4, 1.7])), mode="linear", antialias=1, coordinate_transformation_mode="align_corners", opset=19, label="smooth corners")
    refused("Resize", named(f(1, 1, 5, 4), None, None, "h", None), None, fixed(F32([1, 1, 0.5, 1])), mode="linear", antialias=1, label="smooth of any extent")
    image, weights = named(ints(0, 256, 2, 4, 5, 6, kind=np.int32), "b", None, "h", "w"), ints(-128, 128, 6, 2, 3, 2, kind=np.int8)
    byte = node("Cast", ["i"], ["x"], to=TensorProto.UINT8)
    add_nodes("ConvInteger/13/groups", [byte, node("ConvInteger", ["x", "w", "xz", "wz"], ["y0"], group=2, pads=[1, 0, 1, 1], strides=[2, 1])],
              {"i": image, "w": fixed(weights), "xz": fixed(np.uint8(120)), "wz": fixed(np.int8(3))}, 13)
    scales = {"i": image, "xs": fixed(F32(0.02)), "xz": fixed(np.uint8(120)), "w": fixed(weights), "ws": fixed(positive(6) * F32(0.01)), "wz": fixed(np.zeros(6, np.int8)),
              "ys": fixed(F32(0.0511)), "yz": fixed(np.uint8(130)), "bias": fixed(ints(-99, 99, 6, kind=np.int32))}
    chain = [byte, node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "bias"], ["q"], group=2, pads=[1, 0, 1, 1]), node("Cast", ["q"], ["y0"], to=TensorProto.INT32)]
    add_nodes("QLinearConv/13/channels", chain, scales, 13)
    rows, table = named(ints(0, 256, 2, 3, 8, kind=np.int32), "b", "s", None), ints(-128, 128, 8, 6, kind=np.int8)
    chain = [byte, node("QLinearMatMul", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["q"]), node("Cast", ["q"], ["y0"], to=TensorProto.INT32)]
    add_nodes("QLinearMatMul/13/columns", chain, {**{k: v for k, v in scales.items() if k != "bias"}, "i": rows, "w": fixed(table)}, 13)
    given = {"i": rows, "k": named(ints(0, 256, 2, 3, 8, kind=np.int32), "b", "s", None), **{n: scales[n] for n in ("xs", "xz", "ys", "yz")}}
    cast = [byte, node("Cast", ["k"], ["w"], to=TensorProto.UINT8), node("Cast", ["q"], ["y0"], to=TensorProto.INT32)]
    for op in ("QLinearAdd", "QLinearMul"):
        add_nodes(f"{op}/17", [*cast[:2], node(op, ["x", "xs", "xz", "w", "ys", "yz", "ys", "yz"], ["q"], **ms), cast[2]], given, 17)
    for op, more in (("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.2}), ("QLinearSoftmax", {"axis": -1, "opset": 13})):
        small = {**given, "ys": fixed(F32(1 / 128)), "yz": fixed(np.uint8(0 if op == "QLinearSoftmax" else 9))}
        add_nodes(f"{op}/17", [byte, node(op, ["x", "xs", "xz", "ys", "yz"], ["q"], **more, **ms), cast[2]], {k: v for k, v in small.items() if k != "k"}, 17)
    add_nodes("QLinearGlobalAveragePool/17", [byte, node("QLinearGlobalAveragePool", ["x", "xs", "xz", "xs", "xz"], ["q"], channels_last=0, **ms), cast[2]],
              {"i": image, "xs": scales["xs"], "xz": scales["xz"]}, 17)
    add_nodes("QLinearConcat/17", [*cast[:2], node("QLinearConcat", ["ys", "yz", "x", "xs", "xz", "w", "ys", "yz"], ["q"], axis=2, **ms), cast[2]], given, 17)
    chain = [node("DequantizeLinear", ["q", "xs", "xz"], ["v"]), node("Pad", ["x", "pads", "v"], ["y0"])]
    add_nodes("Pad/17/a quantised number", chain, {"x": named(f(2, 3), "b", None), "q": fixed(np.uint8(99)), "pads": fixed(vector(0, 1, 0, 2)),
              "xs": scales["xs"], "xz": scales["xz"]}, 17)
    chain = [node("Slice", ["x", "one", "minus", "one"], ["part"]), node("Shape", ["part"], ["dims"]), node("Equal", ["dims", "minus"], ["free"]),
             node("Where", ["free", "one", "dims"], ["target"]), node("Expand", ["number", "target"], ["y0"])]
    add_nodes("shapes/18/the extent of a part", chain, {"x": named(f(2, 5), "b", "s"), "one": fixed(vector(1)), "minus": fixed(vector(-1)), "number": fixed(f(1))}, 18)
    x, size = named(f(2, 3, 40), "b", "s", None), {"N": 6, "K": 40, "block_size": 16, **ms}
    for bits, zero in ((4, None), (4, ints(0, 256, 12, kind=np.uint8)), (8, ints(0, 256, 18, kind=np.uint8)), (4, f(18, shift=8))):
        packed = fixed(ints(0, 256, 6, 3, 2 * bits, kind=np.uint8))
        case("MatMulNBits", x, packed, fixed(positive(18)), fixed(zero) if zero is not None else None, None, fixed(f(6)), bits=bits, opset=17,
             label=f"{bits} bits, zero {'none' if zero is None else zero.dtype}", **size)
    refused("MatMulNBits", x, fixed(ints(0, 256, 6, 3, 8, kind=np.uint8)), fixed(positive(18)), bits=3, opset=17, label="bits", **size)
    chain = [node("Shape", ["x"], ["s"]), node("ScatterElements", ["s", "at", "by"], ["target"]), node("Expand", ["i", "target"], ["all"]),
             node("GatherElements", ["x", "all"], ["y0"], axis=1)]
    add_nodes("shapes/18/an extent put into a shape", chain, {"x": named(f(2, 5, 3), "b", "s", None), "at": fixed(vector(1)), "by": fixed(vector(2)),
              "i": fixed(vector(3, 0).reshape(1, 2, 1))}, 18)


def ranked():
    for largest in (0, 1):
        case("TopK", named(ints(0, 30, 3, 99), "b", None), fixed(vector(70)), largest=largest, count=2, opset=11, label=f"many with ties, largest {largest}")
    case("TopK", named(f(2, 80, 3), None, None, "s"), fixed(vector(66)), axis=1, count=2, opset=11, label="many of several axes")
    chain = [node("Shape", ["x"], ["shape"]), node("Gather", ["shape", "one"], ["k"]), node("TopK", ["x", "k"], ["y0", "y1"])]
    add_nodes("TopK/11/all of a symbol", chain, {"x": named(f(3, 9), "b", "s"), "one": fixed(vector(1))}, 11, count=2)


def nowhere():
    """Assignments to slices that end before they begin."""
    nothing = lambda *dims: fixed(np.zeros(dims, I64))
    x = named(f(3, 5), "b", None)
    case("ScatterND", x, nothing(0, 1), fixed(np.zeros((0, 5), F32)), opset=18, label="nowhere")
    case("ScatterElements", x, nothing(3, 0), fixed(np.zeros((3, 0), F32)), axis=1, opset=18, label="nowhere")


def deep():
    """Convolutions over three axes whose groups have no axis of their own."""
    x = named(f(2, 4, 3, 5, 4), "b", None, None, None, None)
    case("Conv", x, fixed(f(6, 2, 2, 3, 2)), fixed(f(6)), group=2, pads=[0, 1, 1, 1, 0, 0], strides=[1, 2, 1], opset=11, label="3-d groups of a batch")
    case("Conv", x, fixed(f(4, 1, 3, 3, 3)), fixed(f(4)), group=4, pads=[1] * 6, opset=11, label="3-d depthwise")
    case("Conv", x, fixed(f(8, 1, 1, 3, 3)), group=4, dilations=[1, 2, 1], opset=11, label="3-d multiplier")
    refused("Conv", f(1, 130, 1, 1, 1), fixed(f(65, 2, 1, 1, 1)), group=65, opset=11, label="3-d, many groups")
    for label, w, extra in (
            ("3-d", f(4, 3, 2, 3, 2), {}), ("3-d strided", f(4, 3, 3, 3, 3), {"strides": [2, 1, 2], "pads": [1, 0, 1, 1, 1, 0], "output_padding": [1, 0, 0]}),
            ("3-d tiles", f(4, 3, 2, 2, 1), {"strides": [2, 2, 1]}), ("3-d groups", f(4, 3, 2, 3, 2), {"group": 2, "strides": [1, 2, 1]}),
            ("3-d tiles of groups", f(4, 2, 2, 2, 2), {"group": 2, "strides": [2, 2, 2]}),
            ("3-d depthwise", f(4, 1, 3, 2, 2), {"group": 4, "strides": [2, 2, 2]}), ("3-d tiles, depthwise", f(4, 2, 2, 2, 2), {"group": 4, "strides": [2, 2, 2]})):
        case("ConvTranspose", x, fixed(w), fixed(f(w.shape[1] * extra.get("group", 1))), opset=11, label=label, **extra)


def sampled_otherwise():
    """GridSample by every mode and padding, and over three axes."""
    image, grid = named(f(2, 3, 5, 4), "b", None, "h", "w"), named(f(2, 3, 6, 2, scale=1.5), "b", "r", None, None)
    for mode, padding, corners in (("linear", "reflection", 0), ("linear", "border", 0), ("nearest", "reflection", 1), ("nearest", "border", 0),
                                   ("cubic", "zeros", 1), ("cubic", "border", 0), ("cubic", "reflection", 1)):
        case("GridSample", image, grid, opset=20, mode=mode, padding_mode=padding, align_corners=corners, label=f"{mode}, {padding}, {corners}")
    case("GridSample", f(1, 2, 1, 3), f(1, 4, 3, 2, scale=2), opset=16, mode="bicubic", padding_mode="reflection", label="a row alone")
    image, grid = named(f(1, 2, 3, 4, 5), "b", None, None, None, None), named(f(1, 2, 3, 2, 3, scale=1.2), "b", None, None, None, None)
    for mode, padding, corners in (("linear", "zeros", 0), ("linear", "reflection", 1), ("nearest", "border", 0)):
        case("GridSample", image, grid, opset=20, mode=mode, padding_mode=padding, align_corners=corners, label=f"3-d {mode}, {padding}, {corners}")
    refused("GridSample", f(1, 2, 3, 4, 5), f(1, 2, 3, 2, 3), opset=20, mode="cubic", label="3-d cubic")
    refused("GridSample", f(1, 2, 4, 5), f(1, 2, 3, 2), opset=20, mode="spline", label="mode")


def text(value):
    data = value.encode()
    return struct.pack("<I", len(data)) + data


def tensor(name, value):
    value = np.asarray(value)
    return text(name) + text(TYPES[value.dtype.name]) + struct.pack("<I", value.ndim) + \
        struct.pack(f"<{value.ndim}q", *value.shape) + value.astype(value.dtype.newbyteorder("<")).tobytes()


def main():
    for family in (elementwise, activations, reductions, shapes, shape_arithmetic, inferred_equalities, indices, products,
                   convolutions, resizes, norms, attention, late, quantised, empties, contributed, branches, resizes_of_any_extent, far_bounds, grouped, sampled, folded, ranked, nowhere, deep, sampled_otherwise):
        family()
    with open(sys.argv[1], "wb") as out:
        out.write(b"SMGOPS1\n" + struct.pack("<I", len(cases)))
        for name, model, inputs, outputs in cases:
            out.write(text(name) + struct.pack("<I", len(model)) + model)
            for group in (inputs, outputs):
                out.write(struct.pack("<I", len(group)))
                for item in group:
                    out.write(tensor(*item))
    print(f"{len(cases)} cases, onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}")


main()
