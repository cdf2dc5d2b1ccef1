package main

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// save writes a history that was not accepted, so that it can be examined and checked again. It returns the file's name.
func save(h *History, seed int64, round int) (string, error) {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("history-%s-%d-%d.json.gz", h.Server, seed, round))
	file, err := os.Create(path)
	if err != nil {
		return "", err
	}
	packed := gzip.NewWriter(file)
	return path, errors.Join(json.NewEncoder(packed).Encode(h), packed.Close(), file.Close())
}

func load(path string) (*History, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	h := &History{}
	return h, json.NewDecoder(packed).Decode(h)
}
