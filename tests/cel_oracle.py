#!/usr/bin/python3
"""Compares our implementation of the Common Expression Language with recorded answers of cel-go.

    cel_oracle.py CEL_ORACLE_PROGRAM [CASES]

The cases were recorded by (cd tests/kube && go run ./celoracle record 1200 7) > tests/cel_oracle.jsonl. Where the Go modules
are available, go run ./celoracle check PROGRAM COUNT SEED compares any number of other cases directly.
"""
import json
import pathlib
import sys

from oracle import Program

CASES = pathlib.Path(__file__).with_name("cel_oracle.jsonl")


def first_error(text):
    """Behind a syntax error cel-go's parser tries to continue, and may report more than Vigil."""
    return text.split("\nERROR: ")[0]


def main():
    program = Program(sys.argv[1])
    head, *lines = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else CASES).read_text().splitlines()
    head = json.loads(head)
    before = {"p": [], "c": [head["variables"]], "e": [head["valueTypes"], head["values"]],
              "o": [head["valueTypes"], head["values"]], "s": [head["sizedVariables"]]}
    wrong = other = 0
    for number, line in enumerate(lines, 2):
        case = json.loads(line)
        texts = before[case["op"]] + [case["expr"]]
        good, got = program.ask(case["op"], *(text.encode() for text in texts))
        got = got.decode()
        if good != ("error" not in case) or (good and got != case["want"]):
            wrong += 1
        elif not good and case["op"] != "p" and got != case["error"]:
            wrong += 1
        elif not good and first_error(got) != first_error(case["error"]):
            other += 1
        else:
            continue
        print(f"line {number}: {line[:2000]}\n  got {got!r}")
    program.process.stdin.close()
    ended = program.process.wait()
    print(f"{len(lines)} cases: {wrong} wrong, {other} with another first error")
    # Which syntax error is found first depends on how far a parser looks ahead.
    sys.exit(1 if wrong or ended or not lines or other > len(lines) // 100 else 0)


if __name__ == "__main__":
    main()
