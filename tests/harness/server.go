// Package harness starts a server for one test and stops it afterwards.
//
// The server under test is VIGIL_BIN (default: build-test/vigil); the peer is VIGIL_PEER (default:
// build/peer/etcd). A binary named etcd is started with etcd's own flags, so that the expectations
// of every test can be verified on a real etcd: VIGIL_BIN=build/peer/etcd go test ./...
package harness

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	readyLine   = "ready to serve client requests"
	decidedLine = "enabled capabilities for version" // etcd may serve before, and its answers differ until then
	// In front of a cluster: printed when the mirror is complete. Before, only forwarded calls are served.
	followingLine = "following the cluster"
	startLimit    = 60 * time.Second
	stopLimit     = 60 * time.Second
	logTailSize   = 64 << 10
)

// Root is the top of the repository.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Subject is the path of the server under test.
func Subject() string {
	return fromEnv("VIGIL_BIN", "build-test/vigil")
}

// Peer is the path of the real etcd.
func Peer() string {
	return fromEnv("VIGIL_PEER", "build/peer/etcd")
}

func fromEnv(name, path string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return filepath.Join(Root(), path)
}

// IsEtcd says whether a binary is a real etcd.
func IsEtcd(binary string) bool {
	return filepath.Base(binary) == "etcd"
}

// Options say how a server is started. The zero value has useful defaults.
type Options struct {
	Dir  string   // data directory; a new one by default
	Port int      // client port; a free one by default
	Args []string // more flags
	Env  []string // more variables of its environment
	TLS  bool     // listen on https; Args name the certificate
	Fast bool     // a real etcd runs without syncs, for tests that only need its answers
	// A program with its arguments that executes the server in its own process.
	Launcher []string

	command   []string // all arguments, instead of those that follow from the fields above
	readyLine string   // what it prints when it serves, if that is unusual
	follows   bool     // it is in front of an etcd that runs
}

// Server is one running process.
type Server struct {
	Addr    string // 127.0.0.1:port
	URL     string // http://127.0.0.1:port, or https
	Dir     string
	Options Options

	binary string
	cmd    *exec.Cmd
	log    tail
	isCold bool // in front of a cluster, without a mirror
	ready  chan struct{}
	exited chan struct{}
}

// Start starts the server under test and stops it when the test ends.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	return StartBinary(t, Subject(), options)
}

// StartBinary is Start for any binary.
func StartBinary(t testing.TB, binary string, options Options) *Server {
	t.Helper()
	if options.Dir == "" {
		options.Dir = filepath.Join(t.TempDir(), "data")
	}
	s, err := Launch(binary, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		endUpstream(options.Dir)
	})
	return s
}

// Launch starts a binary and waits until it serves.
func Launch(binary string, options Options) (*Server, error) {
	s, err := Begin(binary, options)
	if err != nil {
		return nil, err
	}
	return s, s.Await()
}

// Await waits until the server serves. If it does not, the server is killed.
func (s *Server) Await() error {
	select {
	case <-s.ready:
		return nil
	case <-s.exited:
		return fmt.Errorf("%s ended before it was ready: %v\n%s", s.binary, s.cmd.ProcessState, s.Log())
	case <-time.After(startLimit):
		s.Kill()
		return fmt.Errorf("%s was not ready after %v\n%s", s.binary, startLimit, s.Log())
	}
}

// environment returns the environment without VIGIL_… variables: they configure the tests, and the
// server would read them as its flags.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "VIGIL_")
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// newServer returns a server without a process.
func newServer(options Options) *Server {
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(options.Port))
	scheme := "http://"
	if options.TLS {
		scheme = "https://"
	}
	return &Server{Addr: addr, URL: scheme + addr, Dir: options.Dir, Options: options}
}

// Begin starts a binary and does not wait.
func Begin(binary string, options Options) (*Server, error) {
	if options.Port == 0 {
		options.Port = FreePort()
	}
	s := newServer(options)
	if !IsEtcd(binary) {
		if err := putInFront(&s.Options); err != nil {
			return nil, err
		}
	}
	s.binary, s.ready, s.exited = binary, make(chan struct{}), make(chan struct{})
	s.isCold = slices.ContainsFunc(s.Options.Args, isUpstream) && !exists(filepath.Join(s.Dir, "MIRROR"))
	command := append(slices.Clone(options.Launcher), binary)
	command = append(command, s.arguments()...)
	s.cmd = exec.Command(command[0], command[1:]...)
	s.cmd.Env = append(environment(), options.Env...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.cmd.Stdout, s.cmd.Stderr = in, in
	err = s.cmd.Start()
	in.Close()
	if err != nil {
		out.Close()
		return nil, err
	}
	go s.readLog(out)
	go func() {
		s.cmd.Wait()
		close(s.exited)
	}()
	return s, nil
}

func (s *Server) arguments() []string {
	if s.Options.command != nil {
		return s.Options.command
	}
	flags := []string{
		"--data-dir", s.Dir, "--listen-client-urls", s.URL, "--advertise-client-urls", s.URL,
	}
	if IsEtcd(s.binary) {
		peer := "http://127.0.0.1:" + strconv.Itoa(FreePort())
		flags = append(flags, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", "default="+peer, "--log-level", "info",
			"--heartbeat-interval", "20", "--election-timeout", "100")
		if s.Options.Fast {
			flags = append(flags, "--unsafe-no-fsync")
		}
	} else {
		flags = append([]string{"serve"}, flags...)
		kube := func(arg string) bool { return strings.HasPrefix(arg, "--listen-kube-urls") }
		if !slices.ContainsFunc(s.Options.Args, kube) {
			flags = append(flags, "--listen-kube-urls=") // the Kubernetes API stores its own keys
		}
		flags = append(flags, "--kube-namespace-objects=false") // tests count their own
	}
	return append(flags, s.Options.Args...)
}

func (s *Server) readLog(out io.ReadCloser) {
	defer out.Close()
	reader := bufio.NewReader(out)
	awaited := []string{readyLine}
	if s.Options.readyLine != "" {
		awaited[0] = s.Options.readyLine
	} else if IsEtcd(s.binary) {
		awaited = append(awaited, decidedLine)
	} else if s.isCold || s.Options.follows {
		awaited = append(awaited, followingLine)
	}
	for {
		line, err := reader.ReadString('\n')
		s.log.write(line)
		before := len(awaited)
		awaited = slices.DeleteFunc(awaited, func(message string) bool { return strings.Contains(line, message) })
		if before > 0 && len(awaited) == 0 {
			close(s.ready)
		}
		if err != nil {
			return
		}
	}
}

// Pid is the server's process id.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Exited is closed when the process has ended.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Log is the end of what the server printed.
func (s *Server) Log() string { return s.log.String() }

// Kill ends the process at once and waits for it.
func (s *Server) Kill() {
	s.cmd.Process.Kill()
	<-s.exited
}

// Signalled says whether a process that has ended was ended by a signal.
func (s *Server) Signalled() bool {
	status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

// Pause stops the process with SIGSTOP, and returns when no thread of it runs any more.
func (s *Server) Pause() error {
	s.cmd.Process.Signal(syscall.SIGSTOP)
	deadline := time.Now().Add(stopLimit)
	for !s.paused() {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not stop after SIGSTOP", s.binary)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func (s *Server) paused() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.Pid()))
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err == nil && !strings.HasPrefix(string(text[bytes.LastIndexByte(text, ')')+1:]), " T") {
			return false
		}
	}
	return true
}

// Continue lets a paused process run again.
func (s *Server) Continue() { s.cmd.Process.Signal(syscall.SIGCONT) }

// Stop ends the process with SIGTERM. It returns an error if the process does not stop or had ended
// for another reason.
func (s *Server) Stop() error {
	select {
	case <-s.exited:
		if code := s.cmd.ProcessState; !code.Success() && !signalled(code, syscall.SIGKILL) &&
			!signalled(code, syscall.SIGTERM) {
			return fmt.Errorf("server ended by itself: %v\n%s", code, s.Log())
		}
		return nil
	default:
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
		code := s.cmd.ProcessState
		if code.Success() || code.ExitCode() == 143 || signalled(code, syscall.SIGTERM) {
			return nil
		}
		return fmt.Errorf("server did not stop cleanly: %v\n%s", code, s.Log())
	case <-time.After(stopLimit):
		s.Kill()
		return fmt.Errorf("server did not stop within %v\n%s", stopLimit, s.Log())
	}
}

func signalled(state *os.ProcessState, signal syscall.Signal) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}

// FreePort returns a port that is free now, and that no other test gets while this process lives: a
// server that was killed finds its port again. It is below the kernel's range of ephemeral ports, so that
// no outgoing connection takes it before the server listens on it.
func FreePort() int {
	first := 0
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		fmt.Sscan(string(text), &first)
	}
	for {
		port := 0
		if first > 12_000 {
			port = 10_000 + rand.IntN(first-10_000)
		}
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		port = listener.Addr().(*net.TCPAddr).Port
		listener.Close()
		if reserve(port) {
			return port
		}
	}
}

// reserve locks the file of a port until the process ends. tests/live/server.py does the same.
func reserve(port int) bool {
	dir := filepath.Join(os.TempDir(), "vigil-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return true
	}
	fd, err := syscall.Open(filepath.Join(dir, strconv.Itoa(port)), syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC, 0o666)
	if err != nil {
		return true
	}
	if syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		return true
	}
	syscall.Close(fd)
	return false
}

// tail keeps the last bytes written to it.
type tail struct {
	lock  sync.Mutex
	bytes bytes.Buffer
}

func (t *tail) write(line string) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.bytes.WriteString(line)
	if t.bytes.Len() > 2*logTailSize {
		t.bytes.Next(t.bytes.Len() - logTailSize)
	}
}

func (t *tail) String() string {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.bytes.String()
}
