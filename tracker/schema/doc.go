// Package schema is the stored format: the names of keys, the entries of sets, the packing of records, and the reply codes of scripts. It
// is pure: it knows how data is written and read, and never where.
package schema
