// A webhook that misbehaves in the ways in which one made with net/http can:
//
//	gowebhook API TOKEN CERT KEY [CERT KEY]...
//
// For each certificate it prints two ports, of HTTP/2 (with HTTP/1.1 for those who want it) and of
// HTTP/1.1 alone, and it ends with its standard input. The first part of a path is one of the behaviours
// below; the second names the webhook's configuration. GET /calls returns the protocol and the path of all
// calls, a line for each. API is the URL of the server that calls, which some behaviours call back.
package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
)

type fields map[string]any

// A call that has arrived, and where its answer goes.
type call struct {
	http.ResponseWriter
	request *http.Request
	review  struct {
		Request struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
}

var (
	lock  sync.Mutex
	calls []string
	busy  = map[string]bool{}

	client = http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
)

func (c *call) send(kind string, more fields) {
	body := fields{"kind": kind, "apiVersion": "admission.k8s.io/v1"}
	for name, value := range more {
		body[name] = value
	}
	if c.Header().Get("Content-Type") == "" {
		c.Header().Set("Content-Type", "application/json")
	}
	json.NewEncoder(c).Encode(body)
}

// The response that allows the request, with more members or others.
func (c *call) response(more fields) fields {
	made := fields{"uid": c.review.Request.UID, "allowed": true}
	for name, value := range more {
		made[name] = value
	}
	return fields{"response": made}
}

func (c *call) allow(more fields) { c.send("AdmissionReview", c.response(more)) }

// Calls the server back, and returns the code of its answer.
func back(method, path string, body fields) int {
	var text []byte
	if body != nil {
		text, _ = json.Marshal(body)
	}
	request, err := http.NewRequest(method, os.Args[1]+path, bytes.NewReader(text))
	if err != nil {
		return 0
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+os.Args[2])
	answer, err := client.Do(request)
	if err != nil {
		log.Print(err)
		return 0
	}
	defer answer.Body.Close()
	io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// Removes the configuration of the webhook itself.
func (c *call) remove() string {
	name := path.Base(c.request.URL.Path)
	kind := "validating"
	if strings.Contains(name, "-mutating-") {
		kind = "mutating"
	}
	return fmt.Sprint("removed: ", back("DELETE", "/apis/admissionregistration.k8s.io/v1/"+kind+"webhookconfigurations/"+name, nil))
}

var behaviours = map[string]func(*call){
	"allow": func(c *call) { c.allow(nil) },
	"deny": func(c *call) {
		c.allow(fields{"allowed": false, "status": fields{"message": "Go says no", "code": 409, "reason": "Conflict"}})
	},
	"patch": func(c *call) {
		patch := []byte(`[{"op": "add", "path": "/metadata/labels/patched", "value": "by-go"}]`)
		c.allow(fields{"patch": patch, "patchType": "JSONPatch"})
	},
	"warn":      func(c *call) { c.allow(fields{"warnings": []string{"careful", "a \"second\" one"}}) },
	"wrong-uid": func(c *call) { c.allow(fields{"uid": "another"}) },
	"wrong-type": func(c *call) {
		c.Header().Set("Content-Type", "text/plain")
		c.allow(nil)
	},
	"no-review":   func(c *call) { c.send("ConfigMap", fields{"apiVersion": "v1"}) },
	"no-response": func(c *call) { c.send("AdmissionReview", nil) },
	"bad-json":    func(c *call) { io.WriteString(c, `{"kind": "AdmissionReview", `) },
	"empty":       func(c *call) {},
	"panic":       func(c *call) { panic("the handler of a webhook panics") },
	"abort": func(c *call) {
		io.WriteString(c, `{"kind": "AdmissionReview", "apiVersion": `)
		http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	},
	"short": func(c *call) { // says a length that it does not send
		c.Header().Set("Content-Length", "1000")
		c.allow(nil)
	},
	"redirect": func(c *call) { http.Redirect(c, c.request, "/allow/redirected", http.StatusTemporaryRedirect) },
	"busy": func(c *call) {
		lock.Lock()
		again := busy[c.request.URL.Path]
		busy[c.request.URL.Path] = true
		lock.Unlock()
		if again {
			c.allow(nil)
			return
		}
		c.Header().Set("Retry-After", "1")
		http.Error(c, "busy", http.StatusTooManyRequests)
	},
	"call-back": func(c *call) { // reads and writes before it answers
		name := path.Base(c.request.URL.Path)
		space := "/api/v1/namespaces/default"
		read := back("GET", space+"/configmaps", nil)
		written := back("POST", space+"/secrets", fields{"metadata": fields{"name": "by-" + name}})
		again := back("POST", space+"/configmaps", fields{"metadata": fields{"name": "by-" + name}})
		c.allow(fields{"warnings": []string{fmt.Sprint(read, " ", written, " ", again)}})
	},
	"remove-allow": func(c *call) { c.allow(fields{"warnings": []string{c.remove()}}) },
	"remove-deny": func(c *call) {
		c.allow(fields{"allowed": false, "warnings": []string{c.remove()}, "status": fields{"message": "for the last time"}})
	},
	"error": func(c *call) { http.Error(c, "an error of the webhook", http.StatusInternalServerError) },
	"huge": func(c *call) {
		c.Header().Set("Content-Type", "application/json")
		piece := strings.Repeat(" ", 1<<16)
		for err := error(nil); err == nil; {
			_, err = io.WriteString(c, piece)
		}
	},
	"slow": func(c *call) { <-c.request.Context().Done() },
}

func serve(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	behave := behaviours[name]
	if name == "calls" {
		lock.Lock()
		defer lock.Unlock()
		io.WriteString(w, strings.Join(calls, "\n"))
		return
	}
	c := &call{ResponseWriter: w, request: r}
	if behave == nil || json.NewDecoder(r.Body).Decode(&c.review) != nil {
		http.Error(w, "no such behaviour, or no review", http.StatusNotFound)
		return
	}
	io.Copy(io.Discard, r.Body) // so that the end of the connection ends the context
	lock.Lock()
	calls = append(calls, r.Proto+" "+r.URL.Path)
	lock.Unlock()
	behave(c)
}

func listen(certificate, key string, second bool) {
	cert, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := http.Server{Handler: http.HandlerFunc(serve), TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}}
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(second)
	go func() { log.Fatal(server.ServeTLS(listener, "", "")) }()
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
}

func main() {
	for i := 3; i+1 < len(os.Args); i += 2 {
		listen(os.Args[i], os.Args[i+1], true)
		listen(os.Args[i], os.Args[i+1], false)
	}
	io.Copy(io.Discard, os.Stdin)
}
