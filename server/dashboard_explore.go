package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/explore"
	"github.com/newsfork/seed-engine/io/printable"
)

// explorePage is the data of the page that searches what the jobs found.
type explorePage struct {
	Kinds []kindForm
	Kind  *kindForm  // of the list; nil: none was chosen
	List  *foundList // nil: nothing was asked for
}

// kindForm is a kind with the values of its form.
type kindForm struct {
	kind
	Query explore.Query
}

// foundPage is the data of the page of one item.
type foundPage struct {
	kindForm
	Item foundItem
}

// foundItem is an item with the addresses that a page links to.
type foundItem struct {
	found
	Kinds map[string]kind
}

func (p *pages) exploreViews() []view {
	s := p.server
	all := []view{{At: "GET /explore", Template: "explore", Section: "explore", Title: "Explore", Still: true, Data: func(*call) (any, error) {
		return explorePage{Kinds: s.explorer.forms()}, nil
	}}}
	for i, k := range s.explorer.kinds {
		all = append(all, view{At: "GET /explore/" + k.Name, Template: "explore", Section: "explore", Title: k.Title, Still: true,
			Data: func(c *call) (any, error) {
				v := explorePage{Kinds: s.explorer.forms()}
				v.Kind = &v.Kinds[i]
				fields := k.searchFields()
				for j := range fields {
					fields[j].Required = fields[j].Required && len(c.in) > 0
				}
				q, err := readQuery(c.in, fields, false)
				v.Kind.Query = q
				if err == nil && len(c.in) > 0 {
					var list foundList
					list, err = s.search(c.Context(), k, q)
					v.List = &list
				}
				return v, err
			}}, view{At: "GET /explore/" + k.Name + "/item", Template: "found", Section: "explore", Still: true, Data: func(c *call) (any, error) {
			q, err := readQuery(c.in, k.itemFields(), false)
			if err != nil {
				return nil, err
			}
			f, err := s.find(c.Context(), k, q)
			c.Title = shown(f.Title)
			return foundPage{kindForm{k, q}, foundItem{f, s.explorer.byName()}}, err
		}})
	}
	return all
}

func (e *explorer) forms() (all []kindForm) {
	for _, k := range e.kinds {
		all = append(all, kindForm{k, nil})
	}
	return all
}

func (e *explorer) byName() map[string]kind {
	all := map[string]kind{}
	for _, k := range e.kinds {
		all[k.Name] = k
	}
	return all
}

// Next is the address of the next page of a list.
func (k kindForm) Next(after string) string {
	q := queryOf(k.Query)
	q.Set(explore.After, after)
	return "/explore/" + k.Name + "?" + q.Encode()
}

// Asked is the value of a question about an item.
func (k kindForm) Asked(name string) string { return k.Query[name] }

func queryOf(q explore.Query) url.Values {
	v := url.Values{}
	for name, value := range q {
		v.Set(name, value)
	}
	return v
}

// URL is the page of an item of the kind.
func (k kind) URL(item explore.Item) string {
	return "/explore/" + k.Name + "/item?" + queryOf(item.Key).Encode()
}

// Doc is the meaning of a column.
func (k kind) Doc(items []explore.Item, column string) string {
	if len(items) == 0 {
		return ""
	}
	return items[0].Record.Column(column).Doc
}

// DeadLettersURL is the page of dead letters with those of the item.
func (p foundPage) DeadLettersURL() string {
	if p.Item.Failures == "" {
		return ""
	}
	return "/dead-letters?" + deadLettersOf(p.kind, p.Item.Item)
}

// shown is a text from strangers as a person may see it: characters that are invisible or
// turn the order of a line around are escaped.
func shown(text string) string {
	var b strings.Builder
	_, _ = printable.Writer(&b).Write([]byte(strings.ToValidUTF8(text, "\uFFFD"))) // a strings.Builder never fails
	return b.String()
}

// maxCell is how many letters of a value a table shows.
const maxCell = 200

// cellText is a value in a table.
func cellText(c explore.Cell) string {
	text := []rune(strings.Join(strings.Fields(valueOf(c).Text), " "))
	if len(text) > maxCell {
		return string(text[:maxCell]) + "…"
	}
	return string(text)
}

// value is a value of a record as a page shows it.
type value struct {
	Text   string
	Link   string // of an address at the site
	Lines  []string
	Block  bool // it is long, and has lines of its own
	Number bool
}

func valueOf(c explore.Cell) value {
	switch x := c.Value.(type) {
	case nil:
		return value{Text: "–"}
	case string:
		v := value{Text: shown(x)}
		if c.Name == "url" || strings.HasSuffix(c.Name, "_url") {
			v.Link = webAddress(x)
		}
		v.Block = strings.Contains(x, "\n")
		if x == "" {
			v.Text = "–"
		}
		return v
	case bool:
		return value{Text: map[bool]string{true: "yes", false: "no"}[x]}
	case time.Time:
		if x.IsZero() {
			return value{Text: "–"}
		}
		return value{Text: x.UTC().Format("2006-01-02 15:04:05")}
	case []string:
		if len(x) == 0 {
			return value{Text: "–"}
		}
		v := value{Text: shown(strings.Join(x, ", "))}
		for _, line := range x {
			v.Lines = append(v.Lines, shown(line))
		}
		return v
	case json.Marshaler:
		b, err := x.MarshalJSON()
		var indented bytes.Buffer
		if err == nil {
			err = json.Indent(&indented, b, "", "  ")
		}
		if err != nil {
			return value{Text: "it is not JSON"}
		}
		return value{Text: shown(indented.String()), Block: indented.Len() > maxCell}
	}
	return value{Text: fmt.Sprint(c.Value), Number: true}
}

// webAddress is an address that a page may link to, "" for any other text.
func webAddress(text string) string {
	u, err := url.Parse(text)
	if err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Host == "" {
		return ""
	}
	return u.String()
}

// Web is the item's page at its site.
func (i foundItem) Web() string { return webAddress(i.URL) }
