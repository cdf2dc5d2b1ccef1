#!/usr/bin/python3
"""Compares our protobuf codec, strategic merge patches and strict validation with recorded answers of Kubernetes' own code.

    kube_oracle.py KUBE_ORACLE_PROGRAM [CASES]

The cases were recorded by (cd tests/kube && go run ./oracle record 300 7) > tests/kube_oracle.jsonl. Where the Go modules
are available, go run ./oracle check PROGRAM COUNT SEED compares any number of other cases directly.
"""
import base64
import json
import pathlib
import re
import sys

from oracle import Program

CASES = pathlib.Path(__file__).with_name("kube_oracle.jsonl")


def without_nulls(value):
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return [without_nulls(v) for v in value] if isinstance(value, list) else value


def check_protobuf(program, case):
    """Converts Go's protobuf to JSON, then that to protobuf and back, where Go's null pointers are lost."""
    ok, got = program.ask("d", base64.b64decode(case["bytes"]))
    if not ok or json.loads(got) != case["want"]:
        return got
    ok, wire = program.ask("e", json.dumps(case["want"]).encode())
    ok, got = program.ask("d", wire) if ok else (ok, wire)
    if not ok or without_nulls(json.loads(got)) != without_nulls(case["want"]):
        return got
    return None


# In these messages Go prints lists and maps in more detail than Vigil.
SHORTENED = ("The order in patch list", "list element types are not identical", "unknown patch type", "map: ")


def check_patch(program, case):
    texts = [case["apiVersion"], case["kind"], json.dumps(case["object"]), json.dumps(case["patch"])]
    ok, got = program.ask("p", *(t.encode() for t in texts))
    if "error" not in case:
        return None if ok and json.loads(got) == case["want"] else got
    known = next((s for s in SHORTENED if case["error"].startswith(s)), case["error"])
    return None if not ok and got.decode().startswith(known) else got


# Inlined structs, which Go names in the path of a value although JSON has no such level.
INLINED = re.compile(r"(PersistentVolumeSource|VolumeSource|ProbeHandler|EphemeralContainerCommon|DeviceConfiguration|"
                     r"IngressRuleValue|LocalObjectReference)\.")


def check_strict(program, case):
    """Compares the messages up to the name of the Go type, because our table lacks the names of Go's string types."""
    _, got = program.ask("s", case["apiVersion"].encode(), case["kind"].encode(), json.dumps(case["object"]).encode())
    wanted = INLINED.sub("", case.get("error", "")).partition(" of type ")[0]
    return None if got.decode().partition(" of type ")[0] == wanted else got


CHECKS = {"d": check_protobuf, "p": check_patch, "s": check_strict}


def main():
    program = Program(sys.argv[1])
    lines = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else CASES).read_text().splitlines()
    wrong = 0
    for number, line in enumerate(lines, 1):
        case = json.loads(line)
        got = CHECKS[case["op"]](program, case)
        if got is not None:
            wrong += 1
            print(f"case {number}: {line[:2000]}\n  got {got!r}")
    program.process.stdin.close()
    ended = program.process.wait()
    print(f"{len(lines)} cases, {wrong} wrong")
    sys.exit(1 if wrong or ended else 0)


if __name__ == "__main__":
    main()
