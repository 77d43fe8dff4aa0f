// Package events answers the route of events, with a page or a stream.
package events
