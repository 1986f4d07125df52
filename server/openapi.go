package server

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/newsfork/seed-engine/io/ledger/alert"
)

// apiBase is the API's description without the jobs: components.pathItems.StartRun
// is what the requests that start a run have in common.
//
//go:embed openapi.json
var apiBase []byte

// describe is the API's description with every job that the server starts.
func describe(known jobList) ([]byte, error) {
	var doc map[string]any
	if err := json.Unmarshal(apiBase, &doc); err != nil {
		return nil, fmt.Errorf("reading openapi.json: %w", err)
	}
	paths, components := doc["paths"].(map[string]any), doc["components"].(map[string]any)
	schemas, starting := components["schemas"].(map[string]any), components["pathItems"].(map[string]any)["StartRun"].(map[string]any)["post"].(map[string]any)
	delete(components, "pathItems")
	for _, j := range known.started() {
		name := strings.ToUpper(j.Name[:1]) + j.Name[1:]
		properties, example := map[string]any{}, map[string]any{}
		for _, f := range j.Fields() {
			properties[f.Field()] = f.Schema()
			if f.Example != nil {
				example[f.Field()] = f.Example
			}
		}
		schemas[name+"Request"] = map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
		post := maps.Clone(starting)
		post["operationId"], post["summary"] = cmp.Or(j.Operation, "start"+name), "Start a run of the "+j.Name+" job"
		post["requestBody"] = map[string]any{"required": false, "content": map[string]any{"application/json": map[string]any{
			"schema": map[string]any{"$ref": "#/components/schemas/" + name + "Request"}, "example": example}}}
		paths[j.Path] = map[string]any{"post": post}
	}
	describeFinds(paths, known)
	oneOf := func(schema, property string, names []string) {
		schemas[schema].(map[string]any)["properties"].(map[string]any)[property].(map[string]any)["enum"] = names
	}
	oneOf("SilenceRequest", "job", known.started().names())
	oneOf("SilenceRequest", "rule", alert.Names())
	oneOf("DeadLetterFilter", "job", known.names())
	schemas["ScheduleRequest"] = scheduleSchema(known.started())
	for path, names := range map[string][]string{"/api/v1/runs": known.started().names(), "/api/v1/dead-letters": known.names()} {
		for _, p := range paths[path].(map[string]any)["get"].(map[string]any)["parameters"].([]any) {
			if p, ok := p.(map[string]any); ok && p["name"] == "job" {
				p["schema"].(map[string]any)["enum"] = names
			}
		}
	}
	return json.MarshalIndent(doc, "", " ")
}

// scheduleSchema describes a schedule's definition: each job has its own options.
func scheduleSchema(known jobList) map[string]any {
	var each []any
	for _, j := range known {
		name := strings.ToUpper(j.Name[:1]) + j.Name[1:]
		each = append(each, map[string]any{"type": "object", "required": []string{"job", "cron"}, "additionalProperties": false, "properties": map[string]any{
			"job":      map[string]any{"const": j.Name},
			"cron":     map[string]any{"type": "string", "description": "minute hour day month weekday"},
			"timezone": map[string]any{"type": "string", "description": "IANA name; UTC if it is left out"},
			"options":  map[string]any{"$ref": "#/components/schemas/" + name + "Request"}}})
	}
	return map[string]any{"oneOf": each}
}
