package queue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/parse/cases"
)

// The forms of notifications are those of the services' documentation.
func TestParse(t *testing.T) {
	for name, c := range cases.Table[map[string]struct {
		Body       string
		Attributes map[string]string
		Want       []Wanted
		Bad        bool
	}](t, "messages.yaml") {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(Message{Body: []byte(c.Body), Attributes: c.Attributes})
			require.Equal(t, c.Bad, err != nil, "%v", err)
			require.Equal(t, c.Want, got)
		})
	}
}
