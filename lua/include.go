package lua

import (
	"fmt"
	"io/fs"
	"strings"
)

// reader reads the files of a folder, each once.
type reader struct {
	folder fs.FS
	files  map[string][]piece
}

// piece is code of a file, or a fragment that it includes.
type piece struct {
	include string
	code    []part
}

// script returns a file with the first line `--#include lib/x.lua` of each fragment replaced by that fragment, and the others removed.
func (r reader) script(file string) []part { return r.append(nil, file, map[string]bool{}) }

func (r reader) append(parts []part, file string, included map[string]bool) []part {
	for _, p := range r.pieces(file) {
		if p.include != "" && !included[p.include] {
			included[p.include] = true
			parts = r.append(parts, p.include, included)
		}
		parts = append(parts, p.code...)
	}
	return parts
}

func (r reader) pieces(file string) []piece {
	if known, ok := r.files[file]; ok {
		return known
	}
	raw, err := fs.ReadFile(r.folder, file)
	if err != nil {
		panic(fmt.Sprintf("lua: %v", err))
	}
	var pieces []piece
	var code []line
	for text := range strings.Lines(string(raw)) {
		if fragment, ok := strings.CutPrefix(strings.TrimSpace(text), "--#include "); ok {
			pieces, code = append(pieces, piece{code: partsOf(code)}, piece{include: fragment}), nil
		} else {
			code = append(code, parseLine(text))
		}
	}
	r.files[file] = append(pieces, piece{code: partsOf(code)})
	return r.files[file]
}
