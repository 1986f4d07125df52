package face

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
)

// action is something that a program requests by the API, a person by a form, or both. The routes, the decoding of both bodies, the
// answers, the page that asks before, and the API's description come from its row.
type action struct {
	At      string          // method and path of the API; "" for a form alone
	ID      string          // its name in the description; "" if openapi.json describes it
	About   string          // what it does, in one sentence
	In      []option.Option // the fields of the body, or the parameters of a GET
	Needs   []string        // those that must be there
	Body    string          // the schema of the body; "" if the API takes none
	Must    bool            // the API needs a body
	Example string          // of a body
	Loose   bool            // the body may be empty, and a refusal of it names the field
	Raw     bool            // Do reads what comes in
	Match   bool            // the request names the version that was read, by If-Match
	Out     string          // status, schema and meaning of the answer, such as "200 Runs The runs."
	Fails   string          // own failures, such as "404 NoRun, 409 Over"
	Do      doing           // does it; its answer is the API's, unless Answer makes that
	Answer  doing

	Form    string // path of the form, which is sent by POST; "" for the API alone
	Next    string // the page after the form, with {…} of the path; call.next replaces it
	Redo    redo   // the page with the form again; nil: a page with the refusal alone
	Confirm doing  // the confirmation of the page at Form that asks before
	tag     string // in the description
	section string // of the navigation
}

// doing is what is done for a request. It returns the answer, or what a page shows.
type doing func(*call) (any, error)

// redo is the page that shows a form again, with what was sent and why it was refused, and its status; 0: it cannot show that error.
type redo func(*call, error) (view, int)

// call is a request for an action or a view.
type call struct {
	*http.Request
	head http.Header // of the answer
	in   url.Values  // the fields of the body, or the parameters
	body []byte      // of the API
	form bool        // it comes from a form
	next string      // the page after the form
	layout
	key string // of a page that is rendered once for all; "" for one of its own
}

// grouped sets what the actions of a resource share.
func grouped(tag, section string, rows ...action) []action {
	for i := range rows {
		rows[i].tag, rows[i].section = cmp.Or(rows[i].tag, tag), section
	}
	return rows
}

// take reads a request for an action.
func (a action) take(w http.ResponseWriter, r *http.Request, form bool) (*call, error) {
	c := &call{Request: r, head: w.Header(), form: form, in: url.Values{}}
	var err error
	switch {
	case form:
		if err := r.ParseForm(); err != nil {
			return c, known.ErrForm
		}
		c.in = r.PostForm
	case a.Body == "":
		if c.in = r.URL.Query(); !a.Raw {
			err = known.Checked(c.in, a.In, true)
		}
	case a.Loose || a.Raw || r.ContentLength != 0 || a.Must || len(a.Needs) > 0:
		if c.body, err = jsonBody(r); err == nil && !a.Raw {
			c.in, err = a.fields(c.body)
		}
	}
	return c, err
}

var errNotJSON = known.Answer(http.StatusUnsupportedMediaType, "send the body as JSON, with the header Content-Type: application/json")

// jsonBody reads a request's body, which must be JSON or empty. A program may omit
// Content-Type, or send the one that curl -d sends. A browser adds Origin or
// Sec-Fetch-Site; such a request must be sent as JSON, which a form on another site
// cannot do.
func jsonBody(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return nil, err
	}
	kind, _, err := mime.ParseMediaType(cmp.Or(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded"))
	browser := r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
	if err == nil && (kind == "application/json" || kind == "application/x-www-form-urlencoded" && !browser) {
		return b, nil
	}
	return nil, errNotJSON
}

// fields reads a JSON object. Its values are texts; a field without a kind takes any value.
func (a action) fields(body []byte) (url.Values, error) {
	names, out := known.FieldNames(a.In), url.Values{}
	if a.Loose {
		given := map[string]string{}
		if len(body) > 0 && json.Unmarshal(body, &given) != nil || given == nil {
			return nil, known.Refuse("the body is not a JSON object of texts; its fields are %s", strings.Join(names, ", "))
		}
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if !slices.Contains(names, name) {
				return nil, known.Refuse("unknown field %q; the fields are %s", known.Clip(name), strings.Join(names, ", "))
			}
			out.Set(name, given[name])
		}
		return out, nil
	}
	var given map[string]json.RawMessage
	wrong := json.Unmarshal(body, &given) != nil || given == nil
	for name, raw := range given {
		i, text := slices.Index(names, name), string(raw)
		wrong = wrong || i < 0 || text == "null" || a.In[i].Kind != "" && json.Unmarshal(raw, &text) != nil
		out.Set(name, text)
	}
	if wrong {
		return nil, known.Refuse("the body is not what is needed here; write %s", a.Example)
	}
	return out, nil
}

// code is the status of the API's answer.
func (a action) code() int {
	text, _, _ := strings.Cut(a.Out, " ")
	n, err := strconv.Atoi(text)
	if err != nil {
		return http.StatusOK
	}
	return n
}

// api answers a request of the API.
func (a action) api(f *Face) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := a.take(w, r, false)
		var v any
		if err == nil {
			v, err = a.Do(c)
		}
		if err == nil && a.Answer != nil {
			v, err = a.Answer(c)
		}
		if err != nil {
			f.Fail(w, r, err)
			return
		}
		if text, ok := v.([]byte); ok {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8") // so that a browser shows it
			_, _ = w.Write(text)                                        // a client that is gone needs no answer
			return
		}
		f.answer(w, r, a.code(), v)
	}
}

var inBraces = regexp.MustCompile(`\{\w+\}`)

// sent answers a form: with the next page, or with what is wrong.
func (a action) sent(f *Face) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := a.take(w, r, true)
		if err == nil {
			c.next = inBraces.ReplaceAllStringFunc(a.Next, func(name string) string { return r.PathValue(strings.Trim(name, "{}")) })
			_, err = a.Do(c)
		}
		if err != nil && a.Redo != nil {
			if page, code := a.Redo(c, err); code != 0 {
				f.show(page, code)(w, r)
				return
			}
		}
		if err != nil {
			f.Fail(w, r, err)
			return
		}
		http.Redirect(w, r, c.next, http.StatusSeeOther)
	}
}

// confirmation is a page that asks before something is done that cannot be undone. It works without scripts.
type confirmation struct {
	Title  string
	Text   string
	Action string // where the form goes, by POST; "" for the page's own path
	Button string
	Danger bool
	Hidden []hidden
	Back   string // the page to return to
	// Section is of the navigation; "" for the action's.
	Section string
}

// hidden is a field of the form that the user does not see.
type hidden struct{ Name, Value string }

// asks is the page that asks before an action.
func asks(at, section string, confirm doing) view {
	return view{At: at, Template: "confirm", Section: section, Still: true, Data: func(c *call) (any, error) {
		v, err := confirm(c)
		if err != nil {
			return nil, err
		}
		ask := v.(confirmation)
		c.Title, c.Section, ask.Action = ask.Title, cmp.Or(ask.Section, section), cmp.Or(ask.Action, c.URL.Path)
		return ask, nil
	}}
}
