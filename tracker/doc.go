// Package tracker is the door to the domain: Open sets up its rooms, a Tracker has the methods of all of them, and the types
// that callers need are re-exported here.
package tracker
