// Package dnstest is a name server for tests.
package dnstest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
)

// Resolver returns a resolver that needs no network. known contains addresses by name, each name with a final dot. A name that begins
// with "silent" gets no answer, and one that begins with "broken" an error of the server; other names exist only if they are
// known.
func Resolver(known map[string]string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer func() { _ = there.Close() }()
			for {
				query := make([]byte, 2)
				if _, err := io.ReadFull(there, query); err != nil {
					return
				}
				query = make([]byte, binary.BigEndian.Uint16(query))
				if _, err := io.ReadFull(there, query); err != nil {
					return
				}
				if answer := answerTo(query, known); answer != nil {
					_, _ = there.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
				}
			}
		}()
		return here, nil
	}}
}

// answerTo returns the message that answers a query; nil: no answer.
func answerTo(query []byte, known map[string]string) []byte {
	end, name := 12, ""
	for ; query[end] != 0; end += 1 + int(query[end]) {
		name += string(query[end+1:end+1+int(query[end])]) + "."
	}
	question, kind := query[12:end+5], binary.BigEndian.Uint16(query[end+1:])
	code, answers, data := byte(3), byte(0), []byte(nil) // NXDOMAIN
	addr, err := netip.ParseAddr(known[name])
	switch {
	case strings.HasPrefix(name, "silent"):
		return nil
	case strings.HasPrefix(name, "broken"):
		code = 2
	case err == nil:
		code = 0
		if bytes := addr.AsSlice(); kind == 1 == addr.Is4() {
			answers, data = 1, append([]byte{0xc0, 12, 0, byte(kind), 0, 1, 0, 0, 0, 60, 0, byte(len(bytes))}, bytes...)
		}
	}
	head := []byte{query[0], query[1], 0x81, 0x80 | code, 0, 1, 0, answers, 0, 0, 0, 0}
	return append(append(head, question...), data...)
}
