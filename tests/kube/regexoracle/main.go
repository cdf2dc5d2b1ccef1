// Compares Vigil's regular expressions with Go's regexp: patterns from a list, and random ones made of their parts, with random
// texts: whether a pattern is accepted, the text of its error, whether it matches, and where.
//
//	go run ./regexoracle check PROGRAM COUNT SEED    compares the answers of regex_oracle
//	go run ./regexoracle record COUNT SEED           writes cases and correct answers for tests/regex_oracle.py
//	go run ./regexoracle tables                      writes src/regex/unicode.inc
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"vigil/tests/kube/subject"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Patterns with what a random one rarely has.
var patterns = []string{
	"(?i", "(?", "(?)", "(?:)", "(?-)", "(?i-)", "(?i-s)", "(?--i)", "(?P<", "(?P<n", "(?P<n>", "(?P<>a)", "(?P<é>a)", "(?<n>a)", "(?<", "(?<n", "(?P=n)", "(?'n'a)", "(?=a)", "(?!a)", "(?<=a)", "(?#a)",
	"(?P<n>a)(?P<n>b)", "\\", "a\\", "\\p", "\\P", "\\p{", "\\p{}", "\\p{^}", "\\p{^L}", "\\P{^L}", "\\pL", "\\PL", "\\pé", "\\p{Foo}", "\\p{ l u }", "\\p{old_italic}", "\\p{Old_Italic}", "\\p{LC}", "(?i)\\p{LC}", "(?i)\\P{Lu}", "\\p{any}", "\\p{ASCII}", "(?i)\\p{ascii}", "(?i)\\P{ascii}",
	"\\p{Assigned}", "\\P{assigned}", "\\p{letter}", "[\\p{L}\\d_-]+", "[^\\p{L}]", "[^\\P{L}]", "\\x", "\\x4", "\\x41", "\\x{", "\\x{}", "\\x{41", "\\x{41}", "\\x{110000}", "\\x{10ffff}", "\\x{0000000000041}", "\\xg1", "\\x1g", "\\x{g}", "\\1", "\\12", "\\123", "\\0", "\\08", "\\8", "\\400", "\\777", "\\_", "\\é", "\\ ", "\\/", "\\e", "\\Z", "\\C", "\\E", "\\Q", "\\Qa.b", "\\Qa\\E*", "\\Q\\E*", "a\\Q\\E*", "\\Q\\Ea",
	"[", "[]", "[^]", "[]]", "[^]]", "[a", "[a-", "[a-]", "[-a]", "[a-b-c]", "[z-a]", "[a-\\d]", "[\\d-z]", "[a\\", "[\\", "[[:alpha:]", "[[:alpha:]]", "[[:foo:]]", "[[:^alpha:]]", "[[:^foo:]]", "[:alpha:]", "[[:alpha]", "[[:]", "[[:ascii:]]", "[[:cntrl:]]", "[[:word:]]", "(?i)[[:upper:]]", "(?i)[[:^upper:]]", "(?i)[k-k]", "(?i)[^k]", "[\\Q]", "[\\b]", "[\\x{41}-\\x{5a}]", "[\\n]", "[^\\n]", "[\\x00-\\x{10ffff}]", "[^\\x00-\\x{10ffff}]",
	"*", "+", "?", "a**", "a*?*", "a+*", "a??", "a???", "a*?", "a+?", "a{2}{3}", "a{2}*", "a{2}?", "a{2}??", "{2}", "a|*", "(*)", "(?i)*", "a(?i)*", "a*(?i)*", "^*", "$+", "\\b{2}", "a{", "a{}", "a{,}", "a{,2}", "a{2", "a{2,", "a{2,3", "a{02}", "a{2,03}", "a{0}", "a{0,0}", "a{0,}", "a{1,}", "a{1000}", "a{1001}", "a{1001", "a{2,1001}", "a{3,2}", "a{99999999999999999999}", "a{1,99999999999999999999}", "(a{10}){100}", "(a{10}){101}", "(a{10}){0,101}", "((a{10}){0}){1000}", "(a{10,}){101}", "(a{0,}){1000}", "((a{31}){31}){2}", "x{2}{1001}", "(x{2}?){501}?", "{1001}", "{2,1}",
	")", "(", "())", "(()", "a)", "(a|b", "a||b", "|", "(|)", "()*", "(|a)*", "(|a)+", "(a|)*", "(a*)*", "(a*)+", "(a*)?", "(a?)*?", "(?:a*)*", "(?:a+)?", "(?:a?){2,3}", "(a*|b)*c", "(?U)a*", "(?U)a*?", "(?U:a+)b", "(?m)^a$", "(?s).", "(?ims-U)a.b", "(?i)straße", "(?i)ſ", "(?i)K", "(?i)Σ", "(?i)ᲀ", "(?i)ǅ", "(?i)\\x{345}", "(?i)[α-ω]", "(?i)[^α-ω]", "(?i)ꙋ",
	"\xff", "a\xffb", "[\xff]", "\\\xff", "(?P<\xff>a)", "(?P<\xff", "(?\xff)", "\\p{\xff}", "\\p{\xff", "\\p\xff", "\\Q\xff\\E", "\\x\xff", "\\x{\xff}", "a\\Qb\xff\\Ec",
	strings.Repeat("(", 999) + "a" + strings.Repeat(")", 999), strings.Repeat("(", 1000) + "a" + strings.Repeat(")", 1000), strings.Repeat("(?:", 1500) + "a" + strings.Repeat(")", 1500), strings.Repeat("(?:b", 1500) + "a" + strings.Repeat(")", 1500),
	strings.Repeat("(?:", 998) + "a" + strings.Repeat(")*", 998), strings.Repeat("(?:", 999) + "a" + strings.Repeat(")*", 999), strings.Repeat("(?:", 1000) + "a" + strings.Repeat(")*", 1000), strings.Repeat("a|", 2000) + "b", strings.Repeat("(a|b", 300) + strings.Repeat(")", 300), strings.Repeat("(ab*", 300) + strings.Repeat(")", 300), strings.Repeat("(ab*|c", 400) + strings.Repeat(")", 400),
	"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", "(ab|a)(bc|c)?", "(a|ab)(c|bcd)", "a|ab|abc", "abc|ab|a", "(?:ab|a)*?b", "ab*?|abb", "(a+)(b+)?", "\\b\\w+\\b", "\\B", "\\b", "$", "^", "(?m)$", "(?m)^", "^$", "\\z\\A", "",
}

var texts = []string{"", "a", "ab", "abc", "aaa", "xabab", "aXbA", "foo bar", "héllo", "ÉÀ", "\n", "a\nb\n", "123", "kK\u212a", "ſsS", "Σσς", "ßẞ", "\u0345ιΙ\u1fbe", "日本", "a-b_c.d", "\xff", "a\xe0\x80\x80b", "\xed\xa0\x80", "\ufffd", "[]", "{2}", "ǅǆǄ", "\x00", "\U0001F600x", "αβγΩ"}

var pieces = []string{"a", "b", "c", "ab", "k", "é", "Σ", "ſ", ".", "^", "$", "\\b", "\\B", "\\A", "\\z", "\\d", "\\W", "\\s", "\\S", "\\pL", "\\P{Lu}", "\\p{Greek}", "\\p{^Nd}", "[a-c]", "[^a]", "[[:alpha:]]", "[[:^digit:]x]", "[\\pL-]", "[k-s]", "[^σ]", "\\x41", "\\x{3c3}", "\\n", "\\.", "-", "1", "_", "\\Qa.\\E", " "}

func randomPattern(r *rand.Rand, depth int) string {
	b := strings.Builder{}
	for n := r.Intn(4); n >= 0; n-- {
		if depth > 0 && r.Intn(3) == 0 {
			open := []string{"(", "(?:", "(?i:", "(?s:", "(?m:", "(?U:", "(?-i:", "(?P<n>"}
			b.WriteString(open[r.Intn(len(open))] + randomPattern(r, depth-1) + ")")
		} else {
			b.WriteString(pieces[r.Intn(len(pieces))])
		}
		if r.Intn(3) == 0 {
			repeats := []string{"*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}", "{0}", "{2,3}?", "{0,}", "{1}"}
			b.WriteString(repeats[r.Intn(len(repeats))])
		}
		if r.Intn(6) == 0 {
			b.WriteString("|")
		}
		if r.Intn(20) == 0 {
			flags := []string{"(?i)", "(?m)", "(?s)", "(?U)", "(?-i)"}
			b.WriteString(flags[r.Intn(len(flags))])
		}
	}
	return b.String()
}

// A pattern with a few mistakes.
func spoil(r *rand.Rand, pattern string) string {
	alphabet := "()[]{}*+?|\\^$.-,:<>P0123aAipQEx=!#é\xff"
	bytes := []byte(pattern)
	for n := r.Intn(3); n >= 0; n-- {
		at := r.Intn(len(bytes) + 1)
		switch r.Intn(3) {
		case 0:
			bytes = append(bytes[:at:at], append([]byte{alphabet[r.Intn(len(alphabet))]}, bytes[at:]...)...)
		case 1:
			bytes = bytes[:at]
		default:
			if at < len(bytes) {
				bytes = append(bytes[:at:at], bytes[at+1:]...)
			}
		}
	}
	return string(bytes)
}

func randomText(r *rand.Rand) string {
	b := strings.Builder{}
	for n := r.Intn(4); n >= 0; n-- {
		b.WriteString(texts[r.Intn(len(texts))])
	}
	return b.String()
}

func expected(pattern, text string) (bool, string) {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return false, err.Error()
	}
	b := strings.Builder{}
	if compiled.MatchString(text) {
		b.WriteString("yes")
	} else {
		b.WriteString("no")
	}
	for _, found := range compiled.FindAllStringIndex(text, -1) {
		fmt.Fprintf(&b, " %d-%d", found[0], found[1])
	}
	return true, b.String()
}

// Errors show at most 900 bytes of the pattern.
func shortened(text string) string {
	if quoted := strings.Index(text, "`"); quoted >= 0 && len(text) > quoted+900 {
		return text[:quoted+900]
	}
	return text
}

func randomCase(r *rand.Rand) (pattern, text string) {
	pattern = randomPattern(r, 3)
	if r.Intn(3) == 0 {
		pattern = spoil(r, pattern)
	}
	return pattern, randomText(r)
}

func record(r *rand.Rand, count int) {
	write := func(pattern, text string) {
		good, want := expected(pattern, text)
		if !utf8.ValidString(pattern+text) || len(pattern) > 500 {
			return
		}
		line, err := json.Marshal([]any{pattern, text, good, want})
		must(err)
		fmt.Println(string(line))
	}
	for i, pattern := range patterns {
		write(pattern, texts[i%len(texts)])
	}
	for i := 0; i < count; i++ {
		write(randomCase(r))
	}
}

func main() {
	args := os.Args[1:]
	if len(args) == 1 && args[0] == "tables" {
		printTables()
		return
	}
	if len(args) < 3 || (args[0] == "check") != (len(args) == 4) {
		log.Fatal("usage: regexoracle check PROGRAM COUNT SEED | record COUNT SEED | tables")
	}
	count, err := strconv.Atoi(args[len(args)-2])
	must(err)
	seed, err := strconv.ParseInt(args[len(args)-1], 10, 64)
	must(err)
	r := rand.New(rand.NewSource(seed))
	if args[0] == "record" {
		record(r, count)
		return
	}
	program := subject.Start(args[1])
	wrong, valid, total := 0, 0, 0
	compare := func(pattern, text string) {
		wantGood, want := expected(pattern, text)
		good, answer := program.Ask('m', []byte(pattern), []byte(text))
		got := string(answer)
		total++
		if good {
			valid++
		}
		if good == wantGood && shortened(got) == shortened(want) {
			return
		}
		wrong++
		if wrong <= 20 {
			fmt.Printf("%.300q in %q\n  wants %.300s\n  gets  %.300s\n", pattern, text, want, got)
		}
	}
	for _, pattern := range patterns {
		for _, text := range texts {
			compare(pattern, text)
		}
	}
	for _, pattern := range unicodePatterns() {
		compare(pattern, edges)
	}
	for i := 0; i < count; i++ {
		compare(randomCase(r))
	}
	fmt.Printf("%d cases, %d of them with a valid pattern: %d wrong\n", total, valid, wrong)
	if wrong > 0 {
		os.Exit(1)
	}
}
