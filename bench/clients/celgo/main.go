// What the evaluation of an expression costs with cel-go, in microseconds, with its cost counted, as a kube-apiserver does it.
// The expressions and variables are those of bench/layers/cel_bench.c, and so is the output.
package main

import (
	"encoding/json"
	"log"
	"os"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

const rounds, items = 50, 1000

var samples = []struct {
	name, text string
	times      int
}{
	{"rule", "self.replicas <= self.max", 2000},
	{"all", "self.items.all(x, x >= 0)", 20},
	{"map", "self.items.map(x, x + 1).size() == 1000", 20},
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func measure(env *cel.Env, text string, times int, variables map[string]any) float64 {
	checked, issues := env.Compile(text)
	must(issues.Err())
	program, err := env.Program(checked, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(1000000), cel.InterruptCheckFrequency(100))
	must(err)
	best := 1e18
	for range rounds {
		start := time.Now()
		for range times {
			value, _, err := program.Eval(variables)
			must(err)
			if value != types.True {
				log.Fatalf("%s is %v", text, value)
			}
		}
		best = min(best, float64(time.Since(start).Nanoseconds())/float64(times)/1000)
	}
	return best
}

func main() {
	env, err := cel.NewEnv(cel.Variable("self", cel.DynType))
	must(err)
	list := make([]any, items)
	for i := range list {
		list[i] = int64(i)
	}
	variables := map[string]any{"self": map[string]any{"replicas": int64(3), "max": int64(10), "items": list}}
	found := map[string]float64{}
	for _, s := range samples {
		found[s.name] = measure(env, s.text, s.times, variables)
	}
	must(json.NewEncoder(os.Stdout).Encode(found))
}
