package bucket_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/bucket/buckettest"
)

// A bucket that cannot be listed is refused in one sentence, by its cause.
func TestAdvice(t *testing.T) {
	s := buckettest.StartVersity(t)
	gcs := buckettest.StartGCS(t)
	answers := func(status int, code string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte("<Error><Code>" + code + "</Code><Message>m</Message></Error>")) // it fails only when the client has gone
		}))
		t.Cleanup(server.Close)
		return "s3://bucket?endpoint=" + server.URL
	}
	dead := httptest.NewServer(nil)
	dead.Close()
	at := "?endpoint=" + s.Endpoint
	for name, c := range map[string]struct{ url, key, secret, want string }{
		"access key": {"s3://bucket" + at, "other", "", "s3://bucket: the server does not know the access key: look at AWS_ACCESS_KEY_ID or AWS_PROFILE, and at the endpoint"},
		"secret key": {"s3://bucket" + at, "", "other", "s3://bucket: the secret key is not that of the access key: set AWS_SECRET_ACCESS_KEY again"},
		"bucket":     {"s3://none" + at, "", "", "s3://none: there is no such bucket: create it, or correct its name or the endpoint"},
		"region":     {"s3://none" + at + "&region=eu-west-3", "", "", "s3://none: the region eu-west-3 is wrong: set AWS_REGION=us-east-1 or add ?region=us-east-1"},
		"clock":      {answers(403, "RequestTimeTooSkewed"), "", "", "s3://bucket: this machine's clock is wrong: set it (NTP)"},
		"rights":     {answers(403, "AccessDenied"), "", "", "s3://bucket: these keys may not list the bucket: allow them to list, read, write and delete its objects"},
		"dead":       {"s3://bucket?endpoint=" + dead.URL, "", "", "s3://bucket: nothing listens at the endpoint: start the server, or correct host and port"},
		"http":       {"s3://bucket?endpoint=https" + s.Endpoint[len("http"):], "", "", "s3://bucket: the endpoint speaks HTTP: write endpoint=http://"},
		"gcs":        {"gs://no-" + gcs, "", "", "gs://no-bucket: there is no such bucket: create it, or correct its name or the endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range map[string]string{"AWS_ACCESS_KEY_ID": c.key, "AWS_SECRET_ACCESS_KEY": c.secret} {
				if value != "" {
					t.Setenv(variable, value)
				}
			}
			_, err := store.Open(t.Context(), c.url)
			assert.EqualError(t, err, "opening "+c.want)
			assert.Equal(t, name == "dead" || name == "http", store.Retryable(err))
		})
	}
}
