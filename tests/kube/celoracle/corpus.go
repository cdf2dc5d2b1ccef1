package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	testpb "cel.dev/expr/conformance/test"
	"github.com/google/cel-go/cel"

	"vigil/tests/kube/subject"
)

// The inputs of the fuzzers (fuzz/corpus/cel_*, and what they have found in build-fuzz/state) with the variables of fuzz_cel_eval.c.
// What cannot be the same is not asked for: inputs that Vigil refuses because of a limit of its own, keys that Kubernetes' maps should
// not have either, the objects that cel_oracle always knows, and very long inputs.
const corpusLengthMax = 4000

var (
	refusedByLimits = []string{"too complex", "not enough memory", "operation cancelled", "are too large", "unsupported key type"}
	objectsOfOracle = regexp.MustCompile(`\b[TUSR]\b`)
)

func corpusVariables(text string) *conformance {
	self := map[string]any{
		"spec": map[string]any{"replicas": 3, "names": []any{"a", "é", "b"}, "ratio": 2.5, "on": true, "none": nil,
			"limits": map[string]any{"cpu": "100m", "memory": "1Gi"}},
		"k": []any{[]any{1, 2}, []any{}, []any{3}},
	}
	return &conformance{
		test:      &testpb.SimpleTest{Expr: text},
		variables: "x int\na list(int)\ny string\nn dyn\nself dyn\n",
		bindings: "x 7\na [1]\ny 'héllo, 10.0.0.1'\nn dyn(null)\nself {'spec': dyn({'replicas': dyn(3), 'names': dyn(['a', 'é', 'b']), 'ratio': dyn(2.5), " +
			"'on': dyn(true), 'none': dyn(null), 'limits': dyn({'cpu': '100m', 'memory': '1Gi'})}), 'k': dyn([[1, 2], [], [3]])}\n",
		options: []cel.EnvOption{cel.Variable("x", cel.IntType), cel.Variable("a", cel.ListType(cel.IntType)), cel.Variable("y", cel.StringType),
			cel.Variable("n", cel.DynType), cel.Variable("self", cel.DynType)},
		values: map[string]any{"x": 7, "a": []int64{1}, "y": "héllo, 10.0.0.1", "n": nil, "self": self},
	}
}

func isRefusedByLimit(answer string) bool {
	for _, part := range refusedByLimits {
		if strings.Contains(answer, part) {
			return true
		}
	}
	return false
}

func runCorpus(path string, folders []string) {
	program := subject.Start(path)
	asked, evaluated, refused, wrong, other := 0, 0, 0, 0, 0
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*"))
		must(err)
		for _, file := range files {
			bytes, err := os.ReadFile(file)
			must(err)
			text := string(bytes)
			if len(text) > corpusLengthMax || !utf8.ValidString(text) || objectsOfOracle.MatchString(text) {
				continue
			}
			c := corpusVariables(text)
			good, bytes := program.Ask('v', []byte(c.variables), []byte(c.bindings), bytes)
			answer := string(bytes)
			if isRefusedByLimit(answer) {
				refused++
				continue
			}
			asked++
			sameGood, same := c.kubernetes()
			// What is found first in a text without any syntax depends on how far a parser looks ahead.
			if !good && strings.Contains(same, "Syntax error: ") {
				if firstError(answer) != firstError(same) {
					other++
				}
				continue
			}
			if sameGood {
				evaluated++
			}
			if good != sameGood || answer != same {
				wrong++
				if wrong <= 20 {
					fmt.Printf("%s %q\n  wants %s\n  gets  %s\n", file, text, same, answer)
				}
			}
		}
	}
	fmt.Printf("%d inputs, %d of them evaluated, %d beyond limits: %d wrong, %d with another first error\n", asked, evaluated, refused, wrong, other)
	if asked == 0 {
		log.Fatal("there are no inputs")
	}
	if wrong > 0 {
		os.Exit(1)
	}
}
