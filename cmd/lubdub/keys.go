package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/lubdub-io/lubdub/api/token"
	"github.com/lubdub-io/lubdub/internal/config"
)

// errNoKey explains how to create a key: it is the first error that new users meet.
var errNoKey = errors.New("there is no signing key, and without one no token can be made or checked. Make one and keep it:\n" +
	`  export LUBDUB_SIGNING_KEYS="k1=$(openssl rand -base64 32)"` + "\n" +
	"or put the same text into a file and name it with --signing-keys-file. All servers and commands of a deployment need the same one.\n" +
	"'lubdub dev' makes its own, with which no other process can make tokens; for your own workers: lubdub serve --redis embedded")

// keyring reads the signing keys from where the configuration specifies.
func keyring(cfg *config.Loaded) (*token.Keyring, error) {
	text, from := cfg.SigningKeys, "LUBDUB_SIGNING_KEYS"
	if cfg.SigningKeysFile != "" {
		b, err := os.ReadFile(cfg.SigningKeysFile)
		if err != nil {
			return nil, &mistake{fmt.Errorf("signing-keys-file: %w", err)}
		}
		text, from = string(b), cfg.SigningKeysFile
	}
	if strings.TrimSpace(text) == "" {
		if cfg.SigningKeysFile != "" {
			return nil, &mistake{fmt.Errorf("%s is empty; write <kid>=<base64 of at least 32 bytes> into it, for example with: echo \"k1=$(openssl "+
				"rand -base64 32)\"", from)}
		}
		return nil, &mistake{errNoKey}
	}
	keys, err := token.ParseKeys(text)
	if err == nil {
		var ring *token.Keyring
		if ring, err = token.NewKeyring(keys...); err == nil {
			return ring, nil
		}
	}
	return nil, &mistake{fmt.Errorf("%s: %s", from, hideKeys(err.Error(), text))}
}

// hideKeys removes every part of a key from a message. A key that was written without its kid may be taken for the kid, and quoted.
func hideKeys(message, keys string) string {
	const shortest = 12 // shorter text is no key, but may be a kid
	for _, piece := range strings.FieldsFunc(keys, func(r rune) bool { return strings.ContainsRune(",= \t\r\n", r) }) {
		if len(piece) >= shortest {
			message = strings.ReplaceAll(message, piece, "xxxxx")
		}
	}
	return message
}
