#!/usr/bin/env python3
"""Measures what a trace costs: processor time of `brolga run --trace` divided by that of `brolga run`, kernel by kernel.

    $ tests/trace_overhead.py [BROLGA] [ROUNDS]

The two take turns, and each has a process of its own; the ratio is that of the medians. Nothing is asserted: read the table on a machine that has
nothing else to do. Not part of `.ci/run`.
"""
import os
import statistics
import sys

BROLGA = sys.argv[1] if len(sys.argv) > 1 else "target/release/brolga"
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 11
KERNELS = {
    "fib": "run(34, 4)",
    "mandel": "run(1000, 0)",
    "quicksort": "run(5000, 200)",
    "nbody": "run(1000000, 0)",
    "nqueens": "run(13, 0)",
    "sha256": "run(65536, 200)",
    "binary_trees": "run(17, 0)",
    "sort_cmp": "run(20000, 60)",
    "exceptions": "run(30000000, 1000)",
}


def cpu(args):
    """Seconds of processor time of a process, or None if it failed."""
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.execv(BROLGA, [BROLGA, *args])
    _, status, usage = os.wait4(pid, 0)
    return usage.ru_utime + usage.ru_stime if status == 0 else None


def main():
    trace = f"/tmp/trace-overhead-{os.getpid()}.json"
    ratios = []
    for how in ([], ["--tiered", "100"]):
        for name, call in KERNELS.items():
            base = ["run", *how, "--call", call, f"examples/{name}.jlir"]
            times = {False: [], True: []}
            for n in range(2 * ROUNDS):
                traced = n % 4 in (1, 2)
                took = cpu(base + (["--trace", trace] if traced else []))
                if took is None:
                    sys.exit(f"{name} failed")
                times[traced].append(took)
            plain, traced = (statistics.median(times[key]) for key in (False, True))
            size = os.path.getsize(trace)
            ratios.append(traced / plain)
            print(f"{name:14}{' '.join(how) or 'native':14}{plain * 1e3:9.1f} ms{traced / plain:8.3f}{size:10} bytes", flush=True)
    os.remove(trace)
    print(f"median {statistics.median(ratios):.3f}, largest {max(ratios):.3f}")


main()
