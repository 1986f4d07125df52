package face

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/server/known"
	"github.com/newsfork/seed-engine/server/people"
	"github.com/newsfork/seed-engine/server/runs"
)

// apiBase is the API's description without the actions.
//
//go:embed openapi.json
var apiBase []byte

type object = map[string]any

// describe is the API's description for these jobs.
func describe(list known.Jobs) ([]byte, error) {
	var doc struct {
		OpenAPI  string            `json:"openapi"`
		Info     object            `json:"info"`
		Servers  any               `json:"servers"`
		Security any               `json:"security"`
		Tags     any               `json:"tags"`
		Paths    map[string]any    `json:"paths"`
		Parts    map[string]object `json:"components"`
	}
	if err := json.Unmarshal(apiBase, &doc); err != nil {
		return nil, fmt.Errorf("reading openapi.json: %w", err)
	}
	schemas := doc.Parts["schemas"]
	f := &Face{Parts: Parts{Jobs: list, Guard: &people.Guard{}, Runner: &runs.Runner{}}, explorer: newExplorer(list, nil)}
	f.providers = f.newProviders()
	actions, _ := f.table()
	for _, a := range actions {
		if a.ID == "" {
			continue
		}
		method, path, _ := strings.Cut(a.At, " ")
		at, ok := doc.Paths[path].(object)
		if !ok {
			at = object{}
			doc.Paths[path] = at
		}
		at[strings.ToLower(method)] = a.describe(path)
		if _, own := schemas[a.Body]; a.Body != "" && !own {
			schemas[a.Body] = bodySchema(a.In, a.Needs)
		}
	}
	schemas["ScheduleRequest"] = scheduleSchema(list.Started())
	return json.MarshalIndent(doc, "", " ")
}

func ref(kind, name string) object { return object{"$ref": "#/components/" + kind + "/" + name} }

func bodySchema(fields []option.Option, needs []string) object {
	properties := object{}
	for _, f := range fields {
		schema := f.Schema()
		if f.Usage == "" {
			delete(schema, "description")
		}
		properties[f.Field()] = schema
	}
	s := object{"type": "object", "properties": properties, "additionalProperties": false}
	if needs != nil {
		s["required"] = needs
	}
	return s
}

// everyAnswer are failures of any request.
const everyAnswer = "401 Unauthorized, 403 Forbidden, 413 TooLarge, 421 Misdirected, 500 Trouble, 503 Busy"

// pathParts are the parameters in paths, by what is before them.
var pathParts = map[string]option.Option{
	"runs": runs.NameField("", "The run's id.", ""), "dead-letters": {Usage: "The job that failed."}, "{job}": runs.NameField("",
		"The dead letter's id.", ""),
	"schedules": {Usage: "The schedule's name.", Pattern: "[a-z0-9][a-z0-9_-]{0,63}"}, "silences": runs.NameField("", "The silence's id.", ""),
	"channels":  {Usage: "The channel's name.", Choices: []string{"slack", "webhook", "email"}},
	"providers": {Usage: "The provider's id.", Pattern: "[a-z0-9][a-z0-9-]{0,63}"},
	"sites":     {Usage: "The site's name.", Pattern: "[a-z0-9][a-z0-9_-]{0,63}"}, "publishers": {Usage: "The publisher's id.", Pattern: "[a-z0-9][a-z0-9_-]{0,63}"}, "removals": {},
}

// describe is the action's part of the description.
func (a action) describe(path string) object {
	code, rest, _ := strings.Cut(a.Out, " ")
	names, meaning, _ := strings.Cut(rest, " ")
	var schema object
	for name := range strings.SplitSeq(names, "|") {
		if schema == nil {
			schema = ref("schemas", name)
		} else {
			schema = object{"oneOf": []any{schema, ref("schemas", name)}}
		}
	}
	out := object{"description": meaning, "content": object{"application/json": object{"schema": schema}}}
	head := func(name, about string) {
		out["headers"] = object{name: object{"description": about, "schema": object{"type": "string"}}}
	}
	switch {
	case names == "Started":
		head("Location", "The URL of the run.")
	case strings.HasPrefix(names, "OneSource"):
		head("ETag", "The version.")
	}
	answers := object{code: out}
	fails := everyAnswer + ", " + a.Fails
	op := object{"operationId": a.ID, "summary": a.About, "tags": []string{a.tag}, "responses": answers}
	var parameters []any
	before := ""
	for at := range strings.SplitSeq(path, "/") {
		if name := strings.Trim(at, "{}"); name != at {
			parameters = append(parameters, parameterOf(pathParts[before], name, "path", true))
		}
		before = at
	}
	switch {
	case a.Body != "":
		fails += ", 400 Bad, 415 NotJSON"
		content := object{"schema": ref("schemas", a.Body), "example": json.RawMessage(a.Example)}
		op["requestBody"] = object{"required": a.Must || len(a.Needs) > 0, "content": object{"application/json": content}}
	case a.In != nil:
		fails += ", 400 Bad"
		for _, f := range a.In {
			parameters = append(parameters, parameterOf(f, f.Field(), "query", slices.Contains(a.Needs, f.Field())))
		}
	}
	if a.Match {
		fails += ", 400 Bad"
		parameters = append(parameters, ref("parameters", "If-Match"))
	}
	if a.Match && a.Raw {
		parameters = append(parameters, ref("parameters", "If-None-Match"))
	}
	if parameters != nil {
		op["parameters"] = parameters
	}
	for one := range strings.SplitSeq(fails, ", ") {
		if code, name, ok := strings.Cut(one, " "); ok {
			answers[code] = ref("responses", name)
		}
	}
	return op
}

func parameterOf(o option.Option, name, in string, required bool) object {
	schema := o.Schema()
	delete(schema, "description")
	if o.Default != "" {
		schema["default"] = json.RawMessage(o.Default)
	}
	p := object{"name": name, "in": in, "required": required, "schema": schema}
	if o.Usage != "" {
		p["description"] = o.Usage
	}
	return p
}

// scheduleSchema describes a schedule's definition: each job has its own options.
func scheduleSchema(jobs known.Jobs) object {
	var each []any
	for _, j := range jobs {
		s := bodySchema([]option.Option{
			{Name: "cron", Usage: "minute hour day month weekday"}, {Name: "timezone", Usage: "IANA name; UTC if it is left out"},
		}, []string{"job", "cron"})
		properties := s["properties"].(object)
		properties["job"], properties["options"] = object{"const": j.Name}, ref("schemas", j.Request())
		each = append(each, s)
	}
	return object{"oneOf": each}
}
