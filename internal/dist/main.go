package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	version := flag.String("version", "", "the program's version")
	date := flag.String("date", "", "the commit's date, in RFC 3339: the same sources give the same files")
	flag.Parse()
	if *version == "" || *date == "" || flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: dist -version 1.2.3 -date 2026-01-31T10:00:00Z <folder of name-os-arch files>")
		os.Exit(2)
	}
	if err := finish(flag.Arg(0), *version, *date); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

const sums, sbomSuffix = "SHA256SUMS", ".cdx.json"

// finish checks each program in a folder, and writes its SBOM next to it and the checksums of all files.
func finish(folder, version, date string) error {
	programs, err := filepath.Glob(filepath.Join(folder, "*-*-*"))
	if err == nil && len(programs) == 0 {
		err = errors.New("there is no program in " + folder)
	}
	if err != nil {
		return err
	}
	for _, path := range programs {
		if strings.HasSuffix(path, sbomSuffix) {
			continue // from an earlier run
		}
		part := strings.Split(filepath.Base(path), "-")
		if err := check(path, part[len(part)-2], part[len(part)-1]); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := writeSBOM(path, part[0], version, date); err != nil {
			return fmt.Errorf("what %s is made of: %w", path, err)
		}
	}
	return writeSums(folder)
}

// writeSums writes the input of `sha256sum --check`, for every file but itself.
func writeSums(folder string) error {
	files, err := os.ReadDir(folder) // sorted by name
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, f := range files {
		if f.Name() == sums {
			continue
		}
		sum, err := sumOf(filepath.Join(folder, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, f.Name())
	}
	return os.WriteFile(filepath.Join(folder, sums), []byte(lines.String()), 0o644)
}

func sumOf(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
