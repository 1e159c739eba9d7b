// Package schema checks the JSON output of programs against the JSON Schemas in docs/, for
// tests.
package schema

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is a schema of the project.
type Schema struct {
	t        testing.TB
	compiled *jsonschema.Schema
}

// Open reads a file of docs/, which must be a valid schema.
func Open(t testing.TB, name string) *Schema {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	data, err := os.ReadFile(filepath.Join(filepath.Dir(here), "../../../docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return Of(t, data)
}

// Of parses and compiles a schema.
func Of(t testing.TB, document []byte) *Schema {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat() // checks "format", for example of dates
	if err := c.AddResource("urn:x:schema", value); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("urn:x:schema")
	if err != nil {
		t.Fatal(err)
	}
	return &Schema{t, compiled}
}

// Properties returns the names that records may have.
func (s *Schema) Properties() []string {
	var names []string
	for name := range s.compiled.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Required returns the names that every record has.
func (s *Schema) Required() []string {
	return slices.Sorted(slices.Values(s.compiled.Required))
}

// Check returns the error of a record that does not match the schema, else nil.
func (s *Schema) Check(record []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(record))
	if err != nil {
		return err
	}
	return s.compiled.Validate(value)
}
