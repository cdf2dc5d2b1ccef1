"""Where and with what a run was made, so that its numbers can be read later."""
import datetime
import os
import pathlib
import platform
import re
import statistics
import subprocess
import time

SYNCS = 200


def first_match(path, pattern, otherwise="unknown"):
    try:
        found = re.search(pattern, pathlib.Path(path).read_text(), re.M)
    except OSError:
        found = None
    return found.group(1).strip() if found else otherwise


def output_of(words):
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.strip().splitlines()[0] if done.returncode == 0 and done.stdout else "unknown"


def sync_us(directory):
    """Median fdatasync of 4 KiB over a preallocated file: the floor under every lone put."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "sync-probe"
    times = []
    with open(path, "wb", buffering=0) as file:
        file.write(bytes(4096 * SYNCS))
        os.fsync(file.fileno())
        file.seek(0)
        for _ in range(SYNCS):
            began = time.monotonic_ns()
            file.write(b"x" * 4096)
            os.fdatasync(file.fileno())
            times.append((time.monotonic_ns() - began) / 1e3)
    path.unlink()
    return statistics.median(times)


def describe(root, bench):
    commands = bench.programs.command
    model = first_match("/proc/cpuinfo", r"^model name\s*:\s*(.*)$", platform.machine())
    memory_kb = int(first_match("/proc/meminfo", r"^MemTotal:\s*(\d+)", "0"))
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": len(os.sched_getaffinity(0)),
        "cpu": model,
        "architecture": platform.machine(),
        "memory_gb": round(memory_kb / 1e6, 1),
        "kernel": platform.release(),
        "filesystem": output_of(["stat", "-f", "-c", "%T", str(root)]),
        "fdatasync_us": round(sync_us(bench.directory), 1),
        "load_average": os.getloadavg()[0],
        "commit": output_of([str(root / "tools/commit-name")]),
        "vigil": output_of([commands["vigil"][0], "--version"]),
        "etcd": output_of([commands["etcd"][0], "--version"]),
    }
