package yamltext_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/yamltext"
)

// Documents that PyYAML 6.0.3 reads have the same values here: block texts without lines,
// odd margins, comments, flow collections over lines, anchors, escapes.
func TestAsPyYAML(t *testing.T) {
	text, err := os.ReadFile("testdata/pyyaml.json")
	require.NoError(t, err)
	var rows []struct {
		Name, YAML string
		Value      any
	}
	require.NoError(t, json.Unmarshal(text, &rows))
	require.NotEmpty(t, rows)
	for _, r := range rows {
		v, err := yamltext.Document([]byte(r.YAML))
		require.NoError(t, err, r.Name)
		require.Equal(t, r.Value, plain(t, v), r.Name)
	}
}

// plain returns a value as encoding/json would.
func plain(t *testing.T, v any) any {
	t.Helper()
	switch v := v.(type) {
	case yamltext.Mapping:
		m := map[string]any{}
		for _, member := range v {
			m[member.Key] = plain(t, member.Value)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(t, v[i])
		}
		return list
	case yamltext.Number:
		var f float64
		require.NoError(t, json.Unmarshal([]byte(v), &f))
		return f
	}
	return v
}
