package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

const HeaderIdempotencyKey = "Idempotency-Key"

// IdempotencyKey returns the header, or "" if absent.
func (req *Request) IdempotencyKey() (string, error) {
	keys := req.Ctx.Request.Header.PeekAll(HeaderIdempotencyKey)
	switch len(keys) {
	case 0:
		return "", nil
	case 1:
		key := string(keys[0])
		return key, CheckIdempotencyKey(HeaderIdempotencyKey, key)
	}
	return "", InvalidField(HeaderIdempotencyKey, "There are two Idempotency-Key headers; send one")
}

// CheckIdempotencyKey refuses an invalid key of a header or a field.
func CheckIdempotencyKey(field, key string) error {
	ok := len(key) >= 1 && len(key) <= 255
	for i := 0; ok && i < len(key); i++ {
		ok = key[i] >= ' ' && key[i] <= '~'
	}
	if !ok {
		return InvalidField(field, field+" must be 1 to 255 printable ASCII characters")
	}
	return nil
}

// HashOf returns the hash by which the store compares a value.
func HashOf(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
