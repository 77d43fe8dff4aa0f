package client

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// scan parses JSON in place.
type scan struct {
	b []byte
	i int
}

func (s *scan) wrong() error {
	return fmt.Errorf("lubdub: %w: not JSON as expected at byte %d", ErrAnswer, s.i)
}

func (s *scan) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\t' || s.b[s.i] == '\r') {
		s.i++
	}
}

// is reports whether c comes next, after spaces, and skips it.
func (s *scan) is(c byte) bool {
	if s.space(); s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// object parses an object; each is called at every value and parses it.
func (s *scan) object(each func(key []byte) error) error {
	if !s.is('{') {
		return s.wrong()
	}
	for first := true; ; first = false {
		key, more, err := s.key(first)
		if err != nil || !more {
			return err
		}
		if err := each(key); err != nil {
			return err
		}
	}
}

// key parses the next key of an object, up to its value; more is false after the last one.
func (s *scan) key(first bool) (key []byte, more bool, err error) {
	if s.is('}') {
		return nil, false, nil
	}
	if !first && !s.is(',') {
		return nil, false, s.wrong()
	}
	if key, err = s.text(); err == nil && !s.is(':') {
		err = s.wrong()
	}
	return key, err == nil, err
}

// array parses an array; each is called at every element and parses it.
func (s *scan) array(each func() error) error {
	if !s.is('[') {
		return s.wrong()
	}
	for first := true; !s.is(']'); first = false {
		if !first && !s.is(',') {
			return s.wrong()
		}
		if err := each(); err != nil {
			return err
		}
	}
	return nil
}

// text parses a string and returns its content, in place if nothing in it is escaped.
func (s *scan) text() ([]byte, error) {
	if !s.is('"') {
		return nil, s.wrong()
	}
	from := s.i
	for escaped := false; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c < ' ':
			return nil, s.wrong()
		case c == '\\':
			escaped = true
			s.i++
		case c == '"':
			s.i++
			if !escaped {
				return s.b[from : s.i-1], nil
			}
			var text string
			if json.Unmarshal(s.b[from-1:s.i], &text) != nil {
				return nil, s.wrong()
			}
			return []byte(text), nil
		}
	}
	return nil, s.wrong()
}

func (s *scan) integer() (int64, error) {
	word := s.word()
	var n int64
	for _, c := range word {
		if c < '0' || c > '9' || len(word) > 15 { // within the integers that JavaScript represents exactly
			return 0, s.wrong()
		}
		n = 10*n + int64(c-'0')
	}
	if len(word) == 0 || (word[0] == '0' && len(word) > 1) {
		return 0, s.wrong()
	}
	return n, nil
}

func (s *scan) boolean() (bool, error) {
	word := s.word()
	switch string(word) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, s.wrong()
}

// word parses a number, true, false or null.
func (s *scan) word() []byte {
	s.space()
	from := s.i
	if n := bytes.IndexAny(s.b[s.i:], ",]} \n\r\t"); n >= 0 {
		s.i += n
	} else {
		s.i = len(s.b)
	}
	return s.b[from:s.i]
}

// maxDepth is deeper than any answer.
const maxDepth = 100

// skip skips any value.
func (s *scan) skip() error { return s.skipIn(0) }

func (s *scan) skipIn(depth int) error {
	if s.space(); s.i >= len(s.b) || depth > maxDepth {
		return s.wrong()
	}
	switch s.b[s.i] {
	case '"':
		_, err := s.text()
		return err
	case '{':
		return s.object(func([]byte) error { return s.skipIn(depth + 1) })
	case '[':
		return s.array(func() error { return s.skipIn(depth + 1) })
	}
	if word := s.word(); len(word) == 0 || !json.Valid(word) {
		return s.wrong()
	}
	return nil
}
