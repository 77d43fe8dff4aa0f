package api

import _ "embed" // openapi.json

// OpenAPI is the OpenAPI 3.1 document of the API. It is generated from the route table and package v1; a test
// checks that it is up to date (make generate writes it).
//
//go:embed openapi.json
var OpenAPI []byte
