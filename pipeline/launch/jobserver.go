package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/apache/beam/sdks/v2/go/container/tools"
	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime/graphx"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/util/hooks"
	jobpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/jobmanagement_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal/extworker"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal/runnerlib"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"
)

// streamOptions are the options that a job server gets with an unbounded job.
// Beam's own runner sends only the embedded part. With Flink's defaults each
// stage would then delay its elements by ten seconds. The names of the options
// are in FlinkPipelineOptions.java.
//
// There are no checkpoints: they would wait for each long lane, and everything
// that must survive is in the store. A job that Flink restarts begins with the
// open files.
type streamOptions struct {
	runtime.RawOptionsWrapper

	Streaming    bool  `json:"beam:option:streaming:v1"`
	BundleMillis int64 `json:"beam:option:max_bundle_time_mills:v1"`
	Retries      int   `json:"beam:option:number_of_execution_retries:v1"`
	RetryMillis  int64 `json:"beam:option:execution_retry_delay:v1"`
}

// asStream returns the options of a job without an end.
func asStream(raw runtime.RawOptionsWrapper) streamOptions {
	return streamOptions{RawOptionsWrapper: raw, Streaming: true, BundleMillis: 100, Retries: 3, RetryMillis: restartPause.Milliseconds()}
}

// submitStream runs an unbounded graph on a job server until it ends. It does
// what Beam's universal runner does for a bounded graph, with options that this
// runner does not send.
func submitStream(ctx context.Context, p *beam.Pipeline) (err error) {
	edges, _, err := p.Build()
	if err != nil {
		return fmt.Errorf("building the graph: %w", err)
	}
	binary, config := *jobopts.WorkerBinary, jobopts.GetEnvironmentConfig
	switch {
	case jobopts.IsLoopback():
		pool, err := extworker.StartLoopback(ctx, 0)
		if err != nil {
			return fmt.Errorf("starting workers in this process: %w", err)
		}
		defer func() { _ = pool.Stop(ctx) }() // the process ends with them
		config = pool.EnvironmentConfig
		binary = filepath.Join(os.TempDir(), "no-worker") // it is staged, and never started
		if err := os.WriteFile(binary, nil, 0o600); err != nil {
			return err
		}
	case binary == "":
		if binary, err = runnerlib.BuildTempWorkerBinary(ctx, runnerlib.CompileOpts{}); err != nil {
			return fmt.Errorf("building the worker (or give --worker_binary): %w", err)
		}
		defer func() { err = errors.Join(err, os.Remove(binary)) }()
	}
	environment, err := graphx.CreateEnvironment(ctx, jobopts.GetEnvironmentUrn(ctx), config)
	if err != nil {
		return err
	}
	graph, err := graphx.Marshal(edges, &graphx.Options{Environment: environment, PipelineResourceHints: jobopts.GetPipelineResourceHints()})
	if err != nil {
		return fmt.Errorf("encoding the graph: %w", err)
	}
	if err := runnerlib.UpdateGoEnvironmentWorker(binary, graph); err != nil {
		return err
	}

	cc, err := grpcx.Dial(ctx, *jobopts.Endpoint, 10*time.Second)
	if err != nil {
		return fmt.Errorf("connecting to the job server: %w", err)
	}
	defer func() { _ = cc.Close() }() // every call was answered
	client := jobpb.NewJobServiceClient(cc)
	hooks.SerializeHooksToOptions()
	beam.PipelineOptions.LoadOptionsFromFlags(nil)
	name := jobopts.GetJobName()
	options, err := tools.OptionsToProto(asStream(runtime.RawOptionsWrapper{Options: beam.PipelineOptions.Export(), AppName: name,
		Experiments: append(jobopts.GetExperiments(), "beam_fn_api"), RetainDocker: *jobopts.RetainDockerContainers, Parallelism: *jobopts.Parallelism}))
	if err != nil {
		return fmt.Errorf("encoding the job's options: %w", err)
	}
	prepared, err := client.Prepare(ctx, &jobpb.PrepareJobRequest{Pipeline: graph, PipelineOptions: options, JobName: name})
	if err != nil {
		return fmt.Errorf("preparing the job: %w", err)
	}
	token, err := runnerlib.Stage(ctx, prepared.GetPreparationId(), prepared.GetArtifactStagingEndpoint().GetUrl(), binary, prepared.GetStagingSessionToken())
	if err != nil {
		return fmt.Errorf("staging the worker: %w", err)
	}
	job, err := runnerlib.Submit(ctx, client, prepared.GetPreparationId(), token)
	if err != nil {
		return err
	}
	return runnerlib.WaitForCompletion(ctx, client, job)
}
