"""Runs a bundle from Python, by ctypes and numpy: run_bundle.py libsmg-rt.so minilm.smgb input_ids 101 7592 102

Prints what run_bundle prints. The first argument is the shared library, installed or not."""

import ctypes
import sys

import numpy

Pointer, Text = ctypes.c_void_p, ctypes.c_char_p


class Tensor(ctypes.Structure):  # smg_tensor of smg/tensor.h
    _fields_ = [("name", Text), ("type", Text), ("rank", ctypes.c_int), ("dims", ctypes.c_int64 * 8)]
    _fields_ += [("data", Pointer), ("bytes", ctypes.c_size_t), ("on", Pointer)]


smg = ctypes.CDLL(sys.argv[1])
smg.smg_context_error.restype = smg.smg_model_class.restype = Text
ctx, model, first = Pointer(), Pointer(), Tensor()


def check(status):
    if status != 0:
        sys.exit(smg.smg_context_error(ctx).decode() if ctx else "no context")


ids = numpy.array([[int(word) for word in sys.argv[4:]]], dtype=numpy.int32)
check(smg.smg_context_create(None, ctypes.byref(ctx)))
check(smg.smg_model_open_bundle(ctx, sys.argv[2].encode(), None, ctypes.byref(model)))
smg.smg_model_output(model, 0, ctypes.byref(first))
given = Tensor(sys.argv[3].encode(), b"i32", ids.ndim, ids.shape, ids.ctypes.data, ids.nbytes)
out = Tensor(first.name)
check(smg.smg_model_run(model, ctypes.byref(given), 1, ctypes.byref(out), 1))
# The model's memory, until its next run: a copy is Python's.
values = numpy.ctypeslib.as_array(ctypes.cast(out.data, ctypes.POINTER(ctypes.c_float)), out.dims[: out.rank]).copy()
name, kind = out.name.decode(), smg.smg_model_class(model).decode()
print(f"{name} by class {kind}: {values.flat[0]:g} {values.flat[1]:g} ..")
smg.smg_model_close(model)
smg.smg_context_destroy(ctx)
