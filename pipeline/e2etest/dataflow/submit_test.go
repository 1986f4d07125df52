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
	"log/slog"
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
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal/runnerlib"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/newsfork/seed-engine/io/prism"
	"github.com/newsfork/seed-engine/io/store"
	"github.com/newsfork/seed-engine/io/store/bucket/buckettest"
	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// api is a fake of Dataflow's API and of Google's token endpoint.
type api struct {
	*httptest.Server
	t         *testing.T
	run       func(job []byte) error // what the service does with a job
	mu        sync.Mutex
	jobs      [][]byte
	tokens    int
	ended     chan error
	requested bool // for the job's state
	other     bool // a job of that name is at work already
}

const bearer = "ya29.tokenQQQQ"

func startAPI(t *testing.T, run func(job []byte) error) *api {
	a := &api{t: t, run: run, ended: make(chan error, 9)}
	mux := http.NewServeMux()
	const jobs = "/v1b3/projects/demo-project/locations/europe-west1/jobs"
	mux.HandleFunc("GET "+jobs, a.answer(`{"jobs":[{"id":"job-0","name":"seed-nightly","currentState":"JOB_STATE_RUNNING"}]}`))
	mux.HandleFunc("POST /token", a.token)
	mux.HandleFunc("POST "+jobs, a.create)
	mux.HandleFunc("GET "+jobs+"/job-1", a.state)
	mux.HandleFunc("GET "+jobs+"/job-1/metrics", a.answer(`{"metrics":[]}`))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("unexpected request to the API: %s %s", r.Method, r.URL)
		http.NotFound(w, r)
	})
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

func (a *api) token(w http.ResponseWriter, r *http.Request) {
	if got := r.FormValue("grant_type"); got != "urn:ietf:params:oauth:grant-type:jwt-bearer" || strings.Count(r.FormValue("assertion"), ".") != 2 {
		a.t.Errorf("unexpected request for a token: %q", got)
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
	other := a.other
	a.mu.Unlock()
	if other {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"error":{"code":409,"message":"There is already an active job named seed-nightly.","status":"ALREADY_EXISTS"}}`)
		return
	}
	go func() { a.ended <- a.run(body) }()
	a.answer(`{"id":"job-1","name":"seed-nightly","currentState":"JOB_STATE_PENDING"}`)(w, r)
}

// state answers when the job has ended, because Beam would wait half a minute
// before its next request. Its first answer is an error, which must not end the
// launcher.
func (a *api) state(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	first := !a.requested
	a.requested = true
	a.mu.Unlock()
	if first {
		http.Error(w, "unavailable", http.StatusServiceUnavailable)
		return
	}
	state := "JOB_STATE_DONE"
	if err := <-a.ended; err != nil {
		a.t.Errorf("running the job: %v", err)
		state = "JOB_STATE_FAILED"
	}
	a.answer(`{"id":"job-1","currentState":"`+state+`"}`)(w, r)
}

// environ returns the launcher's environment with a service account whose tokens
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

// otherWorker makes a program that works like the one under test but has other
// bytes: the program that --worker_binary names must be staged.
func otherWorker(t *testing.T) (path string, content []byte) {
	t.Helper()
	content, err := os.ReadFile(rig.Program)
	require.NoError(t, err)
	content = append(content, "another one"...)
	path = filepath.Join(t.TempDir(), "other")
	require.NoError(t, os.WriteFile(path, content, 0o755))
	return path, content
}

// staged reads the object at a gs:// address.
func staged(t *testing.T, url string) []byte {
	t.Helper()
	bucket, key, _ := strings.Cut(strings.TrimPrefix(url, "gs://"), "/")
	return rig.Get(t, rig.Open(t, "gs://"+bucket), key)
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// checkPipeline compares the staged pipeline's environment with the flags.
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

// onPrism runs a staged pipeline with the staged worker.
func onPrism(ctx context.Context, p *pipepb.Pipeline, worker []byte, dir string) error {
	binary, command := filepath.Join(dir, "worker"), filepath.Join(dir, "start")
	if err := os.WriteFile(binary, worker, 0o755); err != nil {
		return err
	}
	// prism writes --id='…' without a shell that would take the quotes off.
	if err := os.WriteFile(command, []byte("#!/bin/sh\neval exec "+binary+" \"$@\"\n"), 0o755); err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	env := p.Components.Environments["go"]
	payload, err := proto.Marshal(&pipepb.ProcessPayload{Command: command})
	if err != nil {
		return err
	}
	env.Urn, env.Payload, env.Dependencies = "beam:env:process:v1", payload, nil
	endpoint, err := prism.Start(ctx, slog.Default())
	if err != nil {
		return err
	}
	server, err := grpcx.Dial(ctx, endpoint, time.Minute)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }() // every call was answered
	client := jobpb.NewJobServiceClient(server)
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

// world is the surroundings of a submission: a bucket with raw files, a staging
// bucket, the simulated web, and the results of a local run of those files.
type world struct {
	bucket, reference string
	web               rig.Web
	dir               string // where the launcher runs
	home              []string
}

func newWorld(t *testing.T) world {
	t.Helper()
	w := emptyWorld(t)
	files := rig.Bucket(40)
	w.reference = rig.Directory(t, files)
	w.web.Run(t, w.reference, "--runner=prism")
	rig.Put(t, w.bucket, files)
	w.web.ResetLog()
	return w
}

// emptyWorld has no raw files and no reference.
func emptyWorld(t *testing.T) world {
	t.Helper()
	w := world{bucket: "gs://" + buckettest.StartGCS(t)}
	gcs, err := storage.NewClient(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = gcs.Close() }) // every write was confirmed
	require.NoError(t, gcs.Bucket("staging").Create(t.Context(), "demo-project", nil))
	w.web = rig.StartWeb(t, webtest.Options{Seed: 7, Latency: 2 * time.Millisecond})
	t.Setenv("SSL_CERT_FILE", w.web.CA) // the workers' own environment
	w.dir, w.home = emptyHome(t)
	return w
}

// submit starts the launcher of a seed run.
func (w world) submit(t *testing.T, a *api, more ...string) *rig.Child {
	t.Helper()
	return w.launch(t, a, append([]string{"--host-delay=5ms"}, more...)...)
}

// launch starts the launcher.
func (w world) launch(t *testing.T, a *api, more ...string) *rig.Child {
	t.Helper()
	cmd := exec.Command(rig.Program, append(append(flags(w.bucket), "--dataflow_endpoint="+a.URL+"/", "--connect-to="+w.web.Addr(), "--progress=off",
		"--log-format=json", "--log-level=info"), more...)...)
	cmd.Dir, cmd.Env = w.dir, a.environ(w.home)
	return rig.Start(t, cmd)
}

// runs calls the program's own command "runs" on the world's store.
func (w world) runs(t *testing.T, words ...string) string {
	t.Helper()
	cmd := exec.Command(rig.Program, append(append([]string{"runs"}, words...), "--store="+w.bucket)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, "runs %v", words)
	return string(out)
}

// newest returns the last run's id and state.
func (w world) newest(t *testing.T) (id, state string) {
	t.Helper()
	rows := strings.Split(w.runs(t, "list"), "\n")
	require.Greater(t, len(rows), 1)
	row := strings.Fields(rows[1])
	require.Greater(t, len(row), 3, "there is no run: %q", rows)
	return row[0], row[3]
}

// complete compares the run's objects and counts with those of a local run.
func (w world) complete(t *testing.T, got rig.Report) {
	t.Helper()
	rig.Same(t, rig.Objects(t, w.bucket), rig.Objects(t, w.reference))
	rig.OneAtATime(t, w.web.Requests())
	assert.Equal(t, rig.LastReport(t, w.reference).Counted(), got.Counted())
	assert.EqualValues(t, 50, got.Counts["domains_collected"])
	assert.EqualValues(t, len(w.web.Requests()), got.HTTP.Requests, "as in the simulated web's own log")
}

// runStaged runs a job as the service does: with the pipeline and the worker
// from the staging bucket.
func runStaged(t *testing.T, within time.Duration) func(body []byte) error {
	return func(body []byte) error {
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
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		return onPrism(ctx, &p, staged(t, strings.TrimSuffix(model, "model")+"worker"), t.TempDir())
	}
}

// A missing staging bucket is found before a run begins.
func TestNoStagingBucket(t *testing.T) {
	bucket := "gs://" + buckettest.StartGCS(t)
	a := startAPI(t, func([]byte) error { return errors.New("nothing should be submitted") })
	dir, home := emptyHome(t)
	cmd := exec.Command(rig.Program, append(flags(bucket), "--dataflow_endpoint="+a.URL+"/")...)
	cmd.Dir, cmd.Env = dir, a.environ(home)
	c := rig.Start(t, cmd)
	require.Equal(t, 2, c.Wait(t, time.Minute), "%s", c.Output(t))
	assert.Regexp(t, `^pipeline: --staging_location: opening gs://staging: there is no such bucket: .*\n$`, c.Output(t))
	for o, err := range rig.Open(t, bucket).List(t.Context(), "") { // the ledger's too
		require.NoError(t, err)
		t.Errorf("it wrote %s", o.Key)
	}
	assert.Empty(t, a.jobs)
	requireEmpty(t, dir)
}

func TestSubmitted(t *testing.T) {
	w := newWorld(t)
	given, content := otherWorker(t)
	a := startAPI(t, runStaged(t, time.Minute))
	c := w.submit(t, a, "--worker_binary="+given)
	code := c.Wait(t, time.Minute)
	output := c.Output(t)
	require.Zero(t, code, "%s", rig.Tail(output))
	for _, secret := range secrets {
		assert.NotContains(t, output, secret)
	}
	requireEmpty(t, w.dir)

	require.Len(t, a.jobs, 1)
	assert.Positive(t, a.tokens)
	worker, model, modelSHA256 := checkJob(t, a.jobs[0], form{workers: 3, threads: 4, workerSHA256: sum(content)})
	assert.True(t, bytes.Equal(content, staged(t, worker)), "the staged worker is the one that was given")
	pipeline := staged(t, model)
	assert.Equal(t, modelSHA256, sum(pipeline))
	checkPipeline(t, pipeline, worker, sum(content), w.bucket)
	got := rig.LastReport(t, w.bucket)
	assert.Equal(t, "done", got.State)
	w.complete(t, got)
}

// unbounded are the collections of a pipeline that never end.
func unbounded(p *pipepb.Pipeline) (n int) {
	for _, c := range p.Components.Pcollections {
		if c.IsBounded == pipepb.IsBounded_UNBOUNDED {
			n++
		}
	}
	return n
}

// --watch --streaming is submitted as one streaming job. It reads a raw file that
// appears while it runs, and the control object ends it.
func TestStreaming(t *testing.T) {
	w := newWorld(t)
	given, content := otherWorker(t)
	a := startAPI(t, runStaged(t, 2*time.Minute))
	s := rig.Open(t, w.bucket)
	late := "datasets/country=kr/category=news/date=2026-01-29/raw_0001.json"
	body := rig.Get(t, s, late)
	require.NoError(t, s.Delete(t.Context(), late))
	c := w.submit(t, a, "--worker_binary="+given, "--watch=500ms", "--streaming")
	marked := func(key string) func() bool {
		return func() bool {
			if c.Ended() {
				t.Fatalf("the launcher ended with %d:\n%s", c.Cmd.ProcessState.ExitCode(), rig.Tail(c.Output(t)))
			}
			_, err := s.Head(t.Context(), key+".success")
			return err == nil
		}
	}
	rig.Eventually(t, "the files that were there", time.Minute, marked("datasets/country=de/category=education/date=2026-01-30/raw_0001.json"))
	require.NoError(t, s.Put(t.Context(), late, bytes.NewReader(body), store.PutOptions{}))
	rig.Eventually(t, "the file that came", time.Minute, marked(late))
	rig.Eventually(t, "the other files", time.Minute, marked("datasets/country=sg/category=news/date=2026-01-28/raw_0002.json"))
	id, state := w.newest(t)
	assert.Equal(t, "running", state)
	w.runs(t, "cancel", id)
	assert.Equal(t, 130, c.Wait(t, time.Minute), "%s", rig.Tail(c.Output(t)))
	requireEmpty(t, w.dir)

	require.Len(t, a.jobs, 1)
	worker, model, modelSHA256 := checkJob(t, a.jobs[0], form{streaming: true, workers: 3, threads: 4, workerSHA256: sum(content)})
	pipeline := staged(t, model)
	assert.Equal(t, modelSHA256, sum(pipeline))
	p := checkPipeline(t, pipeline, worker, sum(content), w.bucket)
	assert.Greater(t, unbounded(p), len(p.Components.Pcollections)/2, "of %d collections", len(p.Components.Pcollections))
	got := rig.LastReport(t, w.bucket)
	assert.Equal(t, []string{id, "cancelled"}, []string{got.RunID, got.State})
	rig.Same(t, rig.Objects(t, w.bucket), rig.Objects(t, w.reference))
	rig.OneAtATime(t, w.web.Requests())
	assert.EqualValues(t, len(w.web.Requests()), got.HTTP.Requests, "as in the simulated web's own log")
}

// --watch alone submits a job for each batch: here one for the first files, and
// one for a file that appears later.
func TestWatch(t *testing.T) {
	w := newWorld(t)
	given, _ := otherWorker(t)
	a := startAPI(t, runStaged(t, time.Minute))
	s := rig.Open(t, w.bucket)
	late := "datasets/country=kr/category=news/date=2026-01-29/raw_0001.json"
	body := rig.Get(t, s, late)
	require.NoError(t, s.Delete(t.Context(), late))
	c := w.submit(t, a, "--worker_binary="+given, "--watch=10s")
	marked := func(key string) func() bool {
		return func() bool {
			if c.Ended() {
				t.Fatalf("the watch ended with %d:\n%s", c.Cmd.ProcessState.ExitCode(), rig.Tail(c.Output(t)))
			}
			_, err := s.Head(t.Context(), key+".success")
			return err == nil
		}
	}
	rig.Eventually(t, "the files that were there", time.Minute, marked("datasets/country=de/category=education/date=2026-01-30/raw_0001.json"))
	require.NoError(t, s.Put(t.Context(), late, bytes.NewReader(body), store.PutOptions{}))
	rig.Eventually(t, "the file that came", time.Minute, marked(late))
	id, _ := w.newest(t)
	rig.Eventually(t, "the last batch's end", time.Minute, func() bool { _, state := w.newest(t); return c.Ended() || state == "done" })
	require.NoError(t, c.Cmd.Process.Signal(os.Interrupt))
	assert.Equal(t, 130, c.Wait(t, time.Minute), "%s", rig.Tail(c.Output(t)))
	assert.Regexp(t, "-b00000[2-9]$", id)
	a.mu.Lock()
	defer a.mu.Unlock()
	assert.GreaterOrEqual(t, len(a.jobs), 2)
	rig.Same(t, rig.Objects(t, w.bucket), rig.Objects(t, w.reference))
	rig.OneAtATime(t, w.web.Requests())
}

// Dataflow has a job of that name already: Beam would take it for the new one.
func TestSameName(t *testing.T) {
	w := newWorld(t)
	given, _ := otherWorker(t)
	a := startAPI(t, func([]byte) error { return nil })
	a.other = true
	same := w.submit(t, a, "--worker_binary="+given)
	assert.Equal(t, 1, same.Wait(t, time.Minute))
	assert.Contains(t, same.Output(t), "a job seed-nightly is at work at Dataflow already (job-0), and this run was not submitted")
	_, state := w.newest(t)
	assert.Equal(t, "failed", state)
}

// A program that is not static refuses to start on Dataflow before anything is
// written, and says what its workers need.
func TestNoWorker(t *testing.T) {
	w := newWorld(t)
	a := startAPI(t, func([]byte) error { return errors.New("nothing should be submitted") })
	p := w.submit(t, a)
	assert.Equal(t, 2, p.Wait(t, time.Minute))
	assert.Regexp(t, `^pipeline: --runner=dataflow needs a static worker, and this program is not static: run .CGO_ENABLED=0 .* give --worker_binary=worker\n$`, p.Output(t))
	for o, err := range rig.Open(t, w.bucket).List(t.Context(), "runs/") {
		require.NoError(t, err)
		t.Errorf("it wrote %s", o.Key)
	}
	assert.Empty(t, a.jobs)
}
