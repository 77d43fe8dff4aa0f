// Package beatparse recognises heartbeats in the bytes of a connection.
//
// It recognises only the forms that clients usually send, and is not an HTTP parser: anything unusual, invalid or other than a heartbeat
// is a Doubt, for which the server's full parser gets the same bytes. So a recognised request must mean the same here as there, and
// everything else may be left to the full parser. It allocates nothing, and its results point into the bytes.
package beatparse
