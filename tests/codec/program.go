package main

import (
	"bytes"
	"encoding/binary"
	"log"
	"os"
	"os/exec"
	"strings"
)

// What the program makes of one case; see tests/codec_oracle.c.
type answer struct {
	ok    bool
	bytes []byte
}

// The lines of the program's tables: messages and their fields.
func tablesOf(program string) []string {
	tables, err := exec.Command(program, "--tables").Output()
	must(err)
	return strings.Split(strings.TrimSpace(string(tables)), "\n")
}

func ask(program string, tests []test, arguments ...string) []answer {
	var in bytes.Buffer
	for _, t := range tests {
		for _, block := range [][]byte{[]byte(t.name), t.sent} {
			must(binary.Write(&in, binary.LittleEndian, uint32(len(block))))
			in.Write(block)
		}
	}
	command := exec.Command(program, arguments...)
	command.Stdin, command.Stderr = &in, os.Stderr
	out, err := command.Output()
	must(err)
	answers := []answer{}
	for len(out) > 0 {
		if out[0] != 'y' {
			answers = append(answers, answer{})
			out = out[1:]
			continue
		}
		size := 5 + binary.LittleEndian.Uint32(out[1:])
		answers = append(answers, answer{true, out[5:size]})
		out = out[size:]
	}
	if len(answers) != len(tests) {
		log.Fatal("an answer is missing")
	}
	return answers
}
