package main

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/google/cel-go/common/types"
)

var notInNames = regexp.MustCompile(`[^A-Za-z0-9]+`)

var ofName = regexp.MustCompile(`, (?:OPAQUE|OBJECT), "(.*?)"`)

func upper(name string) string {
	return strings.ToUpper(strings.Trim(notInNames.ReplaceAllString(name, "_"), "_"))
}

// The name of a type in C, and the rows that define it and its parts.
type typeTable struct {
	rows  []string
	known map[string]bool
}

func (t *typeTable) name(of *types.Type) string {
	kinds := map[types.Kind]string{types.BoolKind: "BOOL", types.IntKind: "INT", types.UintKind: "UINT", types.DoubleKind: "DOUBLE",
		types.StringKind: "STRING", types.BytesKind: "BYTES", types.DurationKind: "DURATION", types.TimestampKind: "TIMESTAMP",
		types.DynKind: "DYN", types.NullTypeKind: "NULL", types.ListKind: "LIST", types.MapKind: "MAP", types.TypeKind: "TYPE",
		types.OpaqueKind: "OPAQUE", types.StructKind: "OBJECT", types.TypeParamKind: "PARAM"}
	kind := kinds[of.Kind()]
	names, parts := kind, []string{}
	if kind == "OPAQUE" || kind == "OBJECT" || kind == "PARAM" {
		names = upper(of.TypeName())
	}
	for _, part := range of.Parameters() {
		parts = append(parts, t.name(part))
		names += "_" + parts[len(parts)-1]
	}
	if !t.known[names] {
		t.known[names] = true
		row := fmt.Sprintf("CEL_TYPE(%s, %s, %q", names, kind, of.DeclaredTypeName())
		for _, part := range parts {
			row += ", &cel_type_" + part
		}
		t.rows = append(t.rows, row+")")
	}
	return names
}

// The names of opaque types and objects.
func (t *typeTable) named() (names []string) {
	for _, row := range t.rows {
		found := ofName.FindStringSubmatch(row)
		if found != nil && !slices.Contains(names, found[1]) {
			names = append(names, found[1])
		}
	}
	sort.Strings(names)
	return names
}

// Writes the functions of Kubernetes' environment as rows of C, in cel-go's order of the overloads, which decides about the
// type of a result.
func writeFunctions() {
	table := typeTable{known: map[string]bool{}}
	functions := objectEnv.Functions()
	names := []string{}
	for name := range functions {
		names = append(names, name)
	}
	sort.Strings(names)
	rows, used := []string{}, map[string]int{}
	for _, name := range names {
		for _, overload := range functions[name].OverloadDecls() {
			id := upper(overload.ID())
			if used[id]++; used[id] > 1 { // "in" has three names
				id = fmt.Sprintf("%s_%d", id, used[id])
			}
			style := "GLOBAL"
			if overload.IsMemberFunction() {
				style = "MEMBER"
			}
			row := fmt.Sprintf("CEL_OVERLOAD(%s, %q, %q, %s, %s", id, name, overload.ID(), style, table.name(overload.ResultType()))
			for _, arg := range overload.ArgTypes() {
				row += ", &cel_type_" + table.name(arg)
			}
			rows = append(rows, row+")")
		}
	}
	constants := []string{}
	for _, variable := range env.Variables() {
		constants = append(constants, fmt.Sprintf("CEL_CONSTANT(%q, %s)", variable.Name(), table.name(variable.Type())))
	}
	// The names of types that libraries have brought.
	for _, name := range table.named() {
		if value, found := env.CELTypeProvider().FindIdent(name); found {
			constants = append(constants, fmt.Sprintf("CEL_CONSTANT(%q, %s)", name, table.name(types.NewTypeTypeWithParam(value.(*types.Type)))))
		}
	}
	fmt.Println("/* Made by tests/kube/celoracle functions from cel-go and Kubernetes' libraries: do not edit. */")
	fmt.Printf("#ifdef CEL_TYPE\n%s\n#endif\n", strings.Join(table.rows, "\n"))
	fmt.Printf("#ifdef CEL_OVERLOAD\n%s\n#endif\n", strings.Join(rows, "\n"))
	fmt.Printf("#ifdef CEL_CONSTANT\n%s\n#endif\n", strings.Join(constants, "\n"))
}
