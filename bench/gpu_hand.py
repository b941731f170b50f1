"""Kernels written by hand, of a folder that scripts/gpu-bench.sh packed with --reference, as a peer: gpu_rows.BY_HAND tells which
job is which row. The folder's runner, `run JOBS FOLDER`, reads FOLDER/JOB.spv, compares the result with double, and prints the
device's name and a line of a table for each job. Each job has a process of its own: one that loses the device is not the
others' end."""
import glob
import math
import os
import subprocess

CELLS = ("name", "us", "best", "rate", "registers", "shared", "local", "compile_ms", "mhz", "watts", "error")


def line_of(folder, job):
    """Of the job in the folder's lists."""
    for path in sorted(glob.glob(os.path.join(folder, "jobs_*.txt"))):
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.split("|")[0].strip() == job:
                    return line
    return None


def told_of(output, job, device):
    """What a row tells of it; `device`: on which it should have run."""
    lines = output.splitlines()
    ran_on = lines[0].split(", Vulkan ")[0] if lines else ""
    if ran_on != device:
        return {"failed": f"the runner took {ran_on or 'no device'}, not {device}"}
    for line in lines:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[0] != job:
            continue
        if len(cells) != len(CELLS):
            return {"failed": " ".join(cells[1:])[:200]}
        found = {name: float(cell) for name, cell in zip(CELLS, cells, strict=True) if name in ("us", "mhz", "watts", "error")}
        told = {"us": found["us"], "mhz": found["mhz"] or None, "watts": found["watts"] or None}
        if not found["error"] < 0:  # below: the runner has nothing to compare with
            told.update(error=found["error"], finite=not math.isnan(found["error"]))
        return told
    return {"failed": "the runner told nothing of it"}


def measure(folder, job, work, device, seconds, quick):
    """quick: one dispatch, compared with double."""
    line = line_of(folder, job)
    if line is None:
        return {"failed": f"no job {job}"}
    jobs = os.path.join(work, "job.txt")
    with open(jobs, "w", encoding="utf-8") as file:
        file.write(line)
    environment = {**os.environ, **({"QUICK": "1"} if quick else {})}
    try:
        done = subprocess.run([os.path.join(folder, "run"), jobs, folder], capture_output=True, text=True, check=False,
                              timeout=seconds, env=environment)
    except (OSError, subprocess.TimeoutExpired) as failure:
        return {"failed": str(failure).splitlines()[0][:200]}
    if done.returncode != 0:
        return {"failed": (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1][:200]}
    return told_of(done.stdout, job, device)
