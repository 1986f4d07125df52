package server

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

//go:embed openapi.json
var openAPI []byte

// describe is the API's description with every job that the server starts: one
// that openapi.json does not have is described by its fields, and else as the
// news job is, whose request has none.
func describe(known jobList) ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		return nil, fmt.Errorf("reading openapi.json: %w", err)
	}
	paths, schemas := doc["paths"].(map[string]any), doc["components"].(map[string]any)["schemas"].(map[string]any)
	changed := false
	for _, j := range known.started() {
		if paths[j.Path] != nil {
			continue
		}
		changed = true
		schema := requestName("news")
		text, err := json.Marshal(paths["/api/v1/news/runs"])
		if err != nil {
			return nil, err
		}
		of := strings.NewReplacer("startNews", "start"+strings.TrimSuffix(requestName(j.Name), "Request"), "the news job", "the "+j.Name+" job", schema, requestName(j.Name))
		var path any
		if err := json.Unmarshal([]byte(of.Replace(string(text))), &path); err != nil {
			return nil, fmt.Errorf("describing the %s job: %w", j.Name, err)
		}
		paths[j.Path] = path
		properties := map[string]any{}
		for _, f := range j.Fields {
			properties[f.Name] = field(f).schema()
		}
		schemas[requestName(j.Name)] = map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	}
	if !changed {
		return openAPI, nil
	}
	for path, names := range map[string][]string{"/api/v1/runs": known.started().names(), "/api/v1/dead-letters": known.names()} {
		for _, p := range paths[path].(map[string]any)["get"].(map[string]any)["parameters"].([]any) {
			if p, ok := p.(map[string]any); ok && p["name"] == "job" {
				p["schema"].(map[string]any)["enum"] = names
			}
		}
	}
	return json.MarshalIndent(doc, "", " ")
}

// requestName is the name of the schema of a job's request.
func requestName(job string) string { return strings.ToUpper(job[:1]) + job[1:] + "Request" }

func (f field) schema() map[string]any {
	s := map[string]any{"description": f.Label}
	if f.Pattern != "" {
		s["pattern"] = "^(?:" + f.Pattern + ")$"
	}
	maps.Copy(s, map[string]map[string]any{
		"text": {"type": "string"}, "day": {"type": "string", "format": "date"}, "yes": {"type": "boolean"},
		"number": {"type": "integer", "minimum": 1, "maximum": 1_000_000}, "share": {"type": "number", "minimum": 0, "maximum": 1},
	}[f.Kind])
	return s
}
