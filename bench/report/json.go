package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes the report as indented JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// WriteSummary writes the report without the curves of its distributions, which only the page uses.
func (r *Report) WriteSummary(w io.Writer) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var all any
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	withoutCurves(all)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(all)
}

func withoutCurves(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "curve")
		for _, part := range v {
			withoutCurves(part)
		}
	case []any:
		for _, part := range v {
			withoutCurves(part)
		}
	}
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
