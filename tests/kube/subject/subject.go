// Package subject talks to a program under test that answers requests; see tests/oracle.h.
package subject

import (
	"bufio"
	"encoding/binary"
	"io"
	"log"
	"os"
	"os/exec"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Program is one that runs.
type Program struct {
	in  io.Writer
	out *bufio.Reader
}

// Start starts the program.
func Start(path string) *Program {
	command := exec.Command(path)
	in, err := command.StdinPipe()
	must(err)
	out, err := command.StdoutPipe()
	must(err)
	command.Stderr = os.Stderr
	must(command.Start())
	return &Program{in: in, out: bufio.NewReader(out)}
}

// Ask sends a request and returns whether the answer is positive, and its text.
func (p *Program) Ask(op byte, texts ...[]byte) (bool, []byte) {
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
