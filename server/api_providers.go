package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/runs"
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

// providerActions are what can be asked about the providers of documentation.
func (s *Server) providerActions() []action {
	const all, one, form = "/api/v1/docs/providers", "/api/v1/docs/providers/{id}", "/providers/{id}"
	const now, none, fails = "200 OneProvider The provider as it is now.", "404 NoProvider", "404 NoProvider, 409 Conflict, 412 Changed"
	why := option.Option{Name: "why", Kind: option.Text}
	reason := []option.Option{*why.Range(0, maxWhy)}
	page := option.Option{Name: "url", Kind: option.Text, Usage: "A page; without it, all pages of the provider."}
	return grouped("providers", "providers",
		action{At: "GET " + all, ID: "listProviders", About: "The providers of documentation, with their policies",
			Out: "200 Providers The providers, by id.", Do: s.listProviders},
		action{At: "GET " + one, ID: "showProvider", About: "A provider with the versions of what was kept of it",
			Out: "200 OneProvider The provider.", Fails: none, Do: s.showProvider},
		action{At: "PUT " + one, ID: "defineProvider", About: "Add a provider, or change its policy", Out: now,
			Fails: "409 Conflict, 412 Changed, 428 Unread", Match: true,
			Body: "Policy", Needs: []string{"provider_id", "seed_urls", "allowed_path_patterns"}, Raw: true, Do: s.defineProvider,
			Answer:  s.showProvider,
			Example: `{"provider_id": "acme", "seed_urls": ["https://docs.acme.example/"], "allowed_path_patterns": ["/guide/**"]}`},
		action{At: "DELETE " + one, ID: "removeProvider", About: "Remove a provider that was added, or go back to the policy of its file",
			Out: "200 OneProvider|Status The provider of the file, or that it is removed.", Fails: fails, Match: true, Answer: s.removedProvider,
			Form: form + "/remove", Next: form, Confirm: s.confirmRemoveProvider,
			Do: s.changesProvider(func(c *call, id string, read int) error { return s.providers.remove(c.Context(), id, read) })},
		action{At: "POST " + one + "/disable", ID: "disableProvider", About: "Do not crawl a provider any more", Out: now, Fails: fails,
			Match: true,
			Body:  "DisableRequest", In: reason, Example: `{"why": "they asked us to stop"}`, Answer: s.showProvider, Form: form + "/disable",
			Next: form,
			Do: s.changesProvider(func(c *call, id string, read int) error {
				return s.providers.disable(c.Context(), id, c.in.Get("why"), true, read)
			})},
		action{At: "POST " + one + "/enable", ID: "enableProvider", About: "Crawl a disabled provider again", Out: now, Fails: fails, Match: true,
			Body: "DisableRequest", In: reason, Example: `{"why": "they asked us to stop"}`, Answer: s.showProvider, Form: form + "/enable",
			Next: form,
			Do:   s.changesProvider(func(c *call, id string, read int) error { return s.providers.disable(c.Context(), id, "", false, read) })},
		action{At: "POST " + one + "/unblock", ID: "unblockProvider", About: "Request pages again that answered 403", Out: now,
			Fails: none + ", 409 Conflict",
			Body:  "UnblockRequest", In: []option.Option{page}, Example: `{"url": "https://docs.acme.example/guide"}`, Do: s.unblockProvider,
			Answer: s.showProvider},
	)
}

func (s *Server) listProviders(c *call) (any, error) {
	views, _, err := s.providers.all(c.Context())
	list := providerList{[]providerRow{}}
	for _, v := range views {
		row, err := v.row()
		if err != nil {
			return nil, err
		}
		list.Providers = append(list.Providers, row)
	}
	return list, err
}

// showProvider answers with the provider as it is now.
func (s *Server) showProvider(c *call) (any, error) {
	v, err := s.providers.named(c.Context(), c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	var one oneProvider
	if one.providerRow, err = v.row(); err == nil {
		one.Versions, err = s.providerVersions(c.Context(), v.ProviderID)
	}
	c.head.Set("ETag", strconv.Quote(strconv.Itoa(v.Version.Number)))
	return one, err
}

// removedProvider answers with the provider of the file, or that there is none any more.
func (s *Server) removedProvider(c *call) (any, error) {
	v, err := s.showProvider(c)
	if errors.Is(err, errNoProvider) {
		return status{"removed"}, nil
	}
	return v, err
}

func (s *Server) providerVersions(ctx context.Context, id string) ([]providerVersion, error) {
	history, err := s.providers.shelf.History(ctx, id, historyShown)
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

// versionRead is the version that the sender has read, by If-Match or If-None-Match. The form for a new provider shows none: it may be one
// that was removed, whose versions continue.
func (c *call) versionRead() int {
	match := c.Header.Get("If-Match")
	switch {
	case c.form:
		match = c.in.Get("version")
	case match == "" && c.Header.Get("If-None-Match") == "*":
		return 0
	case match == "*": // any version, as RFC 9110 has it
		return unread
	}
	if match == "" {
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
func (s *Server) defineProvider(c *call) (any, error) {
	text, err := policyText(c.body)
	if err == nil {
		err = s.providers.define(c.Context(), c.PathValue("id"), text, c.versionRead())
	}
	var bad *known.BadRequest
	if errors.As(err, &bad) {
		bad.Message = byField(bad.Message, text)
	}
	return nil, err
}

// policyText writes a policy in JSON as the text of a file.
func policyText(body []byte) (string, error) {
	text, err := policy.YAML(body)
	if err != nil {
		return "", known.Refuse(`the body is not a policy; write the policy as JSON, such as {"provider_id": "acme", "seed_urls": ["https://docs.acme.example/"], "allowed_path_patterns": ["/**"]}`)
	}
	return text, nil
}

// changesProvider is a request that changes a provider and has at most a reason.
func (s *Server) changesProvider(change func(c *call, id string, read int) error) func(*call) (any, error) {
	return func(c *call) (any, error) {
		if utf8.RuneCountInString(c.in.Get("why")) > maxWhy {
			return nil, known.Refuse("why: write at most %d characters", maxWhy)
		}
		id := c.PathValue("id")
		err := change(c, id, c.versionRead())
		if c.form && err == nil {
			if _, gone := s.providers.named(c.Context(), id); gone != nil {
				c.next = "/providers"
			}
		}
		return nil, err
	}
}

// unblockProvider lets runs request pages of a provider again that answered 403: one, or all.
func (s *Server) unblockProvider(c *call) (any, error) {
	id, page := c.PathValue("id"), c.in.Get("url")
	var err error
	if page != "" && !strings.HasPrefix(page, "http") {
		err = known.Refuse("url: write the URL of a page, or leave it out for all pages of the provider")
	}
	if err == nil {
		_, err = s.providers.named(c.Context(), id)
	}
	if err == nil {
		err = s.audited(c.Context(), "provider_unblock", id, page)
	}
	if err == nil {
		err = runs.RunCommand(c.Context(), s.runner.Command("docs", "unblock", id, page))
	}
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() == 2 {
		err = known.Conflict("no such page is blocked by a 403")
	}
	return nil, err
}
