package session

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/lubdub-io/lubdub/internal/cli/exit"
)

// ReadToken reads a token from standard input.
func ReadToken(env *Env, from string) (string, error) {
	if from != "-" {
		return "", exit.Misusef("a token on the command line is seen by others on this machine; write --token - and give it on standard input")
	}
	line, err := bufio.NewReader(io.LimitReader(env.Input(), 64<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	token := strings.TrimSpace(line)
	if token == "" {
		return "", exit.Misusef("there is no token on standard input")
	}
	return token, nil
}

// largestFile is more than the API takes, in bytes.
const largestFile = 8 << 20

// ReadJSON reads a file, or standard input, into the body of a request.
func ReadJSON(env *Env, file string, into any) error {
	if file == "" {
		return nil
	}
	in := env.Input()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return exit.Misused(err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, largestFile))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return exit.Misusef("%s is not the JSON of a request: %w", cmp.Or(strings.TrimPrefix(file, "-"), "standard input"), err)
	}
	return nil
}
