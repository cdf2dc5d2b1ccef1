#!/usr/bin/python3
"""A kube-apiserver for envtest that is behind a watch tier: starts the real one at another port, and the tier at the port that
the flags name. Both have the certificates and the authority of clients that envtest made. Ends both with SIGTERM, and appends a
line of JSON to the file that VIGIL_TIER_REPORT names: how the tier ended and what it did."""
import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/live"))
from server import Server, free_port  # noqa: E402
from tier import Caller, write_kubeconfig  # noqa: E402

KUBE = pathlib.Path(os.environ.get("VIGIL_KUBE", ROOT / "build/kube"))
TOKEN = "the-tier"
ROW = re.compile(r"^(vigil_tier_\w+)(?:\{[^}]*\})? (\S+)$", re.M)
PR_SET_PDEATHSIG = 1


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Tier(Server):
    def __init__(self, folder, port, upstream, flags):
        super().__init__(folder / "tier", port=port, limits=die_with_parent)
        self.metrics_port = free_port()
        self.kubeconfig = write_kubeconfig(folder / "tier.kubeconfig", f"https://127.0.0.1:{upstream}", token=TOKEN)
        self.flags = flags

    def command(self):
        return [self.binary, "serve", "--data-dir", self.directory, f"--upstream-kubeconfig={self.kubeconfig}",
                f"--listen-kube-urls=https://127.0.0.1:{self.port}", f"--listen-metrics-urls=http://127.0.0.1:{self.metrics_port}",
                f"--cert-file={self.flags['cert-dir']}/apiserver.crt", f"--key-file={self.flags['cert-dir']}/apiserver.key",
                f"--kube-client-ca-file={self.flags['client-ca-file']}"]

    def counts(self):
        """The sums of the rows of its own metrics."""
        page = subprocess.run(["curl", "-sS", f"http://127.0.0.1:{self.metrics_port}/metrics"], check=True, capture_output=True, text=True)
        found = {}
        for name, value in ROW.findall(page.stdout):
            found[name] = found.get(name, 0) + float(value)
        return found


def main():
    if "--help" in sys.argv:  # envtest looks for a flag there
        os.execv(KUBE / "kube-apiserver", sys.argv)
    flags = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:])
    folder, port = pathlib.Path(flags["cert-dir"]), free_port()
    tokens = folder / "tokens.csv"
    tokens.write_text(f"{TOKEN},tier,tier,system:masters\n")
    words = [word for word in sys.argv[1:] if not word.startswith("--secure-port=")]
    apiserver = subprocess.Popen([str(KUBE / "kube-apiserver"), *words, f"--secure-port={port}", f"--token-auth-file={tokens}"],
                                 preexec_fn=die_with_parent)
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    caller = Caller(port, TOKEN)
    while not stopped and apiserver.poll() is None:
        try:
            if caller.get("/readyz")[0] == 200:
                break
        except OSError:
            pass
        time.sleep(0.1)
    tier = Tier(folder, int(flags["secure-port"]), port, flags)
    report = {"end": "it did not start"}
    if not stopped and apiserver.poll() is None:
        tier.start()
        while not stopped and tier.alive() and apiserver.poll() is None:
            time.sleep(0.1)
        report["end"] = "clean"
        try:
            report["counts"] = tier.counts()
            tier.stop()
        except (AssertionError, subprocess.CalledProcessError) as e:
            report["end"] = f"{e}\n{tier.log}"
    apiserver.terminate()
    apiserver.wait()
    if "VIGIL_TIER_REPORT" in os.environ:
        with open(os.environ["VIGIL_TIER_REPORT"], "a", encoding="utf-8") as file:
            file.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
