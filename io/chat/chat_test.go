package chat

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnswer(t *testing.T) {
	var key, body string
	answer, status := "", 200
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		key, body = r.Header.Get("Authorization"), string(b)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer s.Close()
	c, err := New(s.URL+"/v1/", "m", "k")
	require.NoError(t, err)
	defer c.Close()
	f := func(says, want, wrong string) {
		t.Helper()
		answer = says
		got, err := c.Answer(t.Context(), "do", "text")
		if wrong != "" {
			assert.ErrorContains(t, err, wrong)
			return
		}
		require.NoError(t, err)
		assert.Equal(t, want, string(got))
	}
	f(`{"choices": [{"message": {"role": "assistant", "content": "{\"a\": 1}"}}]}`, `{"a": 1}`, "")
	f("{\"choices\": [{\"message\": {\"content\": \"```json\\n[1]\\n```\"}}]}", `[1]`, "")
	assert.Equal(t, "Bearer k", key)
	assert.JSONEq(t, `{"model": "m", "messages": [{"role": "system", "content": "do"}, {"role": "user", "content": "text"}], "max_tokens": 500, "temperature": 0, "response_format": {"type": "json_object"}}`, body)
	f(`{"choices": [{"message": {"content": "sorry"}}]}`, "", `the model's answer is no JSON: "sorry"`)
	f(`{"choices": []}`, "", "not a chat completion")
	f(`<html>`, "", "not a chat completion")
	status = 429
	f("slow\x00 down", "", "status 429: slow")
	status = 302
	f("", "", "status 302")
	for base, wrong := range map[string]string{"ftp://x": "write the endpoint", "http://x.example/v1": "without encryption", "https://u:p@x.example": "write the endpoint"} {
		_, err := New(base, "m", "k")
		assert.ErrorContains(t, err, wrong, base)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"choices": [{"message": {"content": "{\"a\": 1}"}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := parse(b)
		assert.True(t, err != nil || json.Valid(got), "%q is no JSON", got)
	})
}
