package metadata

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The schema and the constants name the same words.
func TestErrorWords(t *testing.T) {
	var schema struct {
		Defs struct {
			Error struct{ Pattern string }
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(Schema(), &schema))
	assert.Equal(t, errorPattern(), schema.Defs.Error.Pattern, "the schema")
}
