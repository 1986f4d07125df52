//go:build e2e

package dataflow

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	df "google.golang.org/api/dataflow/v1b3"

	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// secrets are in the launcher's environment and must not appear anywhere else.
var secrets = map[string]string{
	"AWS_ACCESS_KEY_ID":     "AKIAQ7XSECRETID0QQQQ",
	"AWS_SECRET_ACCESS_KEY": "vErY5ecretAccessKey0123456789abcdefQQQQ",
	"AWS_SESSION_TOKEN":     "s3ss1onT0kenQQQQ",
	"PGPASSWORD":            "pgPassw0rdQQQQ",
	"SEED_DB":               "postgres://seed:dbPassw0rdQQQQ@db.example/seed",
}

// environ returns a small environment for the launcher, with all secrets.
func environ(more ...string) []string {
	env := append([]string{"PATH=" + os.Getenv("PATH")}, more...)
	for k, v := range secrets {
		env = append(env, k+"="+v)
	}
	return env
}

// sdkOptions are the options inside a job, as Beam's SDK for Go writes them.
type sdkOptions struct {
	DisplayData []struct {
		Key, Namespace, Type string
		Value                any
	} `json:"display_data"`
	Options struct {
		Experiments                    []string
		PipelineURL                    string `json:"pipelineUrl"`
		PipelineProtoHash              string
		Region                         string
		TempLocation                   string
		DiskProvisionedIops            int64
		DiskProvisionedThroughputMibps int64
	}
	Go struct {
		Options map[string]string
	} `json:"beam:option:go_options:v1"`
}

// strictly decodes JSON and refuses unknown fields and anything after it.
func strictly(t testing.TB, b []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(v), "%s", b)
	require.False(t, d.More(), "more than one document: %s", b)
}

// flags returns flags that differ from Beam's defaults wherever possible.
func flags(store string) []string {
	return []string{"--runner=dataflow", "--project=demo-project", "--region=europe-west1", "--staging_location=gs://staging/at", "--store=" + store,
		"--job_name=seed-nightly", "--num_workers=3", "--worker_machine_type=n2-standard-2", "--sdk_container_image=gcr.io/demo-project/seed:1",
		"--service_account_email=seed@demo-project.iam.gserviceaccount.com", "--no_use_public_ips", `--labels={"team":"crawl"}`}
}

// form is what may differ between two jobs.
type form struct {
	streaming        bool
	workers, threads int64
	most             int64 // workers that Dataflow may start; 0 without autoscaling
	workerSHA256     string
}

// checkJob compares a whole job with the one that flags describe.
func checkJob(t testing.TB, body []byte, f form) (worker, pipeline, pipelineSHA256 string) {
	t.Helper()
	var job df.Job
	strictly(t, body, &job)
	var sdk sdkOptions
	strictly(t, job.Environment.SdkPipelineOptions, &sdk)
	experiments := []string{"beam_fn_api", "use_runner_v2", "use_unified_worker", "use_portable_job_submission"}
	kind := "BATCH"
	if f.streaming {
		kind, experiments = "STREAMING", append(experiments, "enable_streaming_engine", "enable_windmill_service")
	}
	pipeline, pipelineSHA256 = sdk.Options.PipelineURL, sdk.Options.PipelineProtoHash
	staged := regexp.MustCompile(`^(gs://staging/at/go-1-\d+)/model$`).FindStringSubmatch(pipeline)
	require.NotNil(t, staged, "pipeline is staged at %s", pipeline)
	worker = staged[1] + "/worker"
	require.Len(t, job.Environment.WorkerPools, 1)
	require.Len(t, job.Environment.WorkerPools[0].SdkHarnessContainerImages, 1)
	capabilities := job.Environment.WorkerPools[0].SdkHarnessContainerImages[0].Capabilities
	assert.Contains(t, capabilities, "beam:protocol:multi_core_bundle_processing:v1")
	scaling := &df.AutoscalingSettings{Algorithm: "AUTOSCALING_ALGORITHM_NONE"}
	if f.most > 0 {
		scaling = &df.AutoscalingSettings{Algorithm: "AUTOSCALING_ALGORITHM_BASIC", MaxNumWorkers: f.most}
	}
	assert.Equal(t, df.Job{
		ProjectId: "demo-project", Name: "seed-nightly", Type: "JOB_TYPE_" + kind, Labels: map[string]string{"team": "crawl"},
		Environment: &df.Environment{
			DebugOptions: &df.DebugOptions{}, Experiments: experiments, ServiceAccountEmail: "seed@demo-project.iam.gserviceaccount.com",
			TempStoragePrefix: "gs://staging/at/tmp",
			UserAgent:         []byte(`{"name":"Apache Beam SDK for Go","version":"` + core.SdkVersion + `"}`),
			Version:           []byte(`{"job_type":"FNAPI_` + kind + `","major":"6"}`),
			WorkerPools: []*df.WorkerPool{{
				Kind: "harness", NumWorkers: f.workers, NumThreadsPerWorker: f.threads, MachineType: "n2-standard-2", IpConfiguration: "WORKER_IP_PRIVATE",
				AutoscalingSettings:         scaling,
				WorkerHarnessContainerImage: "gcr.io/demo-project/seed:1",
				Packages:                    []*df.Package{{Name: "worker", Location: worker, Sha256: f.workerSHA256}},
				SdkHarnessContainerImages:   []*df.SdkHarnessContainerImage{{ContainerImage: "gcr.io/demo-project/seed:1", EnvironmentId: "go", Capabilities: capabilities}},
			}},
		},
	}, compact(t, job))
	assert.Equal(t, "europe-west1", sdk.Options.Region)
	assert.Equal(t, experiments, sdk.Options.Experiments)
	// The workers get none of the launcher's flags.
	assert.Equal(t, map[string]string{"experiments": strings.Join(experiments, ","), "hooks": `{"default_remote_logging":null}`, "hookOrder": `["default_remote_logging"]`}, sdk.Go.Options)
	discreet(t, body)
	return worker, pipeline, pipelineSHA256
}

// compact returns the job without the parts that checkJob checks separately, and
// without spaces in the parts that the API keeps as raw JSON.
func compact(t testing.TB, job df.Job) df.Job {
	t.Helper()
	e := *job.Environment
	e.SdkPipelineOptions = nil
	for _, raw := range []*[]byte{(*[]byte)(&e.UserAgent), (*[]byte)(&e.Version)} {
		var b bytes.Buffer
		require.NoError(t, json.Compact(&b, *raw))
		*raw = b.Bytes()
	}
	job.Environment = &e
	return job
}

var encoded = regexp.MustCompile(`[A-Za-z0-9+/]{24,}={0,2}`)

// unwrapped returns text followed by the decoded form of all Base64 in it, at
// whatever byte that begins: DoFns are sent as Base64.
func unwrapped(text []byte) []byte {
	out := slices.Clone(text)
	for _, run := range encoded.FindAll(text, -1) {
		for from := range 4 {
			part := bytes.TrimRight(run[from:], "=")
			if len(part)%4 == 1 {
				part = part[:len(part)-1]
			}
			if b, err := base64.RawStdEncoding.DecodeString(string(part)); err == nil {
				out = append(append(out, '\n'), unwrapped(b)...)
			}
		}
	}
	return out
}

// discreet checks that text has no secret and no path of this machine.
func discreet(t testing.TB, text []byte) {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	all := unwrapped(text)
	for _, unwanted := range []string{"QQQQ", "PRIVATE KEY", "e2etest", dir, os.TempDir() + "/", home + "/", filepath.Dir(rig.Program)} {
		at := bytes.Index(all, []byte(unwanted))
		require.Negativef(t, at, "%q is in it: %q", unwanted, all[max(0, at-100):min(len(all), max(0, at)+100)])
	}
}
