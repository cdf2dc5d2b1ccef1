// A webhook that does as little as it can, so that what is measured is the server that calls it:
//
//	webhook_bench CERT KEY
//
// It prints its port, and ends with its standard input. POST /admit admits what has no member
// "refused", POST /convert changes the apiVersion of objects, GET /calls returns how often both were
// called.
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
	"sync/atomic"
)

var calls atomic.Int64

// The first text with this name, which is that of the request: it is its first member.
func textOf(body []byte, name string) []byte {
	mark := []byte(`"` + name + `":"`)
	begin := bytes.Index(body, mark)
	if begin < 0 {
		return nil
	}
	rest := body[begin+len(mark):]
	return rest[:max(0, bytes.IndexByte(rest, '"'))]
}

func admit(w http.ResponseWriter, r *http.Request) {
	calls.Add(1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	verdict := `"allowed":true`
	if bytes.Contains(body, []byte(`"refused":`)) {
		verdict = `"allowed":false,"status":{"code":403}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"%s",%s}}`, textOf(body, "uid"), verdict)
}

type review struct {
	Kind       string    `json:"kind"`
	APIVersion string    `json:"apiVersion"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID     string            `json:"uid"`
	Desired string            `json:"desiredAPIVersion"`
	Objects []json.RawMessage `json:"objects"`
}

type response struct {
	UID     string            `json:"uid"`
	Objects []json.RawMessage `json:"convertedObjects"`
	Result  map[string]any    `json:"result"`
}

func convert(w http.ResponseWriter, r *http.Request) {
	calls.Add(1)
	var asked review
	if json.NewDecoder(r.Body).Decode(&asked) != nil || asked.Request == nil {
		http.Error(w, "no ConversionReview", http.StatusBadRequest)
		return
	}
	answer := response{UID: asked.Request.UID, Result: map[string]any{"status": "Success"}}
	wanted := []byte(`"apiVersion":"` + asked.Request.Desired + `"`)
	for _, object := range asked.Request.Objects {
		old := []byte(`"apiVersion":"` + string(textOf(object, "apiVersion")) + `"`)
		answer.Objects = append(answer.Objects, bytes.Replace(object, old, wanted, 1))
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(review{Kind: asked.Kind, APIVersion: asked.APIVersion, Response: &answer})
}

func main() {
	cert, err := tls.LoadX509KeyPair(os.Args[1], os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/admit", admit)
	http.HandleFunc("/convert", convert)
	http.HandleFunc("/calls", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, calls.Load()) })
	server := http.Server{TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}}
	go func() { log.Fatal(server.ServeTLS(listener, "", "")) }()
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	io.Copy(io.Discard, os.Stdin)
}
