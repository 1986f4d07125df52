// Package traces sends OpenTelemetry traces of runs, lanes, visits and requests to the
// collector that OTEL_EXPORTER_OTLP_ENDPOINT names. Without that variable its functions
// do nothing.
//
// A run and its lanes are one trace, whose identifier follows from the run's: so workers
// on other machines add to it without being told. A visit is a trace of its own with a
// link to its lane, because no reader of traces shows one of a million visits. Only a
// share of the visits is recorded, each with all its requests. No promise: see docs/library.md.
package traces

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/newsfork/seed-engine/io/untrusted"
)

const (
	// defaultShare is the share of the visits that is recorded where
	// OTEL_TRACES_SAMPLER_ARG does not say another.
	defaultShare = 0.01
	// sendEvery bounds what is lost when a runner kills a worker.
	sendEvery = time.Second
	// sendWithin is how long the end of the program waits for a collector.
	sendWithin = 3 * time.Second
	maxText    = 500 // bytes of an error or a path
)

// tracer is nil while nothing is recorded.
var tracer atomic.Pointer[trace.Tracer]

// Start begins to record, if OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set. The other variables of OTLP over HTTP
// (headers, certificates, timeout) count too, see
// https://opentelemetry.io/docs/specs/otel/protocol/exporter/. end sends what is left.
// It fails where a variable cannot be read; a collector that does not answer is no error
// here, but a line in the log.
func Start(ctx context.Context, version string) (end func(), err error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return func() {}, nil
	}
	share := defaultShare
	if v := os.Getenv("OTEL_TRACES_SAMPLER_ARG"); v != "" {
		if share, err = strconv.ParseFloat(v, 64); err != nil || share < 0 || share > 1 {
			return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG=%q: write the share of visits to trace, from 0 to 1, such as 0.01", v)
		}
	}
	if v := os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"); v != "" && v != "http/protobuf" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL=%q: only http/protobuf is supported (a collector takes it at port 4318)", v)
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the variables of OpenTelemetry: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "seed-engine"), attribute.String("service.version", version)),
		resource.WithProcessPID(), resource.WithHost(), resource.WithFromEnv()) // what the environment says counts more
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, errors.Join(fmt.Errorf("reading OTEL_RESOURCE_ATTRIBUTES: %w", err), exporter.Shutdown(ctx))
	}
	p := sdk.NewTracerProvider(sdk.WithResource(about), sdk.WithSampler(sampler{sdk.TraceIDRatioBased(share)}), sdk.WithIDGenerator(ids{}),
		sdk.WithBatcher(exporter, sdk.WithBatchTimeout(sendEvery)))
	t := p.Tracer("github.com/newsfork/seed-engine")
	tracer.Store(&t)
	return func() {
		tracer.Store(nil)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendWithin)
		defer cancel()
		_ = p.Shutdown(ctx) // the library has logged what could not be sent
	}, nil
}

// ID is the identifier of a run's trace, 32 hexadecimal digits; "" while nothing is recorded.
func ID(runID string) string {
	if tracer.Load() == nil {
		return ""
	}
	return ofRun(runID).TraceID().String()
}

// Span is a part of a trace. The zero value is one that is not recorded.
type Span struct{ span trace.Span }

// End ends the span. failed says how what it covers failed, "" if it did not.
func (s Span) End(failed string) {
	if s.span == nil {
		return
	}
	if failed != "" {
		s.span.SetStatus(codes.Error, untrusted.Line(failed, maxText))
	}
	s.span.End()
}

// Source says what a visit is of: a host, a publisher, a site.
func (s Span) Source(name string) {
	s.set(attribute.String("seed.source", untrusted.Line(name, maxText)))
}

// Answer says what a request was answered: 0 stands for no answer.
func (s Span) Answer(status int, bytes int64) {
	s.set(attribute.Int("http.response.status_code", status), attribute.Int64("http.response.body.size", bytes))
}

func (s Span) set(a ...attribute.KeyValue) {
	if s.span != nil {
		s.span.SetAttributes(a...)
	}
}

// Run begins the span of a run in the process that launches it.
func Run(ctx context.Context, runID, job, runner string) Span {
	return start(context.WithValue(ctx, runKey{}, runID), "run", trace.SpanKindInternal,
		attribute.String("seed.run_id", runID), attribute.String("seed.job", job), attribute.String("seed.runner", runner))
}

// Lane begins the span of a lane. With the context that it returns Visit begins those of
// its visits.
func Lane(ctx context.Context, runID, job string, number, hosts int) (context.Context, Span) {
	s := start(trace.ContextWithRemoteSpanContext(ctx, ofRun(runID)), "lane", trace.SpanKindInternal,
		attribute.String("seed.run_id", runID), attribute.String("seed.job", job), attribute.Int("seed.lane", number), attribute.Int("seed.hosts", hosts))
	if s.span == nil {
		return ctx, s
	}
	return trace.ContextWithSpan(ctx, s.span), s
}

// Visit begins the span of a visit, if this visit is recorded. With the context that it
// returns Request begins those of its requests.
func Visit(ctx context.Context) (context.Context, Span) {
	t := tracer.Load()
	if t == nil {
		return ctx, Span{}
	}
	ctx, span := (*t).Start(ctx, visit, trace.WithNewRoot(), trace.WithLinks(trace.LinkFromContext(ctx)))
	if !span.IsRecording() {
		return ctx, Span{}
	}
	return ctx, Span{span}
}

// Of returns the span of the visit that ctx belongs to.
func Of(ctx context.Context) Span {
	if tracer.Load() == nil {
		return Span{}
	}
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		return Span{span}
	}
	return Span{}
}

// Request begins the span of a request, if the visit that sends it is recorded. The
// query of a URL is left out: it may have a secret.
func Request(ctx context.Context, method string, u *url.URL) Span {
	if Of(ctx).span == nil {
		return Span{}
	}
	return start(ctx, method, trace.SpanKindClient, attribute.String("http.request.method", method), attribute.String("server.address", u.Hostname()),
		attribute.String("url.scheme", u.Scheme), attribute.String("url.path", untrusted.Line(u.EscapedPath(), maxText)))
}

func start(ctx context.Context, name string, kind trace.SpanKind, a ...attribute.KeyValue) Span {
	t := tracer.Load()
	if t == nil {
		return Span{}
	}
	_, span := (*t).Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(a...))
	return Span{span}
}

type runKey struct{}

// ofRun is the span of a run, wherever it is asked for.
func ofRun(runID string) trace.SpanContext {
	sum := sha256.Sum256([]byte(runID))
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(sum[:16]), SpanID: trace.SpanID(sum[16:24]), TraceFlags: trace.FlagsSampled, Remote: true})
}

// ids gives a run's span the identifiers of ofRun, and all others random ones.
type ids struct{}

func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if id, ok := ctx.Value(runKey{}).(string); ok {
		run := ofRun(id)
		return run.TraceID(), run.SpanID()
	}
	var b [24]byte
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return trace.TraceID(b[:16]), trace.SpanID(b[16:])
}

func (i ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, id := i.NewIDs(ctx)
	return id
}

const visit = "visit"

// sampler records a share of the visits with their requests, and all runs and lanes.
type sampler struct{ visits sdk.Sampler }

func (s sampler) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	if p.Name == visit {
		return s.visits.ShouldSample(p)
	}
	return sdk.AlwaysSample().ShouldSample(p)
}

func (sampler) Description() string { return "a share of the visits" }
