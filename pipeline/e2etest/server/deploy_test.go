//go:build e2e

package server

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/pipeline/cli"
	"github.com/newsfork/seed-engine/server"
)

// deployBlocks are docs/deploy.md's fenced blocks of one language.
func deployBlocks(t *testing.T, language string) (out []string) {
	t.Helper()
	b, err := os.ReadFile("../../../docs/deploy.md")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(string(b), -1) {
		out = append(out, m[1])
	}
	require.NotEmpty(t, out, language)
	return out
}

// deployed is the folder with what people put on their machines.
const deployed = "../../../deploy"

// TestUnit lets systemd read the unit, and say how much it exposes: under 3 of 10.
func TestUnit(t *testing.T) {
	analyze := tool(t, "systemd-analyze")
	b, err := os.ReadFile(filepath.Join(deployed, "seed-engine.service"))
	require.NoError(t, err)
	unit := filepath.Join(t.TempDir(), "seed-engine.service")
	require.NoError(t, os.WriteFile(unit, []byte(strings.ReplaceAll(string(b), "/opt/seed-engine/pipeline", program())), 0o644))
	out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.NotContains(t, string(out), "seed-engine.service", "it has something to say")
	out, err = exec.Command(analyze, "security", "--offline=true", "--threshold=30", unit).CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

func passes(t *testing.T, program string, args ...string) {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	require.NoError(t, err, "%s %v:\n%s", program, args, out)
}

// TestPrometheusFiles lets promtool read the rules and run their tests, and read the
// expressions of the dashboard as if they were rules.
func TestPrometheusFiles(t *testing.T) {
	promtool := tool(t, "promtool")
	dir := filepath.Join(deployed, "prometheus")
	passes(t, promtool, "check", "config", "--syntax-only", filepath.Join(dir, "scrape.yaml"))
	passes(t, promtool, "check", "rules", filepath.Join(dir, "rules.yaml"))
	passes(t, promtool, "test", "rules", filepath.Join(dir, "rules_test.yaml"))

	b, err := os.ReadFile(filepath.Join(deployed, "grafana", "seed-engine.json"))
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string `json:"title"`
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	require.NoError(t, json.Unmarshal(b, &dashboard))
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for _, p := range dashboard.Panels {
		require.NotEmpty(t, p.Targets, p.Title)
		for _, target := range p.Targets {
			rules = append(rules, rule{fmt.Sprintf("panel:%d", len(rules)), strings.ReplaceAll(target.Expr, "$job", ".+")})
		}
	}
	b, err = json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	require.NoError(t, os.WriteFile(file, b, 0o600))
	passes(t, promtool, "check", "rules", file)
}

// TestDeployedConfig starts no server but reads each configuration that
// docs/deploy.md and docs/server.md show, and that of deploy/kubernetes.
func TestDeployedConfig(t *testing.T) {
	b, err := os.ReadFile("../../../docs/server.md")
	require.NoError(t, err)
	blocks := deployBlocks(t, "yaml")
	for _, m := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllStringSubmatch(string(b), -1) {
		blocks = append(blocks, m[1])
	}
	b, err = os.ReadFile(filepath.Join(deployed, "kubernetes", "server.yaml"))
	require.NoError(t, err)
	for _, document := range strings.Split(string(b), "\n---\n") {
		var object struct {
			Data map[string]string `yaml:"data"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(document), &object))
		if text, ok := object.Data["server.yaml"]; ok {
			blocks = append(blocks, text)
		}
	}
	require.GreaterOrEqual(t, len(blocks), 3)
	for _, text := range blocks {
		_, err := server.ParseConfig([]byte(text), cli.Descriptions())
		assert.NoError(t, err, text)
	}
}

// TestDeployedCommands lets the program read the commands of the table for cron in
// docs/deploy.md and of the CronJob: it refuses nothing but the report that the test adds.
func TestDeployedCommands(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(deployed, "kubernetes", "seed.yaml"))
	require.NoError(t, err)
	var job struct {
		Spec struct {
			JobTemplate struct {
				Spec struct {
					Template struct {
						Spec struct{ Containers []struct{ Args []string } }
					}
				}
			} `yaml:"jobTemplate"`
		}
	}
	require.NoError(t, yaml.Unmarshal(b, &job))
	require.Len(t, job.Spec.JobTemplate.Spec.Template.Spec.Containers, 1)
	commands := [][]string{job.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Args}
	for _, line := range strings.Split(deployBlocks(t, "cron")[0], "\n") {
		if _, flags, found := strings.Cut(line, "/pipeline "); found {
			commands = append(commands, strings.Fields(flags))
		}
	}
	require.GreaterOrEqual(t, len(commands), 3)
	for _, flags := range commands {
		require.NotEmpty(t, flags)
		code, out := run(t, nil, append(slices.Clone(flags), "--report=no/such/report.json")...)
		assert.Equal(t, 2, code, "%v", flags)
		assert.Contains(t, out, "there is no directory no/such", "%v", flags)
	}
}
