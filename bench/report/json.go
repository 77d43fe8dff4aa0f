package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// ReadJSON reads the output of WriteJSON.
func ReadJSON(r io.Reader) (*Report, error) {
	var report Report
	if err := json.NewDecoder(r).Decode(&report); err != nil {
		return nil, fmt.Errorf("not a report of lubdub-bench: %w", err)
	}
	if report.Version != Version {
		return nil, fmt.Errorf("a report of version %d; this program reads version %d", report.Version, Version)
	}
	return &report, nil
}
