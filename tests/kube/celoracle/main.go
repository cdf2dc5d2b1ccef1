// Compares Vigil's implementation of the Common Expression Language with cel-go and Kubernetes' libraries for it: expressions
// from a list, and random ones made of their parts.
//
//	go run ./celoracle check PROGRAM COUNT SEED    compares the answers of cel_oracle
//	go run ./celoracle kinds PROGRAM COUNT SEED    the same for random values of times and Kubernetes' types alone
//	go run ./celoracle texts PROGRAM COUNT SEED    the same for functions on texts alone
//	go run ./celoracle formats PROGRAM COUNT SEED  the same for formats that have names alone
//	go run ./celoracle permissions PROGRAM COUNT SEED  the same for questions about permissions alone
//	go run ./celoracle sizes PROGRAM COUNT SEED    the same for random estimates of costs alone
//	go run ./celoracle collections PROGRAM COUNT SEED    and for functions of lists and sets
//	go run ./celoracle record COUNT SEED           writes cases and correct answers for tests/cel_oracle.py
//	go run ./celoracle conformance PROGRAM LIST    makes the tests of the language's specification; see conformance.go
//	go run ./celoracle tables PROGRAM              asks for the expressions in the tests of Kubernetes' libraries; see tables.go
//	go run ./celoracle corpus PROGRAM FOLDER...    asks for the inputs of fuzzers; see corpus.go
//	go run ./celoracle try PROGRAM EXPRESSION...   shows both answers
//	go run ./celoracle functions                   prints src/cel/check/overloads.inc
//	go run ./celoracle printable                   prints src/codec/printable.inc
package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"vigil/tests/kube/subject"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A case for the program, and the expected answer.
type request struct {
	Op    string `json:"op"`
	Expr  string `json:"expr"`
	Want  string `json:"want,omitempty"`
	Error string `json:"error,omitempty"`
}

type printer struct {
	strings.Builder
	tree *ast.AST
}

func (p *printer) begin(kind string, id int64) {
	place, _ := p.tree.SourceInfo().GetOffsetRange(id)
	fmt.Fprintf(p, "(%s@%d", kind, place.Start)
	if p.tree.IsChecked() && !strings.HasSuffix(kind, "entry") {
		fmt.Fprintf(p, ":%s", checker.FormatCELType(p.tree.GetType(id)))
	}
	if names := p.tree.GetOverloadIDs(id); len(names) > 0 && names[0] != "select_optional_field" {
		fmt.Fprintf(p, "[%s]", strings.Join(names, " "))
	}
}

func (p *printer) literal(e ast.Expr) {
	switch value := e.AsLiteral().(type) {
	case types.Null:
		p.begin("null", e.ID())
	case types.Bool:
		p.begin("bool", e.ID())
		fmt.Fprintf(p, " %v", bool(value))
	case types.Int:
		p.begin("int", e.ID())
		fmt.Fprintf(p, " %d", int64(value))
	case types.Uint:
		p.begin("uint", e.ID())
		fmt.Fprintf(p, " %d", uint64(value))
	case types.Double:
		p.begin("double", e.ID())
		fmt.Fprintf(p, " %016x", math.Float64bits(float64(value)))
	case types.String:
		p.begin("string", e.ID())
		fmt.Fprintf(p, " %s", hex.EncodeToString([]byte(value)))
	case types.Bytes:
		p.begin("bytes", e.ID())
		fmt.Fprintf(p, " %s", hex.EncodeToString(value))
	default:
		log.Fatalf("a literal of type %T", value)
	}
}

func (p *printer) entry(id int64, optional bool) {
	if optional {
		p.begin("?entry", id)
	} else {
		p.begin("entry", id)
	}
}

func (p *printer) expr(e ast.Expr) {
	switch e.Kind() {
	case ast.LiteralKind:
		p.literal(e)
	case ast.IdentKind:
		p.begin("ident", e.ID())
		fmt.Fprintf(p, " %s", e.AsIdent())
	case ast.SelectKind:
		s := e.AsSelect()
		if s.IsTestOnly() {
			p.begin("test", e.ID())
		} else {
			p.begin("select", e.ID())
		}
		p.expr(s.Operand())
		fmt.Fprintf(p, " %s", s.FieldName())
	case ast.CallKind:
		c := e.AsCall()
		if c.IsMemberFunction() {
			p.begin("method", e.ID())
		} else {
			p.begin("call", e.ID())
		}
		fmt.Fprintf(p, " %s", c.FunctionName())
		if c.IsMemberFunction() {
			p.expr(c.Target())
		}
		for _, arg := range c.Args() {
			p.expr(arg)
		}
	case ast.ListKind:
		l := e.AsList()
		p.begin("list", e.ID())
		for i, item := range l.Elements() {
			if l.IsOptional(int32(i)) {
				p.WriteString("?")
			}
			p.expr(item)
		}
	case ast.MapKind:
		p.begin("map", e.ID())
		for _, entry := range e.AsMap().Entries() {
			m := entry.AsMapEntry()
			p.entry(entry.ID(), m.IsOptional())
			p.expr(m.Key())
			p.expr(m.Value())
			p.WriteString(")")
		}
	case ast.StructKind:
		p.begin("struct", e.ID())
		fmt.Fprintf(p, " %s", e.AsStruct().TypeName())
		for _, entry := range e.AsStruct().Fields() {
			f := entry.AsStructField()
			p.entry(entry.ID(), f.IsOptional())
			fmt.Fprintf(p, " %s", f.Name())
			p.expr(f.Value())
			p.WriteString(")")
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		p.begin("fold", e.ID())
		p.expr(c.IterRange())
		fmt.Fprintf(p, " %s %s %s", c.IterVar(), c.IterVar2(), c.AccuVar())
		p.expr(c.AccuInit())
		p.expr(c.LoopCondition())
		p.expr(c.LoopStep())
		p.expr(c.Result())
	default:
		log.Fatalf("a node of kind %v", e.Kind())
	}
	p.WriteString(")")
}

var env = environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).StoredExpressionsEnv()

func parse(text string) request {
	parsed, issues := env.ParseSource(common.NewTextSource(text))
	if issues.Err() != nil {
		return request{Op: "p", Expr: text, Error: issues.String()}
	}
	p := &printer{tree: parsed.NativeRep()}
	p.expr(parsed.NativeRep().Expr())
	return request{Op: "p", Expr: text, Want: p.String()}
}

// The variables of expressions that are checked, and the objects T and U.
const variables = "a list(int)\nb map(string,dyn)\nself T\nx int\ny string\nf double\nd dyn\nl list(list(string))\n" +
	"m map(string,T)\no optional_type(string)\nt timestamp\nu duration\nb1 bool\nv.w uint\nk list(T)"

func declared() *cel.Env {
	field := func(name string, of *apiservercel.DeclType) *apiservercel.DeclField {
		return apiservercel.NewDeclField(name, of, false, nil, nil)
	}
	fieldsOfU := map[string]*apiservercel.DeclField{"i": field("i", apiservercel.IntType), "s": field("s", apiservercel.StringType)}
	u := apiservercel.NewObjectType("U", fieldsOfU)
	object := apiservercel.NewObjectType("T", map[string]*apiservercel.DeclField{
		"i": fieldsOfU["i"], "s": fieldsOfU["s"], "b": field("b", apiservercel.BoolType), "d": field("d", apiservercel.DynType),
		"l": field("l", apiservercel.NewListType(apiservercel.StringType, 10)),
		"m": field("m", apiservercel.NewMapType(apiservercel.StringType, apiservercel.IntType, 10)),
		"t": field("t", apiservercel.TimestampType), "u": field("u", apiservercel.DurationType), "o": field("o", u),
		"f": field("f", apiservercel.DoubleType), "n": field("n", apiservercel.NewListType(u, 10)),
	})
	provider := apiservercel.NewDeclTypeProvider(object, u)
	options, err := provider.EnvOptions(env.CELTypeProvider())
	must(err)
	extended, err := env.Extend(append(options,
		cel.Variable("a", cel.ListType(cel.IntType)), cel.Variable("b", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("self", object.CelType()), cel.Variable("x", cel.IntType), cel.Variable("y", cel.StringType),
		cel.Variable("f", cel.DoubleType), cel.Variable("d", cel.DynType), cel.Variable("l", cel.ListType(cel.ListType(cel.StringType))),
		cel.Variable("m", cel.MapType(cel.StringType, object.CelType())), cel.Variable("o", cel.OptionalType(cel.StringType)),
		cel.Variable("t", cel.TimestampType), cel.Variable("u", cel.DurationType), cel.Variable("b1", cel.BoolType),
		cel.Variable("v.w", cel.UintType), cel.Variable("k", cel.ListType(object.CelType())))...)
	must(err)
	return extended
}

var declaredEnv = declared()

// The expression with its types, or the errors. Nothing is expected for one that cannot be parsed.
func check(text string) (request, bool) {
	parsed, issues := declaredEnv.ParseSource(common.NewTextSource(text))
	if issues.Err() != nil || len(text) > 2000 {
		return request{}, false
	}
	want := request{Op: "c", Expr: text}
	checked, issues := declaredEnv.Check(parsed)
	if issues.Err() != nil {
		want.Error = issues.String()
		return want, true
	}
	p := &printer{tree: checked.NativeRep()}
	p.expr(checked.NativeRep().Expr())
	want.Want = p.String()
	return want, true
}

// The first of several errors. Behind a syntax error cel-go's parser tries to continue, and may report more than Vigil.
func firstError(text string) string {
	if end := strings.Index(text[min(1, len(text)):], "\nERROR: "); end >= 0 {
		return text[:end+1]
	}
	return text
}

// The program's answer to a request.
func ask(program *subject.Program, want request) (good bool, got string) {
	texts := [][]byte{[]byte(want.Expr)}
	switch want.Op {
	case "c":
		texts = [][]byte{[]byte(variables), []byte(want.Expr)}
	case "e", "o":
		texts = [][]byte{[]byte(valueTypes), []byte(values), []byte(want.Expr)}
	case "s":
		texts = [][]byte{[]byte(sizedVariables), []byte(want.Expr)}
	}
	good, answer := program.Ask(want.Op[0], texts...)
	return good, string(answer)
}

func main() {
	args := os.Args[1:]
	if len(args) == 1 && args[0] == "functions" {
		writeFunctions()
		return
	}
	if len(args) == 1 && args[0] == "printable" {
		writePrintable()
		return
	}
	if len(args) == 3 && args[0] == "conformance" {
		runConformance(args[1], args[2])
		return
	}
	if len(args) == 2 && args[0] == "tables" {
		runTables(args[1])
		return
	}
	if len(args) >= 3 && args[0] == "corpus" {
		runCorpus(args[1], args[2:])
		return
	}
	if len(args) >= 3 && args[0] == "try" {
		try(args[1], args[2:])
		return
	}
	usage := func() {
		log.Fatal("usage: celoracle check|kinds|texts|formats|permissions|sizes|collections|objects PROGRAM COUNT SEED | record COUNT SEED | conformance PROGRAM LIST | tables PROGRAM | corpus PROGRAM FOLDER... | try PROGRAM EXPRESSION... | functions")
	}
	if len(args) < 3 || (args[0] == "record") != (len(args) == 3) {
		usage()
	}
	count, err := strconv.Atoi(args[len(args)-2])
	must(err)
	seed, err := strconv.ParseInt(args[len(args)-1], 10, 64)
	must(err)
	r := rand.New(rand.NewSource(seed))
	cases := []request{}
	for _, text := range append(append(append([]string{}, examples...), typed...), typedTexts...) {
		cases = append(cases, parse(text))
		if checked, valid := check(text); valid {
			cases = append(cases, checked)
		}
	}
	for _, text := range slices.Concat(evaluated, evaluatedKinds, evaluatedTexts, evaluatedCollections, evaluatedFormats, evaluatedPermissions) {
		value, valid := evaluate(text)
		if !valid {
			log.Fatalf("not valid: %s", text)
		}
		cases = append(cases, value)
	}
	for _, text := range created {
		if object, valid := create(text); valid {
			cases = append(cases, object)
		}
	}
	for _, text := range estimated {
		cost, valid := estimate(text)
		if !valid {
			log.Fatalf("not valid: %s", text)
		}
		cases = append(cases, cost)
	}
	for i := 0; i < count; i++ {
		made, valid := request{}, true
		part := i % 4
		if part == 3 && r.Intn(3) == 0 {
			part = 7
		} else if part == 3 || args[0] == "sizes" {
			part = 5
		}
		if args[0] == "kinds" {
			part = 3
		} else if args[0] == "texts" {
			part = 4
		} else if args[0] == "collections" {
			part = 6
		} else if args[0] == "formats" {
			part = 8
		} else if args[0] == "permissions" {
			part = 9
		} else if args[0] == "objects" {
			part = 7
		}
		switch part {
		case 0:
			made = parse(randomExpression(r))
		case 1:
			made, valid = check(randomTyped(r, r.Intn(4)))
			if r.Intn(4) == 0 {
				made, valid = check(randomText(r))
			}
		case 2:
			made, valid = evaluate(randomValue(r))
			switch r.Intn(4) {
			case 0, 1:
				made, valid = evaluate(randomKind(r))
			case 2:
				made, valid = evaluate(randomText(r))
			}
		case 3:
			made, valid = evaluate(randomKind(r))
		case 4:
			text := randomText(r)
			made, valid = evaluate(text)
			if r.Intn(2) == 0 {
				made, valid = check(text)
			}
		case 5:
			made, valid = estimate(randomSized(r))
		case 6:
			made, valid = evaluate(randomCollection(r))
		case 7:
			made, valid = create(randomObject(r))
		case 8:
			made, valid = evaluate(randomFormat(r))
		case 9:
			made, valid = evaluate(randomPermission(r))
		}
		if valid {
			cases = append(cases, made)
		}
	}
	if args[0] == "record" {
		head, err := json.Marshal(map[string]string{"variables": variables, "valueTypes": valueTypes, "values": values, "sizedVariables": sizedVariables})
		must(err)
		fmt.Println(string(head))
		for _, c := range cases {
			if len(c.Expr)+len(c.Want) > 3000 {
				continue
			}
			line, err := json.Marshal(c)
			must(err)
			fmt.Println(string(line))
		}
		return
	}
	program := subject.Start(args[1])
	wrong, other, fewer := 0, 0, 0
	for _, want := range cases {
		good, got := ask(program, want)
		if good == (want.Error == "") && got == want.Want+want.Error {
			continue
		}
		switch {
		case good || want.Error == "" || want.Op != "p":
			wrong++
		case firstError(got) != firstError(want.Error):
			other++
		default:
			fewer++
			continue
		}
		if wrong+other <= 20 || want.Op != "p" {
			fmt.Printf("%s %q\n  wants %s\n  gets  %s\n", want.Op, want.Expr, want.Want+want.Error, got)
		}
	}
	fmt.Printf("%d cases: %d wrong; %d with another first error, %d with other errors behind the first\n",
		len(cases), wrong, other, fewer)
	// Which syntax error is found first depends on how far a parser looks ahead.
	if wrong > 0 || other > len(cases)/100 {
		os.Exit(1)
	}
}
