// Package token makes and judges bearer tokens: signing keys, what a token says (Claims), minting, verification, and a
// cache of what was verified. It knows neither HTTP nor the domain: which token opens which route is package api's to
// say, and so is what a task's claims mean.
package token
