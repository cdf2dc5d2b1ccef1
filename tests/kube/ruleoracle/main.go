// Compares the rules of custom resources (x-kubernetes-validations) with Kubernetes' own validators: random schemas with random
// rules, and random objects, each with an older one.
//
//	go run ./ruleoracle check PROGRAM COUNT SEED    compares the answers of kube_oracle; COUNT is the number of expressions
//	go run ./ruleoracle write COUNT SEED            writes definitions and objects for same_rules_test.py
//	go run ./ruleoracle published PROGRAM           compares the definitions that it reads, by errors and costs
//	go run ./ruleoracle try PROGRAM                 shows both answers to lines {"schema":…,"object":…,"old":…,"rules":[…]}; the
//	                                                rules, which may be left out, replace those of .spec, each for itself
//
// A definition is compared by its errors and by what each rule may cost; an object by its errors, warnings and costs. Rules that
// are refused are left out before objects are validated.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"vigil/tests/kube/subject"
)

const objectsPerSchema = 6

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func sorted[T any](of map[string]T) []string {
	return slices.Sorted(maps.Keys(of))
}

func encoded(value any) []byte {
	text, err := json.Marshal(value)
	must(err)
	return text
}

// The value as the server reads it.
func decoded(value any) any {
	if value == nil {
		return nil
	}
	var read any
	must(kubejson.Unmarshal(encoded(value), &read))
	return read
}

type counts struct {
	schemas, rules, wrongRules, dear, refused, objects, failed, warned, outOfBudget, different int
}

type check struct {
	maker
	program *subject.Program
	counts
}

func (c *check) differs(format string, values ...any) {
	c.different++
	if c.different <= 20 {
		fmt.Printf(format+"\n", values...)
	}
}

// Returns Kubernetes' costs of the rules.
func (c *check) definition(written *v1.CustomResourceDefinition) []cost {
	errors, costs := judgeDefinition(written)
	_, text := c.program.Ask('c', encoded(written))
	var got struct {
		Errors []string
		Costs  []cost
	}
	must(json.Unmarshal(text, &got))
	for i, text := range got.Errors {
		got.Errors[i] = selfType.ReplaceAllString(text, "selfType")
	}
	slices.Sort(got.Errors)
	slices.SortFunc(got.Costs, func(a, b cost) int { return strings.Compare(a.Field, b.Field) })
	// Go visits properties in any order, which decides between rules that are equally dear.
	for again := 0; again < 30 && !slices.Equal(errors, got.Errors); again++ {
		errors, costs = judgeDefinition(written)
	}
	if !slices.Equal(errors, got.Errors) {
		c.differs("definition %s\n  wants %q\n  gets  %q", encoded(written.Spec), errors, got.Errors)
	}
	// Rules of a schema that has other errors are not compiled.
	known := slices.DeleteFunc(slices.Clone(costs), func(one cost) bool {
		return len(errors) > 0 && !slices.ContainsFunc(got.Costs, func(other cost) bool { return one.Field == other.Field })
	})
	if !slices.Equal(known, got.Costs) {
		c.differs("definition %s\n  wants %v\n  gets  %v", encoded(written.Spec), known, got.Costs)
	}
	c.rules += len(costs)
	for _, one := range costs {
		if one.Wrong {
			c.wrongRules++
		} else if one.Cost > 10000000 {
			c.dear++
		}
	}
	if len(errors) > 0 {
		c.refused++
	}
	return costs
}

// Removes the rules that are wrong.
func (c *check) drop(s *schema, costs []cost, path *field.Path) {
	kept := s.XValidations[:0:0]
	for i, rule := range s.XValidations {
		at := path.Child("x-kubernetes-validations").Index(i).String()
		if !slices.ContainsFunc(costs, func(one cost) bool { return one.Wrong && strings.HasPrefix(one.Field, at+".") }) {
			kept = append(kept, rule)
		}
	}
	s.XValidations = kept
	for _, name := range sorted(s.Properties) {
		property := s.Properties[name]
		c.drop(&property, costs, path.Child("properties").Key(name))
		s.Properties[name] = property
	}
	if s.Items != nil {
		c.drop(s.Items.Schema, costs, path.Child("items"))
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		c.drop(s.AdditionalProperties.Schema, costs, path.Child("additionalProperties"))
	}
}

// Both answers to an object. old: nil if there is none. They are equal if one of Kubernetes' is the same as ours: Go visits properties
// and maps in any order, so that costs, and what comes before an error, may be different each time.
func (c *check) both(root *schema, judge *judge, object, old map[string]any, budget int64, callMax uint64) (want, got verdict) {
	var before any
	oldText := []byte{}
	if old != nil {
		before, oldText = decoded(old), encoded(old)
	}
	_, text := c.program.Ask('v', encoded(root), encoded(object), oldText, nil, []byte("root"), encoded(budget), encoded(callMax))
	if err := json.Unmarshal(text, &got); err != nil {
		got.Errors = []string{string(text)}
	}
	slices.Sort(got.Errors)
	slices.Sort(got.Warnings)
	for again := 0; again < 30; again++ {
		if want = judge.judge(decoded(object), before, budget); want.equals(got) {
			break
		}
	}
	return want, got
}

// The schema with one of its rules, and -1, or without any, and how many more would have been left out.
func withRule(root *schema, number int) (*schema, int) {
	s := root.DeepCopy()
	rules := s.XValidations
	s.XValidations = nil
	for _, rule := range rules {
		if number == 0 {
			s.XValidations = v1.ValidationRules{rule}
		}
		number--
	}
	each(s, func(child *schema) {
		var below *schema
		below, number = withRule(child, number)
		*child = *below
	})
	return s, number
}

// Shows a difference with the one rule that is enough for it, if there is one.
func (c *check) show(root *schema, object, old map[string]any, budget int64, callMax uint64, want, got verdict) {
	for number, left := 0, -1; left < 0; number++ {
		var single *schema
		if single, left = withRule(root, number); left >= 0 {
			break
		}
		judge := newJudge(single, callMax)
		if one, other := c.both(single, judge, object, old, budget, callMax); !one.equals(other) {
			root, want, got = single, one, other
			break
		}
	}
	c.differs("{\"schema\":%s,\n  \"object\":%s,\n  \"old\":%s}\n  budget %d, %d per call\n  wants %v\n  gets  %v", encoded(root), encoded(object),
		encoded(old), budget, callMax, want, got)
}

func (c *check) object(root *schema, judge *judge, callMax uint64) {
	object, old := c.object2(root)
	budget := int64(celconfig.RuntimeCELCostBudget)
	if c.in(6) {
		budget = c.Int63n(200)
	}
	want, got := c.both(root, judge, object, old, budget, callMax)
	c.objects++
	if len(want.Errors) > 0 {
		c.failed++
	}
	if len(want.Warnings) > 0 {
		c.warned++
	}
	if want.Left < 0 {
		c.outOfBudget++
	}
	if !want.equals(got) {
		c.show(root, object, old, budget, callMax, want, got)
	}
}

func (c *check) schema() {
	c.schemas++
	root := c.resource()
	costs := c.definition(definition(root, "things", "Thing"))
	c.drop(root, costs, field.NewPath("spec", "validation", "openAPIV3Schema"))
	callMax := uint64(celconfig.PerCallLimit)
	if c.in(10) {
		callMax = uint64(1 + c.Intn(60))
	}
	judge := newJudge(root, callMax)
	if judge.validator == nil {
		return
	}
	for i := 0; i < objectsPerSchema; i++ {
		c.object(root, judge, callMax)
	}
}

func run(program string, count int, r *rand.Rand) {
	c := &check{maker: maker{r}, program: subject.Start(program)}
	for c.rules < count {
		c.schema()
	}
	fmt.Printf("%d schemas with %d expressions, %d of them wrong, %d too dear, %d definitions refused; %d objects, %d of them refused, "+
		"%d warned about, %d out of budget; %d different\n", c.schemas, c.rules, c.wrongRules, c.dear, c.refused, c.objects, c.failed,
		c.warned, c.outOfBudget, c.different)
	if c.different > 0 {
		os.Exit(1)
	}
}

// Compares definitions in lines of JSON.
func published(program string) {
	c := &check{program: subject.Start(program)}
	for lines := json.NewDecoder(os.Stdin); lines.More(); {
		written := &v1.CustomResourceDefinition{}
		must(lines.Decode(written))
		written.Status = v1.CustomResourceDefinitionStatus{} // only some files have one
		c.schemas++
		c.definition(written)
	}
	fmt.Printf("%d definitions with %d expressions, %d of them wrong, %d too dear, %d definitions refused; %d different\n", c.schemas, c.rules,
		c.wrongRules, c.dear, c.refused, c.different)
	if c.different > 0 {
		os.Exit(1)
	}
}

func try(program string) {
	subject := subject.Start(program)
	for lines := json.NewDecoder(os.Stdin); lines.More(); {
		var asked struct {
			Schema schema
			Object map[string]any
			Old    map[string]any
			Rules  []string
		}
		must(lines.Decode(&asked))
		roots := []*schema{&asked.Schema}
		for _, text := range asked.Rules {
			root := asked.Schema.DeepCopy()
			spec := root.Properties["spec"]
			spec.XValidations = v1.ValidationRules{{Rule: text}}
			if strings.Contains(text, "oldSelf.") && strings.Contains(text, "alue(") {
				optional := true
				spec.XValidations[0].OptionalOldSelf = &optional
			}
			root.Properties["spec"] = spec
			roots = append(roots, root)
		}
		for i, root := range roots {
			if i > 0 {
				fmt.Println(asked.Rules[i-1])
			}
			var before any
			oldText := []byte{}
			if asked.Old != nil {
				before, oldText = decoded(asked.Old), encoded(asked.Old)
			}
			want := newJudge(root, celconfig.PerCallLimit).judge(decoded(asked.Object), before, 10000000)
			_, text := subject.Ask('v', encoded(root), encoded(asked.Object), oldText, nil, []byte("root"), []byte("10000000"), []byte("1000000"))
			fmt.Printf("  wants %s\n  gets  %s\n", encoded(want), text)
		}
	}
}

func write(count int, r *rand.Rand) {
	m := maker{r}
	for number := 0; count > 0; number++ {
		root := m.resource()
		_, costs := judgeDefinition(definition(root, "things", "Thing"))
		count -= len(costs)
		objects := []map[string]any{}
		for i := 0; i < objectsPerSchema; i++ {
			object, old := m.object2(root)
			objects = append(objects, map[string]any{"object": object, "old": old})
		}
		name := fmt.Sprintf("things%d", number)
		fmt.Printf("%s\n", encoded(map[string]any{"definition": definition(root, name, "Thing"+strconv.Itoa(number)), "expressions": len(costs),
			"objects": objects}))
	}
}

func main() {
	args := os.Args[1:]
	if len(args) == 2 && args[0] == "published" {
		published(args[1])
		return
	}
	if len(args) == 2 && args[0] == "try" {
		try(args[1])
		return
	}
	if len(args) < 3 || (args[0] == "check") != (len(args) == 4) {
		log.Fatal("usage: ruleoracle check PROGRAM COUNT SEED | write COUNT SEED | published PROGRAM | try PROGRAM")
	}
	count, err := strconv.Atoi(args[len(args)-2])
	must(err)
	seed, err := strconv.ParseInt(args[len(args)-1], 10, 64)
	must(err)
	r := rand.New(rand.NewSource(seed))
	if args[0] == "write" {
		write(count, r)
	} else {
		run(args[1], count, r)
	}
}
