// Writes the documents of YAML files as lines of JSON, as kubectl would send them: {"file": ..., "object": ...}. Names of files are
// read from standard input. A document that cannot be read becomes a line with "error".
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

type line struct {
	File   string          `json:"file"`
	Object json.RawMessage `json:"object,omitempty"`
	Error  string          `json:"error,omitempty"`
}

func write(out *json.Encoder, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		one := line{File: file}
		if one.Object, err = yaml.YAMLToJSON(document); err != nil {
			one.Error = err.Error()
		}
		if err := out.Encode(one); err != nil {
			return err
		}
	}
}

func main() {
	files := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for files.Scan() {
		if err := write(out, files.Text()); err != nil {
			log.Fatal(err)
		}
	}
}
