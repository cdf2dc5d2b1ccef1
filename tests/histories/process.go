package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"vigil/tests/watch"
)

const lineBytesMax = 64 << 20

// process is a program that records operations and prints them as lines of JSON.
type process struct {
	name     string
	cmd      *exec.Cmd
	in       io.WriteCloser
	book     *book
	idle     chan struct{} // closed when all operations are done
	finished chan error
	legs     []watch.Leg // what its watch has received
	ended    bool        // its watch ended by itself
}

// line is one line of a recorder: an operation, what a watch has received, or the report of an informer.
type line struct {
	Op
	Watch    string    `json:"watch"`
	Events   []Event   `json:"events"`
	Informer *Informer `json:"informer"`
}

func startProcess(b *book, name string, command []string, watched watch.Request) (*process, error) {
	p := &process{name: name, book: b, idle: make(chan struct{}), finished: make(chan error, 1), cmd: exec.Command(command[0], command[1:]...)}
	p.legs = []watch.Leg{{Request: watched}}
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		err := p.read(out)
		if ended := p.cmd.Wait(); err == nil {
			err = ended
		}
		p.finished <- err
	}()
	return p, nil
}

func (p *process) read(out io.Reader) error {
	isIdle := false
	defer func() {
		if !isIdle {
			close(p.idle)
		}
	}()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		if lines.Text() == "done" {
			isIdle = true
			close(p.idle)
			continue
		}
		l := &line{}
		if err := json.Unmarshal(lines.Bytes(), l); err != nil {
			return fmt.Errorf("%s printed %q: %w", p.name, lines.Text(), err)
		}
		p.take(l)
	}
	return lines.Err()
}

func (p *process) take(l *line) {
	switch {
	case l.Informer != nil:
		p.book.lock.Lock()
		defer p.book.lock.Unlock()
		p.book.h.Informers = append(p.book.h.Informers, l.Informer)
	case l.Watch != "":
		p.watched(l)
	default:
		o := l.Op
		p.book.add(&o)
	}
}

func (p *process) watched(l *line) {
	response := watch.Response{Revision: l.Revision, Progress: l.Watch == "progress"}
	for i := range l.Events {
		response.Events = append(response.Events, l.Events[i].converted())
	}
	switch l.Watch {
	case "events", "progress":
		p.legs[0].Responses = append(p.legs[0].Responses, response)
	case "ended":
		p.ended = true
	}
}

// finish tells the program the last revision, and waits until it has received everything up to it.
func (p *process) finish(revision int64) error {
	fmt.Fprintln(p.in, revision)
	p.in.Close()
	err := <-p.finished
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", p.name, err)
	case p.ended:
		return fmt.Errorf("%s: its watch ended", p.name)
	}
	if len(p.legs[0].Responses) > 0 {
		p.book.lock.Lock()
		defer p.book.lock.Unlock()
		recording := &watch.Recording{Name: strings.TrimSpace(p.name), Legs: p.legs, Complete: true}
		p.book.h.Watches = append(p.book.h.Watches, recording)
	}
	return nil
}
