package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/lubdub-io/lubdub/internal/suggest"
)

// applyYAML applies a file to the configuration so far. The file is one flat mapping from setting to value. It is walked as a tree, not
// decoded into the struct, so that every mistake can be reported with its line and every value uses the same parser as a flag.
func (l *Loaded) applyYAML(name string, text []byte) (ps problems) {
	file, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		ps.addf("%s", yamlSyntax(name, err))
		return ps
	}
	seen := map[string]int{}
	for i, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType {
			continue
		}
		if i > 0 {
			ps.addf("%s:%d: a second document; a configuration is one", name, lineOf(doc.Body))
			break
		}
		pairs, err := entries(doc.Body)
		if err != nil {
			ps.addf("%s:%d: %v", name, lineOf(doc.Body), err)
			return ps
		}
		for _, pair := range pairs {
			l.applyPair(name, pair, seen, &ps)
		}
	}
	return ps
}

// entries returns the pairs of a mapping; this parser represents a mapping of one pair by another type.
func entries(body ast.Node) ([]*ast.MappingValueNode, error) {
	switch n := body.(type) {
	case *ast.MappingNode:
		return n.Values, nil
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, nil
	default:
		return nil, errors.New("a configuration is a list of lines of the form 'setting: value'")
	}
}

func (l *Loaded) applyPair(name string, pair *ast.MappingValueNode, seen map[string]int, ps *problems) {
	key, line := pair.Key.GetToken().Value, lineOf(pair.Key)
	f, ok := Lookup(key)
	switch {
	case IsRemoved(key):
		l.sources[key] = Source{Layer: FromFile, Where: fmt.Sprintf("%s:%d", name, line)}
		return
	case !ok:
		var known []string
		for _, f := range Fields() {
			if !f.EnvOnly {
				known = append(known, f.Name)
			}
		}
		ps.addf("%s:%d: there is no setting %q%s", name, line, key, suggest.DidYouMean(key, known))
		return
	case f.EnvOnly:
		ps.addf("%s:%d: %s does not belong into this file, which is not secret; use %s, or signing-keys-file", name, line, key, f.Env)
		return
	case seen[key] != 0:
		ps.addf("%s:%d: %s was set in line %d already", name, line, key, seen[key])
		return
	}
	seen[key] = line
	text, err := scalar(pair.Value)
	if err != nil {
		ps.addf("%s:%d: %s: %v", name, line, key, err)
		return
	}
	l.apply(f, text, Source{Layer: FromFile, Where: fmt.Sprintf("%s:%d", name, line)}, ps)
}

// scalar returns the text of a value. A list of scalars becomes a comma-separated list.
func scalar(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, nil
	case *ast.SequenceNode:
		items := make([]string, len(n.Values))
		for i, item := range n.Values {
			if _, nested := item.(*ast.SequenceNode); nested {
				return "", errors.New("the value is a list of lists")
			}
			var err error
			if items[i], err = scalar(item); err != nil {
				return "", err
			}
		}
		return strings.Join(items, ","), nil
	case *ast.NullNode:
		return "", errors.New(`no value is given; leave the line out for the default, or write ""`)
	default:
		return "", errors.New("the value must be plain text, a number or a list")
	}
}

func lineOf(n ast.Node) int { return n.GetToken().Position.Line }

// yamlSyntax reports where the YAML is invalid, without quoting it: the line may contain a password.
func yamlSyntax(name string, err error) string {
	if syntax, ok := errors.AsType[*yaml.SyntaxError](err); ok {
		return fmt.Sprintf("%s:%d: not YAML: %s", name, syntax.Token.Position.Line, syntax.Message)
	}
	return fmt.Sprintf("%s: not YAML", name)
}
