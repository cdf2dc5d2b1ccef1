package main

import (
	"fmt"
	"strconv"
	"unicode"
)

// Writes src/codec/printable.inc: the ranges of characters beyond ASCII that Go prints as they are within quotes.
func writePrintable() {
	fmt.Println("/* Made by tests/kube/celoracle printable from Go's strconv.IsPrint: do not edit. */\n/* clang-format off */")
	line := ""
	for first := rune(0x80); first <= unicode.MaxRune; first++ {
		if !strconv.IsPrint(first) {
			continue
		}
		last := first
		for last < unicode.MaxRune && strconv.IsPrint(last+1) {
			last++
		}
		if row := fmt.Sprintf("{0x%x, 0x%x}, ", first, last); len(line)+len(row) > 100 {
			fmt.Println(line[:len(line)-1])
			line = row
		} else {
			line += row
		}
		first = last
	}
	fmt.Println(line[:len(line)-1])
}
