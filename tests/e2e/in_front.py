#!/usr/bin/python3
"""Starts an etcd, and becomes a Vigil in front of it: in_front.py ETCD VIGIL FLAG...

The etcd has its data beside Vigil's and ends with it. Flags of the store and of peers are etcd's."""
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

PR_SET_PDEATHSIG = 1
START_SECONDS = 30
# Vigil is not a member, and stores nothing.
THEIRS = ("--quota-backend-bytes", "--max-txn-ops", "--auto-compaction-mode", "--auto-compaction-retention",
          "--auth-token", "--bcrypt-cost", "--snapshot-count", "--initial-cluster", "--initial-cluster-state",
          "--initial-cluster-token", "--initial-advertise-peer-urls", "--listen-peer-urls", "--peer-cert-file",
          "--peer-key-file", "--peer-trusted-ca-file", "--peer-auto-tls", "--peer-client-cert-auth")
BOTH = ("--name",)


def split(flags):
    """The flags of Vigil, and those of the etcd."""
    own, theirs, flags = [], [], list(flags)
    while flags:
        name, equals, _ = flags[0].partition("=")
        count = 2 if not equals and len(flags) > 1 and not flags[1].startswith("--") else 1
        taken, flags = flags[:count], flags[count:]
        if name in THEIRS + BOTH:
            theirs += taken
        if name not in THEIRS and name != "--enable-v2":
            own += taken
    return own, theirs


def value_of(flags, name):
    for flag, following in zip(flags, [*flags[1:], ""]):
        if flag == name:
            return following
        if flag.startswith(f"{name}="):
            return flag.partition("=")[2]
    return os.environ.get(f"ETCD_{name.strip('-').upper().replace('-', '_')}", "default.etcd")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start_etcd(binary, directory, flags):
    client = f"http://127.0.0.1:{free_port()}"
    env = {name: value for name, value in os.environ.items() if not name.startswith("ETCD_")}
    subprocess.Popen([binary, "--data-dir", f"{directory}.upstream", "--listen-client-urls", client,
                      "--advertise-client-urls", client, *flags], env=env, stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL, preexec_fn=die_with_parent)
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", int(client.rpartition(":")[2]))) == 0:
                return client
        time.sleep(0.01)
    sys.exit("in_front: etcd does not listen")


def announce(url):
    """Prints the word of a member that the tests wait for, when the mirror is complete: in a process of its own."""
    if os.fork():
        return
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and os.getppid() != 1:
        try:
            urllib.request.urlopen(f"{url}/readyz", timeout=1).close()
            break
        except (urllib.error.URLError, OSError):
            time.sleep(0.01)
    print("published", flush=True)
    os._exit(0)


def main():
    etcd, vigil, *flags = sys.argv[1:]
    if any(flag in ("--version", "--help", "-h") for flag in flags):
        os.execv(vigil, [vigil, *flags])
    own, theirs = split(flags)
    client = start_etcd(etcd, value_of(flags, "--data-dir"), theirs)
    pages = f"http://127.0.0.1:{free_port()}"
    if not any(flag.startswith("--listen-metrics-urls") for flag in own):
        own += ["--listen-metrics-urls", pages]
        announce(pages)
    else:
        print("published", flush=True)
    os.execv(vigil, [vigil, *own, "--upstream-endpoints", client, "--upstream-user", os.environ["UPSTREAM_USER"]])


main()
