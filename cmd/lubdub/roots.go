package main

// Webhooks speak TLS to the outside, and the image that Lubdub is published in holds nothing but the program: where a system
// has no certificates of its own, these are used.
import _ "golang.org/x/crypto/x509roots/fallback"
