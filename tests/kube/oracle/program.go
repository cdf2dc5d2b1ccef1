package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
)

// The program under test; see tests/kube_oracle.c.
type program struct {
	in  io.Writer
	out *bufio.Reader
}

func startProgram(path string) *program {
	command := exec.Command(path)
	in, err := command.StdinPipe()
	must(err)
	out, err := command.StdoutPipe()
	must(err)
	command.Stderr = os.Stderr
	must(command.Start())
	return &program{in: in, out: bufio.NewReader(out)}
}

func (p *program) ask(op byte, texts ...[]byte) (bool, []byte) {
	message := []byte{op}
	for _, text := range texts {
		message = binary.BigEndian.AppendUint32(message, uint32(len(text)))
		message = append(message, text...)
	}
	_, err := p.in.Write(message)
	must(err)
	head := make([]byte, 5)
	_, err = io.ReadFull(p.out, head)
	must(err)
	answer := make([]byte, binary.BigEndian.Uint32(head[1:]))
	_, err = io.ReadFull(p.out, answer)
	must(err)
	return head[0] == '+', answer
}
