"""torch.compile (with CUDA graphs) of rows of the GPU table in f16: gpu_compiled.py WORK NAME ...; prints a line of JSON for
each row as it is done. A process of its own, because a compilation cannot be stopped."""
import json
import os
import sys
import tempfile

import torch

import gpu_bench
import gpu_models
import gpu_peers
import gpu_rows


def case_of(row, work):
    if row["part"] == "subgraphs":
        return gpu_peers.Subgraph(row, gpu_bench.GRAPHS, work, "cuda")
    return gpu_models.Model(row, gpu_models.Made(row["graph"], work, "cuda", saved=None), work, "cuda")


def main():
    work = tempfile.mkdtemp(dir=sys.argv[1])
    rows = {row["name"]: row for row in gpu_rows.ROWS}
    for name in sys.argv[2:]:
        with torch.no_grad():
            try:
                function, arguments = case_of(rows[name], work).compiled()
                compiled = torch.compile(function, mode="reduce-overhead")
                told = {"us": gpu_bench.microseconds_of(torch, lambda: compiled(*arguments))}
            except Exception as failure:  # noqa: any library's
                told = {"failed": (str(failure) or repr(failure)).splitlines()[0][:200]}
        print(json.dumps(told), flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
