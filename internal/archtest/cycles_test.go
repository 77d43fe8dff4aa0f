package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Imports that only bring types count too: a reader follows them all the same.
var (
	tsImport = regexp.MustCompile(`(?m)^(?:(?:import|export) [^;"']*?from |import )["'](\.[^"']+)\.js["'];`)
	pyImport = regexp.MustCompile(`(?m)^\s*from \.(\w*) import ([\w, ]+|\([^)]*\))`)
)

func TestSDKModulesHaveNoImportCycles(t *testing.T) {
	t.Parallel()
	for root, read := range map[string]func(file, text string) []string{
		"../../sdk/typescript/src":    typescriptImports,
		"../../sdk/python/src/lubdub": pythonImports,
	} {
		imports := map[string][]string{}
		err := filepath.WalkDir(root, func(file string, entry os.DirEntry, err error) error {
			ext := filepath.Ext(file)
			if err != nil || entry.IsDir() || ext != ".ts" && ext != ".py" {
				return err
			}
			text, err := os.ReadFile(file)
			module := strings.TrimSuffix(filepath.ToSlash(file), ext)
			imports[module] = read(module, string(text))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(imports) < 20 {
			t.Errorf("%s has only %d modules", root, len(imports))
		}
		if circle := importCycle(imports); circle != nil {
			t.Errorf("import circle in %s: %s", root, strings.ReplaceAll(strings.Join(circle, " -> "), root+"/", ""))
		}
	}
}

func typescriptImports(module, text string) []string {
	var found []string
	for _, match := range tsImport.FindAllStringSubmatch(text, -1) {
		found = append(found, path.Join(path.Dir(module), match[1]))
	}
	return found
}

func pythonImports(module, text string) []string {
	var found []string
	for _, match := range pyImport.FindAllStringSubmatch(text, -1) {
		if match[1] != "" {
			found = append(found, path.Join(path.Dir(module), match[1]))
			continue
		}
		for _, name := range strings.FieldsFunc(match[2], func(r rune) bool { return strings.ContainsRune("(), \n", r) }) {
			found = append(found, path.Join(path.Dir(module), name))
		}
	}
	return found
}

// importCycle returns the modules of one circle, the first one again at the end, or nil.
func importCycle(imports map[string][]string) []string {
	done := map[string]bool{}
	var trail, circle []string
	var visit func(module string)
	visit = func(module string) {
		if at := slices.Index(trail, module); at >= 0 {
			circle = append(slices.Clone(trail[at:]), module)
		}
		if done[module] || circle != nil {
			return
		}
		trail = append(trail, module)
		for _, next := range imports[module] {
			visit(next)
		}
		trail = trail[:len(trail)-1]
		done[module] = true
	}
	for module := range imports {
		visit(module)
	}
	return circle
}
