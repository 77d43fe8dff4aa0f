// Package ui is the dashboard: what is built from the TypeScript next to this file (make generate) and served at /ui/.
package ui

import "embed"

// Files are those of the dashboard, under dist/. Its door is index.html, which names the others.
//
//go:embed dist
var Files embed.FS
