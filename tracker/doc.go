// Package tracker is the door to the domain: Open furnishes its rooms, a Tracker has the methods of all of them, and what they
// define bears here the names by which callers know it.
package tracker
