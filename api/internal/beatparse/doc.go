// Package beatparse recognises heartbeats among the bytes of a connection.
//
// It reads only the shapes that clients send day by day, and is not a parser of HTTP: whatever is unusual, wrong or not a heartbeat
// is a Doubt, for which the server's full parser is asked, with the same bytes. So what it does recognise must mean here what it
// means there, and everything else may be left to the other. It allocates nothing, and what it finds borrows the bytes.
package beatparse
