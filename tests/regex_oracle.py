#!/usr/bin/python3
"""Compares our regular expressions with recorded answers of Go's regexp.

    regex_oracle.py REGEX_ORACLE_PROGRAM [CASES]

The cases were recorded by (cd tests/kube && go run ./regexoracle record 1500 7) > tests/regex_oracle.jsonl. Where the Go modules
are available, go run ./regexoracle check PROGRAM COUNT SEED compares any number of other cases directly.
"""
import json
import pathlib
import sys

from oracle import Program

CASES = pathlib.Path(__file__).with_name("regex_oracle.jsonl")


def main():
    program = Program(sys.argv[1])
    lines = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else CASES).read_text().splitlines()
    wrong = 0
    for number, line in enumerate(lines, 1):
        pattern, text, *wanted = json.loads(line)
        good, got = program.ask("m", pattern.encode(), text.encode())
        if [good, got.decode()] != wanted:
            wrong += 1
            print(f"line {number}: {line}\n  got {got!r}")
    program.process.stdin.close()
    ended = program.process.wait()
    print(f"{len(lines)} cases: {wrong} wrong")
    sys.exit(1 if wrong or ended or not lines else 0)


if __name__ == "__main__":
    main()
