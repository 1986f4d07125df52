package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/transforms/docs/policy"
)

// providerRow is a provider in the API.
type providerRow struct {
	ID        string          `json:"id"`
	Source    policy.Origin   `json:"source"`
	Disabled  bool            `json:"disabled"`
	Off       string          `json:"off,omitempty"` // why it is not crawled whatever its policy says
	Version   int             `json:"version"`
	ChangedAt *time.Time      `json:"changed_at"`
	ChangedBy string          `json:"changed_by,omitempty"`
	Policy    json.RawMessage `json:"policy"`
}

// providerVersion is a version of what was kept of a provider.
type providerVersion struct {
	Version  int       `json:"version"`
	At       time.Time `json:"at"`
	Who      string    `json:"who"`
	Action   string    `json:"action"`
	Text     string    `json:"text,omitempty"`
	Disabled bool      `json:"disabled"`
	Why      string    `json:"why,omitempty"`
}

type providerList struct {
	Providers []providerRow `json:"providers"`
}

// oneProvider is a provider with its versions.
type oneProvider struct {
	providerRow
	Versions []providerVersion `json:"versions"`
}

func (v providerView) row() (providerRow, error) {
	text, err := v.JSON()
	r := providerRow{ID: v.ProviderID, Source: v.Origin, Disabled: v.Change.Disabled, Off: v.Off, Version: v.Version.Number, ChangedBy: v.Version.Who, Policy: text}
	if v.Version.Number > 0 {
		at := v.Version.At
		r.ChangedAt = &at
	}
	return r, err
}

func (s *Server) listProviders(w http.ResponseWriter, r *http.Request) {
	views, _, err := s.providers.all(r.Context())
	list := providerList{[]providerRow{}}
	for _, v := range views {
		var row providerRow
		if row, err = v.row(); err != nil {
			break
		}
		list.Providers = append(list.Providers, row)
	}
	s.reply(w, r, list, err)
}

func (s *Server) showProvider(w http.ResponseWriter, r *http.Request) {
	s.answerProvider(w, r, nil)
}

// answerProvider answers with the provider as it is now, or with what went wrong.
func (s *Server) answerProvider(w http.ResponseWriter, r *http.Request, err error) {
	id := r.PathValue("id")
	var v providerView
	if err == nil {
		v, err = s.providers.named(r.Context(), id)
	}
	var one oneProvider
	if err == nil {
		one.providerRow, err = v.row()
	}
	if err == nil {
		one.Versions, err = s.providerVersions(r, id)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("ETag", strconv.Quote(strconv.Itoa(v.Version.Number)))
	s.answer(w, r, http.StatusOK, one)
}

func (s *Server) providerVersions(r *http.Request, id string) ([]providerVersion, error) {
	history, err := s.providers.shelf.History(r.Context(), id, historyShown)
	out := []providerVersion{}
	for _, v := range history {
		var c policy.Change
		if err := json.Unmarshal(v.Body, &c); err != nil {
			return nil, fmt.Errorf("reading version %d of provider %s: %w", v.Number, id, err)
		}
		out = append(out, providerVersion{v.Number, v.At, v.Who, v.Action, c.Text, c.Disabled, c.Why})
	}
	return out, err
}

// versionRead is the version that the sender has read, by If-Match or If-None-Match.
func versionRead(r *http.Request) int {
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	if match == "" && none == "*" {
		return 0
	}
	if match == "" || match == "*" { // any version, as RFC 9110 has it
		return unread
	}
	n, err := strconv.Atoi(strings.Trim(match, `"`))
	if err != nil || n < 0 {
		return noVersion
	}
	return n
}

// textLine is where a fault is in a text that the sender has not written. A fault of the
// text's form, such as a value of another type, has "line".
var textLine = regexp.MustCompile(`(^|; )policy:( line )?(\d+): `)

// byField names the fields of faults in place of their lines in text.
func byField(message, text string) string {
	lines := strings.Split(text, "\n")
	return textLine.ReplaceAllStringFunc(message, func(at string) string {
		m := textLine.FindStringSubmatch(at)
		if m[2] == "" { // the fault says its field
			return m[1]
		}
		n, _ := strconv.Atoi(m[3]) // digits
		for i := min(n, len(lines)) - 1; i >= 0; i-- {
			if field, _, ok := strings.Cut(lines[i], ":"); ok && !strings.HasPrefix(field, " ") && !strings.HasPrefix(field, "-") {
				return m[1] + field + ": "
			}
		}
		return m[1]
	})
}

// defineProvider takes a policy as JSON, with the fields of a file.
func (s *Server) defineProvider(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	body, err := jsonBody(r)
	var text string
	if err == nil {
		text, err = policyText(body)
	}
	if err == nil {
		err = s.providers.define(r.Context(), id, text, versionRead(r))
	}
	var bad *badRequest
	if errors.As(err, &bad) {
		bad.message = byField(bad.message, text)
	}
	s.answerProvider(w, r, err)
}

// policyText writes a policy in JSON as the text of a file.
func policyText(body []byte) (string, error) {
	text, err := policy.YAML(body)
	if err != nil {
		return "", refuse(`the body is not a policy; write the policy as JSON, such as {"provider_id": "acme", "seed_urls": ["https://docs.acme.example/"], "allowed_path_patterns": ["/**"]}`)
	}
	return text, nil
}

// changeProvider is a request that changes a provider and has at most a reason.
func (s *Server) changeProvider(change func(r *http.Request, id, why string, read int) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var given struct {
			Why string `json:"why"`
		}
		var err error
		if r.ContentLength != 0 && r.Method == http.MethodPost {
			err = decodeBody(r, &given, `{"why": "they asked us to stop"}`)
		}
		if err == nil && utf8.RuneCountInString(given.Why) > maxWhy {
			err = refuse("why: write at most %d characters", maxWhy)
		}
		if err == nil {
			err = change(r, r.PathValue("id"), given.Why, versionRead(r))
		}
		if err == nil && r.Method == http.MethodDelete {
			if _, gone := s.providers.named(r.Context(), r.PathValue("id")); errors.Is(gone, errNoProvider) {
				s.answer(w, r, http.StatusOK, status{"removed"})
				return
			}
		}
		s.answerProvider(w, r, err)
	}
}

// unblockProvider lets runs request pages of a provider again that answered 403: one, or all.
func (s *Server) unblockProvider(w http.ResponseWriter, r *http.Request) {
	var given struct {
		URL string `json:"url"`
	}
	var err error
	id := r.PathValue("id")
	if r.ContentLength != 0 {
		err = decodeBody(r, &given, `{"url": "https://docs.acme.example/guide"}`)
	}
	if err == nil && given.URL != "" && !strings.HasPrefix(given.URL, "http") {
		err = refuse("url: write the URL of a page, or leave it out for all pages of the provider")
	}
	if err == nil {
		_, err = s.providers.named(r.Context(), id)
	}
	if err == nil {
		err = s.audited(r.Context(), "provider_unblock", id, given.URL)
	}
	if err == nil {
		err = runCommand(r.Context(), s.runner.command("docs", "unblock", id, given.URL))
	}
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() == 2 {
		err = conflict("no such page is blocked by a 403")
	}
	s.answerProvider(w, r, err)
}

func (s *Server) providerRoutes() []route {
	const one = "/api/v1/docs/providers/{id}"
	return []route{
		{"GET /api/v1/docs/providers", s.listProviders},
		{"GET " + one, s.showProvider},
		{"PUT " + one, s.defineProvider},
		{"DELETE " + one, s.changeProvider(func(r *http.Request, id, _ string, read int) error { return s.providers.remove(r.Context(), id, read) })},
		{"POST " + one + "/disable", s.changeProvider(func(r *http.Request, id, why string, read int) error {
			return s.providers.disable(r.Context(), id, why, true, read)
		})},
		{"POST " + one + "/enable", s.changeProvider(func(r *http.Request, id, _ string, read int) error {
			return s.providers.disable(r.Context(), id, "", false, read)
		})},
		{"POST " + one + "/unblock", s.unblockProvider},
	}
}
