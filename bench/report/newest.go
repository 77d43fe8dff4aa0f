package report

import (
	"fmt"
	"os"
	"path/filepath"
)

// Newest returns the most recent report in a folder, and its file. The report is nil if there is none.
func Newest(folder string) (path string, newest *Report, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return "", nil, err
	}
	for _, file := range files {
		r, err := ReadFile(file)
		if err != nil {
			return "", nil, err
		}
		if newest == nil || r.StartedAt.After(newest.StartedAt) {
			path, newest = file, r
		}
	}
	return path, newest, nil
}

// ReadFile reads a report's JSON.
func ReadFile(path string) (*Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := ReadJSON(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}
