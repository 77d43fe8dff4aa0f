// Package conn is about a server's connections: how many may be open and who gives way, how long they may take, and how
// much memory the bodies that they announce may fill. It knows nothing of HTTP, routes or tokens, nor what is answered on a
// connection that is refused or cut; package api tells it who has shown a token.
//
// Each connection belongs to one Watch, whose one goroutine lets deadlines pass while there is a connection.
package conn
