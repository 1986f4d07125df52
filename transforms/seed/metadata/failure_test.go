package metadata

import (
	"encoding/json"
	"testing"
)

// The schema and the constants name the same words.
func TestErrorWords(t *testing.T) {
	var schema struct {
		Defs struct {
			Error struct{ Pattern string }
		} `json:"$defs"`
	}
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	if schema.Defs.Error.Pattern != errorPattern() {
		t.Errorf("the schema has %s, the constants make %s", schema.Defs.Error.Pattern, errorPattern())
	}
}
