"""What is measured of expressions (CEL): their evaluation in Vigil and with cel-go, which a kube-apiserver uses. The same
expressions and variables, with their cost counted: bench/layers/cel_bench.c and bench/clients/celgo."""
import json

from sidebyside import servers

NAMES = ("rule", "all", "map")


class Expressions:
    """The program that evaluates them; nothing is served."""

    def __init__(self, name, programs):
        self.name, self.program = name, programs.expressions[name]

    def run(self):
        if not self.program:
            raise servers.Failed("the program that evaluates expressions could not be built")
        return json.loads(servers.run_tool([self.program]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def evaluate(expressions):
    found = expressions.run()
    return {f"cel_{name}.us": found[name] for name in NAMES}
