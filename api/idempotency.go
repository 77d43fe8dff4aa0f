package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

const headerIdempotencyKey = "Idempotency-Key"

// idempotencyKey returns the header, empty when absent.
func (req *request) idempotencyKey() (string, error) {
	keys := req.ctx.Request.Header.PeekAll(headerIdempotencyKey)
	switch len(keys) {
	case 0:
		return "", nil
	case 1:
		key := string(keys[0])
		return key, checkIdempotencyKey(headerIdempotencyKey, key)
	}
	return "", invalidField(headerIdempotencyKey, "There are two Idempotency-Key headers; send one")
}

// checkIdempotencyKey refuses a key, of a header or a field, that cannot be one.
func checkIdempotencyKey(field, key string) error {
	ok := len(key) >= 1 && len(key) <= 255
	for i := 0; ok && i < len(key); i++ {
		ok = key[i] >= ' ' && key[i] <= '~'
	}
	if !ok {
		return invalidField(field, field+" must be 1 to 255 printable ASCII characters")
	}
	return nil
}

// hashOf returns the hash that stands for a value in the store.
func hashOf(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
