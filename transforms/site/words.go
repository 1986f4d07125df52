package site

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/transforms/parse/answer"
)

// maxEvidence is how many answers a verdict quotes.
const maxEvidence = 5

// words are the cause of a state, and the advice.
func (j *Judge) words(s State) (cause, advice string) {
	name := cmp.Or(j.about.Name, "the site")
	switch s {
	case Blocked:
		return name + " " + j.refusal(), "the next run asks again; if it lasts, ask the site's owner to allow this crawler's User-Agent"
	case Moved:
		return j.movedWords(name)
	case Closed:
		return j.closedWords(name)
	case Thin:
		known := j.counts[Known]
		cause = fmt.Sprintf("%s shows much less than it did: %d of %d known URLs are gone", name, known[gone], known.all())
		if known[gone] == 0 {
			cause = fmt.Sprintf("%s lists much less than it did: %d, %d before", name, j.shown[0], j.shown[1])
		}
		return cause, fmt.Sprintf("look at the site; if this is right, nothing is to be done: after %d runs in a row it is believed", thinRuns)
	}
	return name + " does not answer as it should (" + j.why(failed) + ")", "the next run asks again; look at this machine's network if other sites fail too"
}

// refusal says how the site refuses.
func (j *Judge) refusal() string {
	for _, a := range j.sorted(refused) {
		by := ""
		if a.Verdict.Vendor != "" {
			by = " (" + a.Verdict.Vendor + ")"
		}
		switch a.Verdict.Kind {
		case answer.Challenge:
			return "answers with a challenge for bots" + by
		case answer.Consent:
			return "shows a consent page in place of its pages" + by
		case answer.Login:
			return "shows a login in place of its pages" + by
		}
	}
	return "refuses (" + j.why(refused) + ")"
}

// movedWords names where most of the redirects lead.
func (j *Judge) movedWords(name string) (cause, advice string) {
	hosts := map[string]int{}
	var example judged
	for _, a := range j.sorted(elsewhere) {
		if u, err := url.Parse(a.To); err == nil {
			hosts[u.Hostname()]++
		}
	}
	to := slices.MaxFunc(append(slices.Sorted(maps.Keys(hosts)), ""), func(a, b string) int { return hosts[a] - hosts[b] })
	for _, a := range j.sorted(elsewhere) {
		if u, err := url.Parse(a.To); err == nil && u.Hostname() == to {
			example = a
			break
		}
	}
	from, err := url.Parse(example.URL)
	if err != nil || to == "" {
		return name + " moved", "change " + j.about.SeedKey
	}
	if trim(from.Hostname()) != trim(to) {
		return fmt.Sprintf("%s moved to %s", name, to), "change " + j.about.SeedKey
	}
	keys := j.about.SeedKey
	if j.about.ScopeKey != "" {
		keys += " and " + j.about.ScopeKey
	}
	target, _ := url.Parse(example.To) // it was parsed above
	return fmt.Sprintf("%s moved its pages out of what is collected, such as %s to %s", name, from.Path, target.Path), "change " + keys
}

func trim(host string) string { return strings.TrimPrefix(host, "www.") }

func (j *Judge) closedWords(name string) (cause, advice string) {
	change := fmt.Sprintf("change %s, or remove the site", j.about.SeedKey)
	switch {
	case len(j.sorted(nameless)) > 0:
		return "the name " + name + " cannot be resolved (DNS)", change + "; look at this machine's network if other names fail too"
	case len(j.sorted(parked)) > 0:
		return name + " is parked: its domain shows no site any more", change
	}
	return fmt.Sprintf("%s has nothing that was there (%s)", name, j.why(gone)), change
}

// why counts the answers of a class by role: "403 for robots.txt, 1 of 1 seeds, 5 of 5 known URLs".
func (j *Judge) why(c class) string {
	var parts []string
	for _, r := range []struct {
		role role
		what string
	}{{Seed, "seeds"}, {Known, "known URLs"}, {New, "other URLs"}} {
		if t := j.counts[r.role]; t[c] > 0 {
			parts = append(parts, fmt.Sprintf("%d of %d %s", t[c], t.all(), r.what))
		}
	}
	if j.counts[Robots][c] > 0 {
		parts = append(parts, "robots.txt")
	}
	codes := map[string]bool{}
	for _, a := range j.sorted(c) {
		codes[a.code()] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(codes)), ", ") + " for " + strings.Join(parts, ", ")
}

// code is an answer in a word.
func (a judged) code() string {
	switch {
	case a.Status == 0:
		return cmp.Or(a.Failure, "no answer")
	case a.Status < 400 && a.Verdict.Kind.Wall():
		return strings.ReplaceAll(string(a.Verdict.Kind), "_", " ")
	}
	return fmt.Sprint(a.Status)
}

// sorted are the answers of a class: seeds first, then by URL.
func (j *Judge) sorted(c class) (out []judged) {
	for _, key := range slices.Sorted(maps.Keys(j.answers)) {
		if a := j.answers[key]; a.class == c {
			out = append(out, a)
		}
	}
	order := map[role]int{Seed: -1, New: 1}
	slices.SortStableFunc(out, func(a, b judged) int { return order[a.Role] - order[b.Role] })
	return out
}

// evidence are examples of the answers that are not good, seeds first.
func (j *Judge) evidence() (out []string) {
	for _, c := range []class{refused, elsewhere, parked, nameless, failed, gone} {
		for _, a := range j.sorted(c) {
			text := fmt.Sprintf("%s %s: %s", a.Role, a.URL, a.code())
			switch {
			case a.To != "":
				text += " to " + a.To
			case a.Verdict.Evidence != "" && a.Verdict.Kind.Wall():
				text += ": " + a.Verdict.Evidence
			}
			if len(out) < maxEvidence {
				out = append(out, text)
			}
		}
	}
	return out
}
