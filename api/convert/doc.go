// Package convert translates between the domain's types and those on the wire where more than one resource of the API needs it.
package convert
