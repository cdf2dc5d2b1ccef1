package main

import (
	"fmt"
	"log"
	"regexp"
	"sort"
	"strings"
	"unicode"
)

// The code points of a table as ranges, merged where they meet.
func rangesOf(table *unicode.RangeTable) [][2]rune {
	found := [][2]rune{}
	add := func(low, high, stride rune) {
		for c := low; c <= high; c += stride {
			last := c
			if stride == 1 {
				last = high
			}
			if n := len(found); n > 0 && found[n-1][1]+1 == c {
				found[n-1][1] = last
			} else {
				found = append(found, [2]rune{c, last})
			}
			c = last
		}
	}
	for _, r := range table.R16 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	for _, r := range table.R32 {
		add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
	}
	return found
}

// A name as Go's regexp compares it: the first letter is upper case, the others are lower case, without separators.
func canonical(name string) string {
	name = strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
	return strings.ToUpper(name[:1]) + name[1:]
}

// A category of one letter, and LC, is all of its parts.
func partsOf(name string) []string {
	if name == "LC" {
		return []string{"Ll", "Lt", "Lu"}
	}
	parts := []string{}
	for other := range unicode.Categories {
		if len(name) == 1 && len(other) == 2 && other != "LC" && other[:1] == name {
			parts = append(parts, other)
		}
	}
	sort.Strings(parts)
	return parts
}

// Folding adds to a class exactly the code points of the table that Go has for it. Go has none for LC, which is not folded.
func checkFolding(name string, table, fold *unicode.RangeTable) {
	if name == "LC" {
		if fold != nil {
			log.Fatal("LC is folded")
		}
		return
	}
	for c := rune(0); c <= unicode.MaxRune; c++ {
		wanted := false
		for other := unicode.SimpleFold(c); other != c; other = unicode.SimpleFold(other) {
			wanted = wanted || unicode.Is(table, other)
		}
		wanted = wanted && !unicode.Is(table, c)
		if got := fold != nil && unicode.Is(fold, c) && !unicode.Is(table, c); got != wanted {
			log.Fatalf("folding %s: %#x is in Go's table: %v", name, c, got)
		}
	}
}

func printRanges(first int, name string, table *unicode.RangeTable) int {
	ranges := rangesOf(table)
	fmt.Printf("UNICODE_CLASS(\"%s\", %d, %d)\n", canonical(name), first, len(ranges))
	line := ""
	for _, r := range ranges {
		word := fmt.Sprintf("R(%#x, %#x) ", r[0], r[1])
		if len(line)+len(word) > 100 {
			fmt.Println(strings.TrimSpace(line))
			line = ""
		}
		line += word
	}
	fmt.Println(strings.TrimSpace(line))
	return first + len(ranges)
}

func sortedNames[T any](values map[string]T) []string {
	names := []string{}
	for name := range values {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Runs of characters whose next equivalent is as far away, or of neighbours that are each other's.
func printFolding() {
	next := func(c rune) rune { return unicode.SimpleFold(c) - c }
	for c := rune(0); c <= unicode.MaxRune; c++ {
		delta := next(c)
		if delta == 0 {
			continue
		}
		low := c
		if delta == 1 && next(c+1) == -1 {
			for next(c+1) == -1 && next(c+2) == 1 && next(c+3) == -1 {
				c += 2
			}
			c++
			fmt.Printf("UNICODE_FOLD_PAIRS(%#x, %#x)\n", low, c)
			continue
		}
		for next(c+1) == delta {
			c++
		}
		fmt.Printf("UNICODE_FOLD(%#x, %#x, %d)\n", low, c, delta)
	}
}

// Writes src/regex/unicode.inc.
func printTables() {
	fmt.Printf("/* The classes of Unicode %s and its simple case folding, as Go's regexp has them.\n", unicode.Version)
	fmt.Println(" * Made by (cd tests/kube && go run ./regexoracle tables) >src/regex/unicode.inc. */")
	fmt.Println("/* clang-format off */")
	first := 0
	for _, name := range sortedNames(unicode.Categories) {
		checkFolding(name, unicode.Categories[name], unicode.FoldCategory[name])
		if len(name) == 2 && name != "LC" {
			first = printRanges(first, name, unicode.Categories[name])
		}
	}
	for _, name := range sortedNames(unicode.Scripts) {
		// This version of Go does not find scripts whose names have two words.
		if _, err := regexp.Compile(`\p{` + name + "}"); err != nil {
			continue
		}
		checkFolding(name, unicode.Scripts[name], unicode.FoldScript[name])
		first = printRanges(first, name, unicode.Scripts[name])
	}
	for _, name := range sortedNames(unicode.Categories) {
		parts := partsOf(name)
		if len(parts) == 0 {
			continue
		}
		for c := rune(0); c <= unicode.MaxRune; c++ {
			found := false
			for _, part := range parts {
				found = found || unicode.Is(unicode.Categories[part], c)
			}
			if found != unicode.Is(unicode.Categories[name], c) {
				log.Fatalf("%s is not the sum of %v", name, parts)
			}
		}
		fmt.Printf("UNICODE_UNION(\"%s\", \"%s\")\n", canonical(name), strings.Join(parts, " "))
	}
	aliases := map[string]string{}
	for name, category := range unicode.CategoryAliases {
		if unicode.Categories[canonical(name)] == nil && unicode.Scripts[canonical(name)] == nil {
			aliases[canonical(name)] = canonical(category)
		}
	}
	for _, name := range sortedNames(aliases) {
		fmt.Printf("UNICODE_UNION(\"%s\", \"%s\")\n", name, aliases[name])
	}
	printFolding()
}

// The first and the last character of every range of every class, their neighbours, and all characters that have another case.
var edges = func() string {
	found := map[rune]bool{}
	add := func(table *unicode.RangeTable) {
		for _, r := range rangesOf(table) {
			found[r[0]-1], found[r[0]], found[r[1]], found[r[1]+1] = true, true, true, true
		}
	}
	for _, table := range unicode.Categories {
		add(table)
	}
	for _, table := range unicode.Scripts {
		add(table)
	}
	for c := rune(0); c <= unicode.MaxRune; c++ {
		if unicode.SimpleFold(c) != c {
			found[c] = true
		}
	}
	text := strings.Builder{}
	for c := rune(0); c <= unicode.MaxRune; c++ {
		if found[c] {
			text.WriteRune(c)
		}
	}
	return text.String()
}()

// All classes with and without folding, and all characters that have another case.
func unicodePatterns() []string {
	names := append(sortedNames(unicode.Categories), sortedNames(unicode.Scripts)...)
	names = append(append(names, sortedNames(unicode.CategoryAliases)...), "Any", "ASCII", "Assigned")
	found := []string{}
	for _, name := range names {
		found = append(found, `\p{`+name+"}", `(?i)\p{`+name+"}", `(?i)[^\P{`+name+"}]")
	}
	for c := rune(0); c <= unicode.MaxRune; c++ {
		if unicode.SimpleFold(c) != c {
			found = append(found, "(?i)"+string(c))
		}
	}
	return found
}
