// A stand-in for the server of a kubelet, which a kube-apiserver calls for exec, attach, port-forward and logs. It speaks the
// protocols of the real one with the same library. There are no containers: commands run in a folder of the test, with one
// process for each, and attach and ports only send back what they get.
//
//	kubelet CERTIFICATE KEY FOLDER
//
// It writes its port to standard output, later a line for each followed log whose client has left, and ends when its standard input
// ends.
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const (
	idle     = time.Hour
	creation = 30 * time.Second
	lines    = 100_000 // of the container "long"
)

type kubelet struct{ folder string }

// ExecInContainer runs a command. With a terminal, "size" waits for its size, and writes whether there is one.
func (k kubelet) ExecInContainer(ctx context.Context, _, _, container string, command []string, in io.Reader, out, errors io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	if tty && command[0] == "size" {
		size := <-resize
		fmt.Fprintf(out, "%v\n", size.Width > 0 && size.Height > 0)
		return nil
	}
	process := exec.CommandContext(ctx, command[0], command[1:]...)
	process.Dir = k.folder
	process.Env = append(os.Environ(), "CONTAINER="+container)
	process.Stdout = out
	if errors != nil {
		process.Stderr = errors
	} else {
		process.Stderr = out
	}
	if in != nil {
		// Not process.Stdin: the command may end before its input.
		pipe, err := process.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			io.Copy(pipe, in)
			pipe.Close()
		}()
	}
	err := process.Run()
	if failed, ok := err.(*exec.ExitError); ok {
		return utilexec.ExitErrorWrapper{ExitError: failed}
	}
	return err
}

func (kubelet) AttachContainer(_ context.Context, _, _, container string, in io.Reader, out, errors io.WriteCloser,
	_ bool, _ <-chan remotecommand.TerminalSize) error {
	fmt.Fprintf(out, "attached to %s\n", container)
	if errors != nil {
		fmt.Fprintln(errors, "an error of the container")
	}
	if in != nil {
		_, err := io.Copy(out, in)
		return err
	}
	return nil
}

func (kubelet) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	fmt.Fprintf(stream, "port %d\n", port)
	_, err := io.Copy(stream, stream)
	return err
}

func (k kubelet) run(w http.ResponseWriter, r *http.Request) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	pod, container := r.PathValue("pod"), r.PathValue("container")
	if r.PathValue("what") == "exec" {
		remotecommand.ServeExec(w, r, k, pod, "", container, r.URL.Query()["command"], options, idle, creation,
			remotecommand.SupportedStreamingProtocols)
		return
	}
	remotecommand.ServeAttach(w, r, k, pod, "", container, options, idle, creation, remotecommand.SupportedStreamingProtocols)
}

func (k kubelet) forward(w http.ResponseWriter, r *http.Request) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, k, r.PathValue("pod"), "", options, idle, creation, portforward.SupportedProtocols)
}

// logs writes the options that it gets. The container "long" has many lines; a followed one gets a line after another while the
// client is there.
func (k kubelet) logs(w http.ResponseWriter, r *http.Request) {
	flusher := w.(http.Flusher)
	query := r.URL.Query()
	if r.PathValue("container") == "long" {
		count := lines
		if tail, err := strconv.Atoi(query.Get("tailLines")); err == nil {
			count = tail
		}
		for i := range count {
			fmt.Fprintf(w, "line %d of a container that has written very much\n", i)
		}
		return
	}
	fmt.Fprintf(w, "logs of %s: %s\n", r.PathValue("container"), query.Encode())
	if query.Get("follow") != "true" {
		return
	}
	for i := 0; ; i++ {
		fmt.Fprintf(w, "line %d\n", i)
		flusher.Flush()
		select {
		case <-r.Context().Done():
			fmt.Println("left", r.PathValue("pod"))
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func main() {
	certificate, err := tls.LoadX509KeyPair(os.Args[1], os.Args[2])
	if err != nil {
		panic(err)
	}
	k := kubelet{os.Args[3]}
	mux := http.NewServeMux()
	mux.HandleFunc("/{what}/{namespace}/{pod}/{container}", k.run)
	mux.HandleFunc("/portForward/{namespace}/{pod}", k.forward)
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", k.logs)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	// Upgraded connections exist in HTTP/1.1 only.
	server := &http.Server{Handler: mux, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
	go server.ServeTLS(listener, "", "")
	io.Copy(io.Discard, os.Stdin)
}
