package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// internalInAPI lists the exported declarations of a file whose types are of an internal package, which users cannot name.
func internalInAPI(f *ast.File) (found []string) {
	internal := map[string]bool{}
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		if strings.Contains(path, "/internal/") {
			internal[path[strings.LastIndex(path, "/")+1:]] = true
		}
	}
	check := func(name *ast.Ident, of ast.Node) {
		if !name.IsExported() || of == nil {
			return
		}
		ast.Inspect(of, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && len(field.Names) > 0 && !field.Names[0].IsExported() {
				if _, inStruct := of.(*ast.StructType); inStruct {
					return false
				}
			}
			if s, ok := n.(*ast.SelectorExpr); ok {
				if from, ok := s.X.(*ast.Ident); ok && internal[from.Name] {
					found = append(found, name.Name+" needs "+from.Name+"."+s.Sel.Name)
				}
			}
			return true
		})
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || receiverIsExported(d.Recv) {
				check(d.Name, d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					check(s.Name, s.Type)
				case *ast.ValueSpec:
					check(s.Names[0], s.Type)
				}
			}
		}
	}
	return found
}

func receiverIsExported(receiver *ast.FieldList) bool {
	of := receiver.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	name, ok := of.(*ast.Ident)
	return ok && name.IsExported()
}

// Users of the SDK can name every type that its packages export.
func TestTheAPIOfTheSDKHasNoInternalTypes(t *testing.T) {
	files, err := filepath.Glob("../../sdk/go/*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range internalInAPI(f) {
			t.Errorf("%s: %s", path, w)
		}
	}
}
