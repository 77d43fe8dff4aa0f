// Package schema is the stored format: the names of keys, the entries of sets, the packing of records, and the codes with
// which scripts reply. It is pure: it knows how things are written and read, and never where.
package schema
