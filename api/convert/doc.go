// Package convert translates between the domain's types and wire types that more than one resource of the API needs.
package convert
