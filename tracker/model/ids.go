package model

import (
	"crypto/rand"
	"time"

	"github.com/oklog/ulid/v2"
)

// NewID makes a sortable id: the prefix and a ULID.
func NewID(prefix string) string { return prefix + ulid.Make().String() }

// NewFence draws the four characters that tell two attempts with one number apart.
func NewFence() string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	for i := range b {
		b[i] = alphabet[b[i]&63]
	}
	return string(b[:])
}

func Millis(d time.Duration) int64 { return d.Milliseconds() }
