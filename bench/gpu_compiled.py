"""torch.compile (with CUDA graphs) of rows of the GPU table in f16: gpu_compiled.py WORK DEVICE; the rows stand in
WORK/compiled.json. Prints a line of JSON for each row as it is done. A process of its own, because a compilation cannot be
stopped. Without CUDA a row is compiled and compared with double, but not timed."""
import json
import os
import sys
import tempfile

import torch

import gpu_bench
import gpu_models
import gpu_peers


def case_of(row, work, device):
    if row["part"] == "subgraphs":
        return gpu_peers.Subgraph(row, gpu_bench.GRAPHS, work, device)
    return gpu_models.Model(row, gpu_models.Made(row["graph"], work, device, saved=None), work, device)


def told_of(row, work, device):
    case = case_of(row, work, device)
    function, arguments = case.compiled()
    for tensors in arguments:
        for tensor in tensors.values():  # else CUDA graphs copy inputs and weights in each call
            torch._dynamo.mark_static_address(tensor)
    compiled = torch.compile(function, mode="reduce-overhead")

    def call():
        return compiled(*arguments)

    us = {"us": gpu_bench.microseconds_of(torch, call)} if device == "cuda" else {"failed": gpu_bench.NO_CUDA}
    return {**us, **gpu_bench.checked(case, "f16", call)}


def main():
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    folder, device = sys.argv[1:]
    with open(os.path.join(folder, "compiled.json"), encoding="utf-8") as file:
        rows = json.load(file)
    work = tempfile.mkdtemp(dir=folder)
    for row in rows:
        with torch.no_grad():
            try:
                told = told_of(row, work, device)
            except Exception as failure:  # noqa: any library's
                told = {"failed": gpu_bench.first_line(failure)}
        print(json.dumps(told), file=out, flush=True)
        torch.compiler.reset()  # the next row is one of fixed sizes again, not of a function whose sizes change
        if device == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
