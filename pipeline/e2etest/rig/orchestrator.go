//go:build e2e

package rig

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Orchestrator is a process of `pipeline serve`.
type Orchestrator struct {
	*Child
	t   *testing.T
	URL string
}

// StartOrchestrator starts the server with the web's flags and
// these, and with these variables in its environment.
func (w Web) StartOrchestrator(t *testing.T, environ []string, store string, more ...string) Orchestrator {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	cmd := exec.Command(Program, append([]string{"serve", "--listen=" + address, "--store=" + store, "--connect-to=" + w.Addr(), "--host-delay=5ms",
		"--log-level=warn", "--log-format=json"}, more...)...)
	cmd.Env = append(append(os.Environ(), "SSL_CERT_FILE="+w.CA), environ...)
	o := Orchestrator{Start(t, cmd), t, "http://" + address}
	Eventually(t, "the server ready", time.Minute, func() bool {
		if o.Ended() {
			t.Fatalf("the server ended:\n%s", Tail(o.Output(t)))
		}
		resp, err := http.Get(o.URL + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return o
}

// OrchestratedRun is the part of an answer about a run that the tests check.
type OrchestratedRun struct {
	RunID  string `json:"run_id"`
	Runner string `json:"runner"`
	State  string `json:"state"`
	Error  string `json:"error"`
	Lanes  []struct {
		Finished bool `json:"finished"`
	} `json:"lanes"`
}

// Call sends a request, checks the status of the answer, and decodes the answer.
func (o Orchestrator) Call(method, path, body string, want int) (r OrchestratedRun) {
	o.t.Helper()
	req, err := http.NewRequest(method, o.URL+path, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	said, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(said, &r)
	}
	if err != nil || resp.StatusCode != want {
		o.t.Fatalf("%s %s: %s, want %d (%v)\n%s\n%s", method, path, resp.Status, want, err, said, Tail(o.Output(o.t)))
	}
	return r
}

// Trigger starts a run of the seed job.
func (o Orchestrator) Trigger(body string) string {
	o.t.Helper()
	return o.Call("POST", "/api/v1/seeds/orchestrate", body, http.StatusAccepted).RunID
}

// Reaches waits until a run is in a state, and fails when it ends in another.
func (o Orchestrator) Reaches(id, state string) OrchestratedRun {
	o.t.Helper()
	var r OrchestratedRun
	Eventually(o.t, "run "+id+" is "+state, 3*time.Minute, func() bool {
		time.Sleep(100 * time.Millisecond) // between two requests to the server
		r = o.Call("GET", "/api/v1/runs/"+id, "", http.StatusOK)
		if slices.Contains([]string{"done", "failed", "cancelled", "interrupted"}, r.State) && r.State != state {
			o.t.Fatalf("run %s is %s, want %s (%q):\n%s", id, r.State, state, r.Error, Tail(o.Output(o.t)))
		}
		return r.State == state
	})
	return r
}

// Said counts an event in the log of the server and of its runs.
func (o Orchestrator) Said(event string) int {
	o.t.Helper()
	return strings.Count(o.Output(o.t), `"event":"`+event+`"`)
}
