package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	celpb "cel.dev/expr"
	_ "cel.dev/expr/conformance/proto2"
	_ "cel.dev/expr/conformance/proto3"
	testpb "cel.dev/expr/conformance/test"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/types"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"vigil/tests/kube/subject"
)

// The conformance tests of the language's specification have two judges: what a test wants, and what Kubernetes' own
// environment answers to the same expression. Every test is made. One that does not pass needs a row of conformance.txt:
//
//	KIND COUNT REGEXP
//	    why
//
// KIND says what the COUNT tests that match have in common; the first row of a kind that matches is the test's:
//
//	messages    they need messages of protobuf in variables or results, so they are not made
//	kubernetes  Vigil answers as Kubernetes does, and not as the test wants
//	vigil       Vigil differs from Kubernetes
//
// What has to match is FILE/SECTION/TEST: EXPRESSION, with [unchecked] behind it if the test wants an expression that was not
// checked, and in the next line Vigil's answer. A row with another number of tests than its count is an error, also if there are
// fewer: a test that passes now must not be listed.
type listed struct {
	kind    string
	want    int
	pattern *regexp.Regexp
	text    string
	found   []string
}

func readList(path string) (rows []*listed) {
	file, err := os.Open(path)
	must(err)
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, " ") || line == "" {
			continue
		}
		words := strings.SplitN(line, " ", 3)
		if len(words) != 3 {
			log.Fatalf("%s: %q", path, line)
		}
		count, err := strconv.Atoi(words[1])
		must(err)
		rows = append(rows, &listed{kind: words[0], want: count, pattern: regexp.MustCompile(words[2]), text: words[2]})
	}
	return rows
}

var invalidConstant = regexp.MustCompile(`^ERROR: \S+ invalid (duration|timestamp|matches) argument`)

// A test of the specification in a form that cel_oracle understands.
type conformance struct {
	name, variables, bindings string
	options                   []cel.EnvOption
	values                    map[string]any
	test                      *testpb.SimpleTest
}

// A type as cel_oracle reads it. False for a message.
func plainType(t *types.Type) (string, bool) {
	switch t.Kind() {
	case types.StructKind, types.AnyKind:
		return "", false
	}
	if t.IsAssignableType(types.NullType) && t.Kind() != types.NullTypeKind && t.Kind() != types.DynKind &&
		t.Kind() != types.DurationKind && t.Kind() != types.TimestampKind && t.Kind() != types.OpaqueKind {
		return "", false // a wrapper
	}
	for _, parameter := range t.Parameters() {
		if _, plain := plainType(parameter); !plain {
			return "", false
		}
	}
	return strings.ReplaceAll(checker.FormatCELType(t), ", ", ","), true
}

// The value as an expression. False for a message.
func asExpression(v *celpb.Value) (string, bool) {
	switch kind := v.Kind.(type) {
	case *celpb.Value_NullValue:
		return "null", true
	case *celpb.Value_BoolValue:
		return fmt.Sprint(kind.BoolValue), true
	case *celpb.Value_Int64Value:
		return fmt.Sprint(kind.Int64Value), true
	case *celpb.Value_Uint64Value:
		return fmt.Sprint(kind.Uint64Value) + "u", true
	case *celpb.Value_DoubleValue:
		return fmt.Sprintf("double('%v')", kind.DoubleValue), true
	case *celpb.Value_StringValue:
		return fmt.Sprintf("string(%s)", bytesLiteral([]byte(kind.StringValue))), true
	case *celpb.Value_BytesValue:
		return bytesLiteral(kind.BytesValue), true
	case *celpb.Value_TypeValue:
		return kind.TypeValue, true
	case *celpb.Value_ListValue:
		return joined("[", "]", len(kind.ListValue.Values), func(i int) (string, bool) {
			item, plain := asExpression(kind.ListValue.Values[i])
			return "dyn(" + item + ")", plain
		})
	case *celpb.Value_MapValue:
		return joined("{", "}", len(kind.MapValue.Entries), func(i int) (string, bool) {
			key, plainKey := asExpression(kind.MapValue.Entries[i].Key)
			value, plain := asExpression(kind.MapValue.Entries[i].Value)
			return "dyn(" + key + "): dyn(" + value + ")", plainKey && plain
		})
	case *celpb.Value_ObjectValue:
		message, err := kind.ObjectValue.UnmarshalNew()
		must(err)
		switch m := message.(type) {
		case *durationpb.Duration:
			return fmt.Sprintf("duration('%dns')", int64(m.AsDuration())), true
		case *timestamppb.Timestamp:
			return fmt.Sprintf("timestamp('%s')", m.AsTime().Format(time.RFC3339Nano)), true
		}
	}
	return "", false
}

func bytesLiteral(bytes []byte) string {
	text := strings.Builder{}
	for _, b := range bytes {
		fmt.Fprintf(&text, "\\x%02x", b)
	}
	return "b'" + text.String() + "'"
}

func joined(open, end string, count int, item func(i int) (string, bool)) (string, bool) {
	items, all := []string{}, true
	for i := range count {
		text, plain := item(i)
		items, all = append(items, text), all && plain
	}
	return open + strings.Join(items, ", ") + end, all
}

// False: the test needs messages of protobuf.
func (c *conformance) declare(decls []*celpb.Decl) bool {
	for _, decl := range decls {
		if decl.GetIdent() == nil || decl.GetIdent().Value != nil {
			return false
		}
		t, err := types.ProtoAsType(decl.GetIdent().Type)
		must(err)
		text, plain := plainType(t)
		if !plain {
			return false
		}
		c.variables += decl.Name + " " + text + "\n"
		c.options = append(c.options, cel.Variable(decl.Name, t))
	}
	return true
}

func (c *conformance) bind(values map[string]*celpb.ExprValue) bool {
	c.values = map[string]any{}
	for name, value := range values {
		text, plain := "", false
		if value.GetValue() != nil {
			text, plain = asExpression(value.GetValue())
		}
		if !plain {
			return false
		}
		bound, err := cel.ProtoAsValue(types.DefaultTypeAdapter, value.GetValue())
		must(err)
		c.bindings += name + " " + text + "\n"
		c.values[name] = bound
	}
	return true
}

// Whether the answer, a type and a value in lines, is what the test wants.
func (c *conformance) wants(good bool, answer string) bool {
	t, value, _ := strings.Cut(answer, "\n")
	switch matcher := c.test.ResultMatcher.(type) {
	case *testpb.SimpleTest_EvalError, *testpb.SimpleTest_AnyEvalErrors:
		// Kubernetes looks at constants before the evaluation, and refuses an expression that would always fail.
		return good && strings.HasPrefix(value, "error: ") || answer == "refused" || invalidConstant.MatchString(answer)
	case *testpb.SimpleTest_Value:
		return good && value == shown(matcher.Value)
	case *testpb.SimpleTest_TypedResult:
		deduced, err := types.ProtoAsType(matcher.TypedResult.DeducedType)
		must(err)
		return good && t == checker.FormatCELType(deduced) && (c.test.CheckOnly || value == shown(matcher.TypedResult.Result))
	case nil:
		return good && value == "true"
	}
	log.Fatalf("%s: a result of type %T", c.name, c.test.ResultMatcher)
	return false
}

func shown(v *celpb.Value) string {
	value, err := cel.ProtoAsValue(types.DefaultTypeAdapter, v)
	must(err)
	return show(value)
}

// The value that the test wants; nil: an error.
func wanted(test *testpb.SimpleTest) *celpb.Value {
	if typed := test.GetTypedResult(); typed != nil {
		return typed.Result
	}
	return test.GetValue()
}

// What Kubernetes answers, and whether it has a value or an error of its evaluation.
func (c *conformance) kubernetes() (good bool, answer string) {
	defer func() {
		if failure := recover(); failure != nil { // a map with keys that Go cannot hash
			good, answer = false, fmt.Sprintf("panic: %v", failure)
		}
	}()
	with, err := env.Extend(c.options...)
	must(err)
	parsed, issues := with.ParseSource(common.NewTextSource(c.test.Expr))
	if issues.Err() != nil {
		return false, issues.String()
	}
	checked, issues := with.Check(parsed)
	if issues.Err() != nil {
		return false, issues.String()
	}
	t := checker.FormatCELType(checked.OutputType())
	program, err := with.Program(checked)
	if err != nil {
		return false, "refused"
	}
	value, _, err := program.Eval(c.values)
	if err != nil {
		return true, t + "\nerror: " + err.Error()
	}
	return true, t + "\n" + show(value)
}

// The kind of the row that the test needs; "" if it passes.
func (c *conformance) judge(program *subject.Program) (kind, why string) {
	if value := wanted(c.test); value != nil {
		if _, plain := asExpression(value); !plain {
			return "messages", ""
		}
	}
	if !c.declare(c.test.TypeEnv) || !c.bind(c.test.Bindings) {
		return "messages", ""
	}
	good, text := program.Ask('v', []byte(c.variables), []byte(c.bindings), []byte(c.test.Expr))
	answer := string(text)
	sameGood, same := c.kubernetes()
	if c.test.CheckOnly {
		answer, _, _ = strings.Cut(answer, "\n")
		same, _, _ = strings.Cut(same, "\n")
	}
	if strings.Contains(same, "Syntax error: ") {
		answer, same = firstError(answer), firstError(same)
	}
	if good != sameGood || answer != same {
		return "vigil", fmt.Sprintf("\n  Vigil:      %q\n  Kubernetes: %q", answer, same)
	}
	if !c.wants(good, answer) {
		return "kubernetes", fmt.Sprintf("\n  both:       %s", answer)
	}
	return "", ""
}

// Shows both answers to an expression without variables.
func try(path string, expressions []string) {
	program := subject.Start(path)
	for _, expression := range expressions {
		c := &conformance{test: &testpb.SimpleTest{Expr: expression}}
		_, same := c.kubernetes()
		_, answer := program.Ask('v', nil, nil, []byte(expression))
		mark := "same"
		if same != string(answer) {
			mark = "DIFFERENT"
		}
		fmt.Printf("%s %s\n  Vigil:      %q\n  Kubernetes: %q\n", mark, expression, answer, same)
	}
}

func testFiles() []string {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "cel.dev/expr").Output()
	must(err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(module)), "tests/simple/testdata/*.textproto"))
	must(err)
	if len(files) == 0 {
		log.Fatal("cel.dev/expr has no tests")
	}
	return files
}

func runConformance(path, list string) {
	rows := readList(list)
	program := subject.Start(path)
	made, passed, wrong := 0, 0, 0
	for _, path := range testFiles() {
		file := &testpb.SimpleTestFile{}
		text, err := os.ReadFile(path)
		must(err)
		must(prototext.Unmarshal(text, file))
		for _, section := range file.Section {
			for _, test := range section.Test {
				c := &conformance{name: fmt.Sprintf("%s/%s/%s: %s", file.Name, section.Name, test.Name, test.Expr), test: test}
				if test.DisableCheck {
					c.name += " [unchecked]"
				}
				made++
				kind, why := c.judge(program)
				row := slices.IndexFunc(rows, func(r *listed) bool { return r.kind == kind && r.pattern.MatchString(c.name+why) })
				switch {
				case kind == "":
					passed++
				case row >= 0:
					rows[row].found = append(rows[row].found, c.name+why)
				default:
					wrong++
					fmt.Printf("%s: no row for %s%s\n", kind, c.name, why)
				}
			}
		}
	}
	for _, row := range rows {
		if len(row.found) != row.want {
			wrong++
			fmt.Printf("%s %d %s: there are %d\n    %s\n", row.kind, row.want, row.text, len(row.found), strings.Join(row.found, "\n    "))
		}
	}
	fmt.Printf("%d tests of the specification: %d pass, %d are listed, %d wrong\n", made, passed, made-passed, wrong)
	if wrong > 0 || passed < 1000 {
		os.Exit(1)
	}
}
