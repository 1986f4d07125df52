package engine

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPublishedAt(t *testing.T) {
	day, at := time.Date(2024, 5, 3, 0, 0, 0, 0, time.UTC), time.Date(2024, 5, 3, 14, 24, 0, 0, time.UTC)
	for _, c := range []struct {
		read         time.Time
		listed, path string
		want         time.Time
	}{
		{at, "2024-05-04", "/2024/05/03/x", at},
		{day, "2024-05-03T14:24:00Z", "/2024/05/03/x", at},
		{time.Time{}, "2024-05-03T14:24:00Z", "/x", at},
		{time.Time{}, "", "/2024/05/03/x", day},
		{day, "", "/x", day},
		{time.Time{}, "", "/x", time.Time{}},
	} {
		assert.True(t, c.want.Equal(publishedAt(c.read, c.listed, &url.URL{Path: c.path}, time.UTC)), "%+v", c)
	}
}
