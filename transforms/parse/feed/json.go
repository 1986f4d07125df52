package feed

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
)

// ReadJSON reads a JSON Feed member by member: of a document without an end it has what came
// before, and a value of a wrong type is as none. whole says that the end was reached. The only
// error is ErrNotFeed.
func ReadJSON(text string) (f Feed, whole bool, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	f.Kind = JSON
	version := ""
	_, err = d.Token() // the brace
	for err == nil && d.More() {
		var name json.Token
		if name, err = d.Token(); err != nil {
			break
		}
		if name == "items" {
			err = f.jsonItems(d)
			continue
		}
		var value json.RawMessage
		err = d.Decode(&value)
		switch name {
		case "version":
			version = jsonText(value)
		case "title":
			f.Title = jsonText(value)
		}
	}
	if !strings.Contains(version, "jsonfeed.org/version/") {
		return Feed{}, false, errors.Join(ErrNotFeed, err)
	}
	if err == nil {
		_, err = d.Token() // the brace at the end
	}
	return f, err == nil, nil
}

// jsonItems reads a JSON Feed's items one at a time.
func (f *Feed) jsonItems(d *json.Decoder) error {
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return err
	}
	for d.More() {
		if len(f.Items) == maxItems {
			return errors.New("more items than are read")
		}
		var i struct {
			ID, URL, Title json.RawMessage
			External       json.RawMessage `json:"external_url"`
			Published      json.RawMessage `json:"date_published"`
			Modified       json.RawMessage `json:"date_modified"`
		}
		if err := d.Decode(&i); errors.As(err, new(*json.UnmarshalTypeError)) {
			continue // no object
		} else if err != nil {
			return err
		}
		item := Item{Link: cmp.Or(jsonText(i.URL), jsonText(i.External)), Title: jsonText(i.Title), Published: jsonText(i.Published), Updated: jsonText(i.Modified)}
		if id := jsonText(i.ID); item.Link == "" && strings.HasPrefix(id, "http") {
			item.Link = id // which should be the item's address
		}
		f.Items = append(f.Items, item)
	}
	_, err := d.Token() // the bracket
	return err
}

// jsonText is a JSON string's value, "" for other values.
func jsonText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
