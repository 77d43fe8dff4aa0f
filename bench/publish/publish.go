package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/lubdub-io/lubdub/bench/report"
)

// results is the folder of the committed result, from the repository's root.
const results = "bench/results"

// publish replaces the result below a root by a report, and shows it in the documents there.
func publish(root, prefix string, trial bool) (published string, err error) {
	r, err := report.ReadFile(prefix + ".json")
	if err != nil {
		return "", fmt.Errorf("%w; run 'make bench' first", err)
	}
	if r.Name == "" {
		return "", fmt.Errorf("%s.json does not name the commit that was measured: run 'make bench', which builds with it", prefix)
	}
	if err := worthKeeping(r); err != nil && !trial {
		return "", err
	}
	folder := filepath.Join(root, filepath.FromSlash(results))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	old, _, err := report.Newest(folder)
	if err != nil {
		return "", err
	}
	if err := write(filepath.Join(folder, r.Name+".json"), r.WriteJSON); err != nil {
		return "", err
	}
	if err := write(filepath.Join(folder, r.Name+".md"), r.WriteMarkdown); err != nil {
		return "", err
	}
	published = path.Join(results, r.Name+".json")
	if before := strings.TrimSuffix(old, ".json"); old != "" && filepath.Base(before) != r.Name {
		for _, ext := range []string{".json", ".md"} {
			if err := os.Remove(before + ext); err != nil {
				return "", err
			}
		}
	}
	return published, show(root, r)
}

// show updates the documents below a root, or none if one has no place for the report.
func show(root string, r *report.Report) error {
	shown := map[string]string{}
	for name, section := range documents {
		name = filepath.Join(root, filepath.FromSlash(name))
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if shown[name], err = showIn(string(text), section(r)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for name, text := range shown {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// worthKeeping refuses a report whose numbers prove little.
func worthKeeping(r *report.Report) error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.Quick {
		refuse("it was a quick run, whose numbers prove little: run 'make bench'")
	}
	if !r.Complete {
		refuse("the run did not come to its end")
	}
	if strings.HasSuffix(r.Lubdub.Version, "-dirty") {
		refuse("%s was built from a tree with uncommitted changes: commit, and run 'make bench' again", r.Lubdub.Version)
	}
	for _, bar := range r.Bars {
		if bar.Verdict == report.NotMeasured {
			refuse("the bar %s was not measured: %s", bar.Name, bar.Note)
		}
	}
	return errors.Join(errs...)
}

func write(path string, content func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(content(f), f.Close())
}
