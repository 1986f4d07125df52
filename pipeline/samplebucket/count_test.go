package samplebucket

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// counts are the numbers that a reader of one or more raw files must find.
type counts struct {
	records, bad int
	ids, domains map[string]bool
	broken       bool // not a whole JSON text
}

func newCounts() *counts { return &counts{ids: map[string]bool{}, domains: map[string]bool{}} }

// count reads one raw file of country from its bytes.
func count(body []byte, country string) *counts {
	c := newCounts()
	var file struct {
		Records []json.RawMessage `json:"records"`
	}
	if err := json.Unmarshal(body, &file); err != nil {
		c.broken = true
		return c
	}
	for _, raw := range file.Records {
		c.records++
		who, err := identify(raw, country)
		if err != nil {
			c.bad++
			continue
		}
		c.ids[who.id], c.domains[who.domain] = true, true
	}
	return c
}

// identify returns the identity of a record: a valid domain_id counts before the URL. Fields of a wrong type count as absent.
func identify(raw json.RawMessage, country string) (identity, error) {
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return identity{}, err
	}
	rawURL, _ := fields["raw_url"].(string)
	if rawURL == "" {
		return identity{}, errNoDomain
	}
	if id, _ := fields["domain_id"].(string); id != "" {
		if who, err := parseID(id); err == nil {
			return who, nil
		}
	}
	return derive(rawURL, country)
}

func (c *counts) merge(o *counts) {
	c.records += o.records
	c.bad += o.bad
	maps.Copy(c.ids, o.ids)
	maps.Copy(c.domains, o.domains)
}

// table writes the expected numbers as Markdown, one row for each raw file.
func table(objects map[string][]byte) string {
	var b strings.Builder
	b.WriteString("| raw file | records | bad records | distinct `domain_id` | distinct registrable domains |\n")
	b.WriteString("| --- | ---: | ---: | ---: | ---: |\n")
	row := func(name string, c *counts) {
		if c.broken {
			fmt.Fprintf(&b, "| %s | broken | – | – | – |\n", name)
			return
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", name, c.records, c.bad, len(c.ids), len(c.domains))
	}
	present, all := newCounts(), newCounts()
	results, files, broken := map[string]bool{}, 0, 0
	partitions := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		if !strings.Contains(key, "/raw_0") && !strings.HasPrefix(key, "research/") {
			continue
		}
		_, rest, _ := strings.Cut(key, "country=")
		c := count(objects[key], rest[:2])
		row("`"+key+"`", c)
		all.merge(c)
		if strings.HasPrefix(key, "research/") {
			continue
		}
		files++
		if c.broken {
			broken++
		}
		present.merge(c)
		partition := key[:strings.LastIndex(key, "/")]
		partitions[partition] = true
		for domain := range c.domains {
			results[partition+"/"+domain] = true
		}
	}
	row("**all of `datasets/`**", present)
	row("**with the legacy file**", all)
	fmt.Fprintf(&b, "\n`datasets/` has %d raw files, %d of them broken, in %d partitions. One run over it asks %d domains and writes %d `domain_metadata.json`: one for each domain of each partition.\n",
		files, broken, len(partitions), len(present.domains), len(results))
	return b.String()
}
