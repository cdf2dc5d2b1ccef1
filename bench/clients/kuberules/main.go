// What the rules of custom resources cost with Kubernetes' own library: compiled, for the definition in the given file (JSON), and
// evaluated for a write. bench/layers/rules_bench.c does the same with Vigil and has the same output.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"runtime"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

const (
	compileRounds  = 5
	evaluateRounds = 50
	evaluations    = 2000
	simple         = `{"type": "object", "properties": {"replicas": {"type": "integer"}, "max": {"type": "integer"}},
		"x-kubernetes-validations": [{"rule": "self.replicas <= self.max"}]}`
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func structural(props *apiextensionsv1.JSONSchemaProps) *schema.Structural {
	var internal apiextensions.JSONSchemaProps
	must(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, &internal, nil))
	made, err := schema.NewStructural(&internal)
	must(err)
	return made
}

// The schema of the version that is stored.
func stored(file string) *schema.Structural {
	var definition apiextensionsv1.CustomResourceDefinition
	text, err := os.ReadFile(file)
	must(err)
	must(json.Unmarshal(text, &definition))
	for _, version := range definition.Spec.Versions {
		if version.Storage {
			return structural(version.Schema.OpenAPIV3Schema)
		}
	}
	log.Fatalf("%s: no version is stored", file)
	return nil
}

func countRules(s *schema.Structural) int {
	if s == nil {
		return 0
	}
	count := len(s.XValidations) + countRules(s.Items)
	for _, property := range s.Properties {
		count += countRules(&property)
	}
	if s.AdditionalProperties != nil {
		count += countRules(s.AdditionalProperties.Structural)
	}
	return count
}

func heapBytes() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// Milliseconds, and the bytes that the programs hold.
func compile(s *schema.Structural) (float64, int64) {
	best, bytes := 1e18, int64(0)
	for range compileRounds {
		before := heapBytes()
		start := time.Now()
		validator := cel.NewValidator(s, true, celconfig.PerCallLimit)
		best = min(best, float64(time.Since(start).Nanoseconds())/1e6)
		bytes = heapBytes() - before
		runtime.KeepAlive(validator)
	}
	return best, bytes
}

// Microseconds for the rules of one object.
func evaluate() float64 {
	var props apiextensionsv1.JSONSchemaProps
	must(json.Unmarshal([]byte(simple), &props))
	s := structural(&props)
	validator := cel.NewValidator(s, false, celconfig.PerCallLimit)
	object := map[string]any{"replicas": int64(3), "max": int64(10)}
	best := 1e18
	for range evaluateRounds {
		start := time.Now()
		for range evaluations {
			errors, left := validator.Validate(context.Background(), nil, s, object, nil, celconfig.RuntimeCELCostBudget)
			if len(errors) > 0 || left == celconfig.RuntimeCELCostBudget {
				log.Fatal(errors, left)
			}
		}
		best = min(best, float64(time.Since(start).Nanoseconds())/1e3/evaluations)
	}
	return best
}

func main() {
	s := stored(os.Args[1])
	rules := countRules(s)
	milliseconds, bytes := compile(s)
	must(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"rules": rules, "compile_ms": milliseconds, "bytes_of_rule": bytes / int64(rules), "rule_us": evaluate()}))
}
