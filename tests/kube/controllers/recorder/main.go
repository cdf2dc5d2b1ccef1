// A relay that writes down what a client asks of an API server: one line of JSON for each connection and each request.
//
//	recorder -listen HOST:PORT -target URL -ca FILE -serve-cert FILE -serve-key FILE -cert FILE -key FILE -record FILE
//
// It serves HTTP/2 and HTTP/1.1 over TLS with one certificate, and passes every request on with the other one, that of the
// client whose requests it records. It ends when its standard input ends; requests and connections that are still open are
// then written down as open.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"time"
)

// record is the file with the lines.
type record struct {
	mutex sync.Mutex
	lines *json.Encoder
	open  map[any]struct{} // exchanges and connections that have not ended
}

func (r *record) begin(line any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.open[line] = struct{}{}
}

// end writes a line, unless it was written when the recorder ended.
func (r *record) end(line any, finish func()) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if _, found := r.open[line]; !found {
		return
	}
	finish()
	r.write(line)
}

func (r *record) write(line any) {
	delete(r.open, line)
	if err := r.lines.Encode(line); err != nil {
		log.Fatal(err)
	}
}

// close writes what has not ended.
func (r *record) close() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for line := range r.open {
		r.write(line)
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// connection is one of the client's.
type connection struct {
	net.Conn  `json:"-"`
	record    *record
	Kind      string  `json:"kind"`
	ID        int     `json:"connection"`
	Begin     float64 `json:"begin"`
	End       float64 `json:"end,omitempty"`
	FromBytes int     `json:"from_client"`
	ToBytes   int     `json:"to_client"`
}

func (c *connection) count(counter *int, n int) {
	c.record.mutex.Lock()
	defer c.record.mutex.Unlock()
	*counter += n
}

func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.count(&c.FromBytes, n)
	return n, err
}

func (c *connection) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.count(&c.ToBytes, n)
	return n, err
}

func (c *connection) Close() error {
	c.record.end(c, func() { c.End = seconds(time.Now()) })
	return c.Conn.Close()
}

// listener numbers the connections.
type listener struct {
	net.Listener
	record *record
	count  int
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.count++
	c := &connection{Conn: conn, record: l.record, Kind: "connection", ID: l.count, Begin: seconds(time.Now())}
	l.record.begin(c)
	return c, nil
}

// exchange is a request and its answer. Sizes are those of the bodies as they are on the connection, perhaps compressed.
type exchange struct {
	http.ResponseWriter `json:"-"`
	record              *record
	Kind                string         `json:"kind"`
	Connection          int            `json:"connection"`
	Begin               float64        `json:"begin"`
	End                 float64        `json:"end,omitempty"`
	Protocol            string         `json:"protocol"`
	Method              string         `json:"method"`
	Path                string         `json:"path"`
	Query               url.Values     `json:"query"`
	Headers             http.Header    `json:"headers"`
	Body                []byte         `json:"body,omitempty"`
	Status              int            `json:"status"`
	AnswerHeaders       http.Header    `json:"answer_headers"`
	AnswerBytes         int            `json:"answer_bytes"`
	Events              map[string]int `json:"events,omitempty"` // of a watch: how many of each type
	EventBytes          map[string]int `json:"event_bytes,omitempty"`
	split               *splitter
}

func (e *exchange) Unwrap() http.ResponseWriter { return e.ResponseWriter }

func (e *exchange) WriteHeader(status int) {
	e.record.mutex.Lock()
	e.Status, e.AnswerHeaders = status, e.Header().Clone()
	if e.Query.Get("watch") != "" && status == http.StatusOK {
		e.split = newSplitter(e.Header().Get("Content-Type"))
		e.Events, e.EventBytes = map[string]int{}, map[string]int{}
	}
	e.record.mutex.Unlock()
	e.ResponseWriter.WriteHeader(status)
}

func (e *exchange) Write(b []byte) (int, error) {
	e.record.mutex.Lock()
	e.AnswerBytes += len(b)
	if e.split != nil {
		e.split.add(b, func(name string, size int) {
			e.Events[name]++
			e.EventBytes[name] += size
		})
	}
	e.record.mutex.Unlock()
	return e.ResponseWriter.Write(b)
}

type connectionKey struct{}

func connectionOf(conn net.Conn) int {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	return conn.(*connection).ID
}

// recording returns a handler that records and then lets the other one answer.
func recording(r *record, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		e := &exchange{ResponseWriter: w, record: r, Kind: "request", Connection: request.Context().Value(connectionKey{}).(int),
			Begin: seconds(time.Now()), Protocol: request.Proto, Method: request.Method, Path: request.URL.Path,
			Query: request.URL.Query(), Headers: request.Header.Clone()}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		e.Body = body
		request.Body = io.NopCloser(bytes.NewReader(body))
		r.begin(e)
		// Also when the relay panics because the client has gone.
		defer r.end(e, func() { e.End = seconds(time.Now()) })
		next.ServeHTTP(e, request)
	})
}

func relay(target *url.URL, trusted *x509.CertPool, client tls.Certificate) http.Handler {
	transport := &http.Transport{
		TLSClientConfig:    &tls.Config{RootCAs: trusted, Certificates: []tls.Certificate{client}},
		ForceAttemptHTTP2:  true,
		DisableCompression: true, // what the client accepts is passed on as it is
	}
	return &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // events are passed on at once
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
	}
}

func run(listen, target, ca, serveCert, serveKey, cert, key, path string) error {
	to, err := url.Parse(target)
	if err != nil {
		return err
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem)
	client, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return err
	}
	serving, err := tls.LoadX509KeyPair(serveCert, serveKey)
	if err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	r := &record{lines: json.NewEncoder(file), open: map[any]struct{}{}}
	plain, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:   recording(r, relay(to, trusted, client)),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{serving}, ClientAuth: tls.RequestClientCert},
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, connectionOf(conn))
		},
	}
	go func() { log.Fatal(server.ServeTLS(&listener{Listener: plain, record: r}, "", "")) }()
	fmt.Println("listening")
	_, err = io.Copy(io.Discard, os.Stdin)
	r.close()
	return err
}

func main() {
	listen := flag.String("listen", "", "the address to listen on")
	target := flag.String("target", "", "the URL of the API server")
	ca := flag.String("ca", "", "the authority of the API server's certificate")
	serveCert := flag.String("serve-cert", "", "the certificate for the client")
	serveKey := flag.String("serve-key", "", "its key")
	cert := flag.String("cert", "", "the certificate for the API server")
	key := flag.String("key", "", "its key")
	path := flag.String("record", "", "the file for the lines")
	flag.Parse()
	if err := run(*listen, *target, *ca, *serveCert, *serveKey, *cert, *key, *path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
