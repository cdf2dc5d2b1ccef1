package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vigil/tests/kube/subject"
)

// The expressions in the tests of Kubernetes' libraries: each `expr` of a table, and each of those in code. Their expected results
// are not read, because Kubernetes' own environment answers them here.

// Where they are, and how many there are at least.
var tables = map[string]int{"cidr_test.go": 32, "cost_test.go": 100, "format_test.go": 31, "ip_test.go": 38, "quantity_test.go": 33,
	"semver_test.go": 33}

// The text of a literal, or of several that are added; false: something else.
func textOf(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, isLeft := textOf(e.X)
		right, isRight := textOf(e.Y)
		return left + right, isLeft && isRight
	}
	return "", false
}

func expressionsOf(path string) (found []string) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	must(err)
	ast.Inspect(file, func(n ast.Node) bool {
		if pair, is := n.(*ast.KeyValueExpr); is {
			name, isName := pair.Key.(*ast.Ident)
			if text, isText := textOf(pair.Value); isName && isText && name.Name == "expr" {
				found = append(found, text)
			}
		}
		return true
	})
	return found
}

func runTables(path string) {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/apiserver").Output()
	must(err)
	program := subject.Start(path)
	asked, wrong := 0, 0
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		all := expressionsOf(filepath.Join(strings.TrimSpace(string(module)), "pkg/cel/library", name))
		if len(all) < tables[name] {
			log.Fatalf("%s has only %d expressions", name, len(all))
		}
		for _, text := range all {
			for _, want := range answers(text) {
				asked++
				if good, got := ask(program, want); good != (want.Error == "") || got != want.Want+want.Error {
					wrong++
					fmt.Printf("%s %s: %s\n  wants %s\n  gets  %s\n", name, want.Op, text, want.Want+want.Error, got)
				}
			}
		}
		fmt.Printf("%s: %d expressions\n", name, len(all))
	}
	fmt.Printf("%d answers about the expressions of Kubernetes' tests, %d wrong\n", asked, wrong)
	if wrong > 0 {
		os.Exit(1)
	}
}

// The questions about an expression: its value and cost, and the estimate.
func answers(text string) (all []request) {
	if value, valid := evaluate(text); valid {
		all = append(all, value)
	} else if checked, valid := check(text); valid {
		all = append(all, checked)
	}
	if cost, valid := estimate(text); valid {
		all = append(all, cost)
	}
	return all
}
