// Package reference keeps the pages of docs/reference equal to the code: its tests read
// the code, write the tables of the pages and the JSON Schemas (`make golden`), and fail
// where a page lacks something that the code has. No promise: see docs/library.md.
package reference
