// Compares Vigil's implementation of the Common Expression Language with cel-go and Kubernetes' libraries for it: expressions
// from a list, and random ones made of their parts.
//
//	go run ./celoracle check PROGRAM COUNT SEED    compares the answers of cel_oracle
//	go run ./celoracle record COUNT SEED           writes cases and correct answers for tests/cel_oracle.py
package main

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/cel/environment"
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
	info *ast.SourceInfo
}

func (p *printer) begin(kind string, id int64) {
	place, _ := p.info.GetOffsetRange(id)
	fmt.Fprintf(p, "(%s@%d", kind, place.Start)
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
	p := &printer{info: parsed.NativeRep().SourceInfo()}
	p.expr(parsed.NativeRep().Expr())
	return request{Op: "p", Expr: text, Want: p.String()}
}

type program struct {
	in  io.Writer
	out io.Reader
}

func start(path string) program {
	command := exec.Command(path)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	must(err)
	out, err := command.StdoutPipe()
	must(err)
	must(command.Start())
	return program{in, out}
}

func (p program) ask(letter, text string) (bool, string) {
	message := binary.BigEndian.AppendUint32([]byte(letter), uint32(len(text)))
	_, err := p.in.Write(append(message, text...))
	must(err)
	head := make([]byte, 5)
	_, err = io.ReadFull(p.out, head)
	must(err)
	body := make([]byte, binary.BigEndian.Uint32(head[1:]))
	_, err = io.ReadFull(p.out, body)
	must(err)
	return head[0] == '+', string(body)
}

// The first of several errors. Behind a syntax error cel-go's parser tries to continue, and may report more than Vigil.
func firstError(text string) string {
	if end := strings.Index(text[min(1, len(text)):], "\nERROR: "); end >= 0 {
		return text[:end+1]
	}
	return text
}

func main() {
	args := os.Args[1:]
	usage := func() { log.Fatal("usage: celoracle check PROGRAM COUNT SEED | record COUNT SEED") }
	if len(args) < 3 || (args[0] == "check") != (len(args) == 4) {
		usage()
	}
	count, err := strconv.Atoi(args[len(args)-2])
	must(err)
	seed, err := strconv.ParseInt(args[len(args)-1], 10, 64)
	must(err)
	r := rand.New(rand.NewSource(seed))
	texts := append([]string{}, examples...)
	for i := 0; i < count; i++ {
		texts = append(texts, randomExpression(r))
	}
	if args[0] == "record" {
		for _, text := range texts {
			if len(text) > 2000 {
				continue
			}
			line, err := json.Marshal(parse(text))
			must(err)
			fmt.Println(string(line))
		}
		return
	}
	subject := start(args[1])
	wrong, other, fewer := 0, 0, 0
	for _, text := range texts {
		want := parse(text)
		good, got := subject.ask("p", text)
		if good == (want.Error == "") && got == want.Want+want.Error {
			continue
		}
		switch {
		case good || want.Error == "":
			wrong++
		case firstError(got) != firstError(want.Error):
			other++
		default:
			fewer++
			continue
		}
		if wrong+other <= 20 || good || want.Error == "" {
			fmt.Printf("%q\n  wants %s\n  gets  %s\n", text, want.Want+want.Error, got)
		}
	}
	fmt.Printf("%d expressions: %d wrong; %d with another first error, %d with other errors behind the first\n",
		len(texts), wrong, other, fewer)
	// Which syntax error is found first depends on how far a parser looks ahead.
	if wrong > 0 || other > len(texts)/100 {
		os.Exit(1)
	}
}
