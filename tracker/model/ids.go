package model

import (
	"crypto/rand"

	"github.com/oklog/ulid/v2"
)

// InvalidID is the code of an ID that does not match the pattern.
const InvalidID Code = "invalid_id"

// ValidID reports whether s matches [A-Za-z0-9][A-Za-z0-9._-]{0,127}.
func ValidID[T ~string | ~[]byte](s T) bool {
	if len(s) == 0 || len(s) > MaxIDBytes || !idByte[s[0]] || s[0] == '.' || s[0] == '_' || s[0] == '-' {
		return false
	}
	for i := 1; i < len(s); i++ {
		if !idByte[s[i]] {
			return false
		}
	}
	return true
}

var idByte = func() (t [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-" {
		t[c] = true
	}
	return
}()

// CheckID returns an error for an ID that is empty or does not match the pattern.
func CheckID(field, id string) error {
	if ValidID(id) {
		return nil
	}
	return &Error{
		Code: InvalidID, Op: "validate", Cause: &FieldError{field},
		Message: field + " is not a valid id; use 1 to 128 letters, digits, dots, underscores and hyphens, beginning with a letter or digit",
	}
}

// NewID returns a sortable ID: the prefix and a ULID.
func NewID(prefix string) string { return prefix + ulid.Make().String() }

// NewFence returns four random characters that distinguish two attempts with the same number.
func NewFence() string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	for i := range b {
		b[i] = alphabet[b[i]&63]
	}
	return string(b[:])
}
