//go:build e2e

package dataflow

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"github.com/apache/beam/sdks/v2/go/container/tools"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime"
	jobpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/jobmanagement_v1"
	pipepb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/pipeline_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal/runnerlib"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/newsfork/seed-engine/io/store/storetest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// api is a fake of Dataflow's API and of Google's token endpoint.
type api struct {
	*httptest.Server
	t      *testing.T
	run    func(job []byte) error // what the service does with a job
	mu     sync.Mutex
	jobs   [][]byte
	tokens int
	ended  chan error
}

const bearer = "ya29.tokenQQQQ"

func startAPI(t *testing.T, run func(job []byte) error) *api {
	a := &api{t: t, run: run, ended: make(chan error, 1)}
	mux := http.NewServeMux()
	const jobs = "/v1b3/projects/demo-project/locations/europe-west1/jobs"
	mux.HandleFunc("POST /token", a.token)
	mux.HandleFunc("POST "+jobs, a.create)
	mux.HandleFunc("GET "+jobs+"/job-1", a.state)
	mux.HandleFunc("GET "+jobs+"/job-1/metrics", a.answer(`{"metrics":[]}`))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the API was asked for %s %s", r.Method, r.URL)
		http.NotFound(w, r)
	})
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

func (a *api) token(w http.ResponseWriter, r *http.Request) {
	if got := r.FormValue("grant_type"); got != "urn:ietf:params:oauth:grant-type:jwt-bearer" || strings.Count(r.FormValue("assertion"), ".") != 2 {
		a.t.Errorf("a token was asked for by %q", got)
	}
	a.mu.Lock()
	a.tokens++
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"access_token":"`+bearer+`","token_type":"Bearer","expires_in":3600}`)
}

func (a *api) answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer "+bearer {
			a.t.Errorf("%s %s with Authorization: %q", r.Method, r.URL.Path, got)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

func (a *api) create(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		a.t.Error(err)
	}
	a.mu.Lock()
	a.jobs = append(a.jobs, body)
	a.mu.Unlock()
	go func() { a.ended <- a.run(body) }()
	a.answer(`{"id":"job-1","name":"seed-nightly","currentState":"JOB_STATE_PENDING"}`)(w, r)
}

// state answers when the job has ended: Beam would wait half a minute before
// it asks again.
func (a *api) state(w http.ResponseWriter, r *http.Request) {
	state := "JOB_STATE_DONE"
	if err := <-a.ended; err != nil {
		a.t.Errorf("running the job: %v", err)
		state = "JOB_STATE_FAILED"
	}
	a.answer(`{"id":"job-1","currentState":"`+state+`"}`)(w, r)
}

// environ is the launcher's environment with a service account whose tokens
// come from the fake.
func (a *api) environ(home []string) []string {
	a.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(a.t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	b, err := json.Marshal(map[string]string{"type": "service_account", "project_id": "demo-project", "client_email": "launcher@demo-project.iam.gserviceaccount.com",
		"private_key_id": "keyQQQQ", "private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": a.URL + "/token"})
	require.NoError(a.t, err)
	path := filepath.Join(a.t.TempDir(), "key.json")
	require.NoError(a.t, os.WriteFile(path, b, 0o600))
	return environ(append(home, "STORAGE_EMULATOR_HOST="+os.Getenv("STORAGE_EMULATOR_HOST"), "GOOGLE_APPLICATION_CREDENTIALS="+path)...)
}

// otherWorker is a program that runs as the one under test and is not the
// same: what is staged must be what --worker_binary names.
func otherWorker(t *testing.T) (path string, content []byte) {
	t.Helper()
	content, err := os.ReadFile(rig.Program)
	require.NoError(t, err)
	content = append(content, "another one"...)
	path = filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(path, content, 0o755))
	return path, content
}

// staged reads what lies at a gs:// address.
func staged(t *testing.T, url string) []byte {
	t.Helper()
	bucket, key, _ := strings.Cut(strings.TrimPrefix(url, "gs://"), "/")
	return rig.Get(t, rig.Open(t, "gs://"+bucket), key)
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// checkPipeline compares the staged pipeline's environment with what was asked for.
func checkPipeline(t *testing.T, model []byte, worker, workerSHA256, store string) *pipepb.Pipeline {
	t.Helper()
	var p pipepb.Pipeline
	require.NoError(t, proto.Unmarshal(model, &p))
	require.Len(t, p.Components.Environments, 1)
	env := p.Components.Environments["go"]
	require.NotNil(t, env)
	assert.Equal(t, "beam:env:docker:v1", env.Urn)
	var image pipepb.DockerPayload
	require.NoError(t, proto.Unmarshal(env.Payload, &image))
	assert.Equal(t, "gcr.io/demo-project/seed:1", image.ContainerImage)
	require.Len(t, env.Dependencies, 1)
	assert.Equal(t, "beam:artifact:type:url:v1", env.Dependencies[0].TypeUrn)
	var artifact pipepb.ArtifactUrlPayload
	require.NoError(t, proto.Unmarshal(env.Dependencies[0].TypePayload, &artifact))
	assert.Equal(t, []string{worker, workerSHA256}, []string{artifact.Url, artifact.Sha256})
	discreet(t, model)
	assert.Contains(t, string(unwrapped(model)), store, "options travel in DoFn fields, where this test looks for secrets")
	return &p
}

// onPrism runs a staged pipeline with the staged worker as a process.
func onPrism(ctx context.Context, p *pipepb.Pipeline, worker []byte, dir string) error {
	binary, command := filepath.Join(dir, "worker"), filepath.Join(dir, "start")
	if err := os.WriteFile(binary, worker, 0o755); err != nil {
		return err
	}
	// prism writes --id='…' without a shell that would take the quotes off.
	if err := os.WriteFile(command, []byte("#!/bin/sh\neval exec "+binary+" \"$@\"\n"), 0o755); err != nil {
		return err
	}
	payload, err := proto.Marshal(&pipepb.ProcessPayload{Command: command})
	if err != nil {
		return err
	}
	env := p.Components.Environments["go"]
	env.Urn, env.Payload, env.Dependencies = "beam:env:process:v1", payload, nil
	client, err := prism.CreateJobServer(ctx, prism.Options{})
	if err != nil {
		return err
	}
	options, err := tools.OptionsToProto(runtime.RawOptionsWrapper{Experiments: []string{"beam_fn_api"}})
	if err != nil {
		return err
	}
	prepared, err := client.Prepare(ctx, &jobpb.PrepareJobRequest{Pipeline: p, PipelineOptions: options, JobName: "staged"})
	if err != nil {
		return err
	}
	id, err := runnerlib.Submit(ctx, client, prepared.PreparationId, prepared.StagingSessionToken)
	if err != nil {
		return err
	}
	return runnerlib.WaitForCompletion(ctx, client, id)
}

// The staging bucket is looked for before a run begins.
func TestNoStagingBucket(t *testing.T) {
	bucket := "gs://" + storetest.StartGCS(t)
	a := startAPI(t, func([]byte) error { return errors.New("nothing should be submitted") })
	dir, home := emptyHome(t)
	cmd := exec.Command(rig.Program, append(flags(bucket), "--dataflow_endpoint="+a.URL+"/")...)
	cmd.Dir, cmd.Env = dir, a.environ(home)
	c := rig.Start(t, cmd)
	require.Equal(t, 2, c.Wait(t, time.Minute), "%s", c.Output(t))
	assert.Regexp(t, `^pipeline: --staging_location: opening gs://staging: the bucket must exist .*\n$`, c.Output(t))
	for o, err := range rig.Open(t, bucket).List(t.Context(), "") { // the ledger's too
		require.NoError(t, err)
		t.Errorf("it wrote %s", o.Key)
	}
	assert.Empty(t, a.jobs)
	requireEmpty(t, dir)
}

func TestSubmitted(t *testing.T) {
	bucket := "gs://" + storetest.StartGCS(t)
	gcs, err := storage.NewClient(t.Context())
	require.NoError(t, err)
	defer gcs.Close()
	require.NoError(t, gcs.Bucket("staging").Create(t.Context(), "demo-project", nil))
	w := rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 2 * time.Millisecond})
	t.Setenv("SSL_CERT_FILE", w.CA) // the workers' own environment
	files := rig.Bucket(40)
	reference := rig.Directory(t, files)
	w.Run(t, reference, "--runner=prism")
	rig.Put(t, bucket, files)
	w.ResetLog()

	given, content := otherWorker(t)
	job := make(chan []byte, 1)
	a := startAPI(t, func(body []byte) error {
		job <- body
		var j struct {
			Environment struct{ SdkPipelineOptions sdkOptions }
		}
		if err := json.Unmarshal(body, &j); err != nil {
			return err
		}
		model := j.Environment.SdkPipelineOptions.Options.PipelineURL
		var p pipepb.Pipeline
		if err := proto.Unmarshal(staged(t, model), &p); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return onPrism(ctx, &p, staged(t, strings.TrimSuffix(model, "model")+"worker"), t.TempDir())
	})
	dir, home := emptyHome(t)
	cmd := exec.Command(rig.Program, append(flags(bucket), "--dataflow_endpoint="+a.URL+"/", "--worker_binary="+given,
		"--connect-to="+w.Addr(), "--host-delay=5ms", "--progress=off", "--log-format=json", "--log-level=warn")...)
	cmd.Dir, cmd.Env = dir, a.environ(home)
	c := rig.Start(t, cmd)
	code := c.Wait(t, time.Minute)
	output := c.Output(t)
	require.Zero(t, code, "%s", rig.Tail(output))
	for _, secret := range secrets {
		assert.NotContains(t, output, secret)
	}
	requireEmpty(t, dir)

	require.Len(t, a.jobs, 1)
	assert.Positive(t, a.tokens)
	worker, model, modelSHA256 := checkJob(t, <-job, false, sum(content))
	assert.True(t, bytes.Equal(content, staged(t, worker)), "the staged worker is the one that was given")
	pipeline := staged(t, model)
	assert.Equal(t, modelSHA256, sum(pipeline))
	checkPipeline(t, pipeline, worker, sum(content), bucket)

	rig.Same(t, rig.Objects(t, bucket), rig.Objects(t, reference))
	rig.OneAtATime(t, w.Requests())
	got, want := rig.LastReport(t, bucket), rig.LastReport(t, reference)
	assert.Equal(t, "done", got.State)
	none := func(_ string, n int64) bool { return n == 0 }
	maps.DeleteFunc(got.Counts, none)
	maps.DeleteFunc(want.Counts, none)
	assert.Equal(t, want.Counts, got.Counts)
	assert.EqualValues(t, 50, got.Counts["domains_collected"])
}
