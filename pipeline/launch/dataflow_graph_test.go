package launch

import (
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime/graphx"
	pipepb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/pipeline_v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/transforms/lane"
	"github.com/newsfork/seed-engine/transforms/seed"
)

// seedModel is the seed job's pipeline as it would be staged.
func seedModel(t *testing.T) *pipepb.Pipeline {
	t.Helper()
	return modelOf(t, seed.Config{Lane: lane.Config{Job: seed.Job, RunID: "r1", Store: "gs://raw", Slots: 1}, Lanes: 3})
}

func modelOf(t *testing.T, cfg seed.Config) *pipepb.Pipeline {
	t.Helper()
	if !beam.Initialized() {
		beam.Init()
	}
	p, scope := beam.NewPipelineWithRoot()
	pipeline.Seed(scope, cfg)
	edges, _, err := p.Build()
	require.NoError(t, err)
	model, err := graphx.Marshal(edges, &graphx.Options{Environment: &pipepb.Environment{Urn: "beam:env:docker:v1"}})
	require.NoError(t, err)
	return model
}

// The stages are in the order of their data.
func TestContents(t *testing.T) {
	stages, err := contents(seedModel(t))
	require.NoError(t, err)
	require.Equal(t, []graphStage{
		{Name: "seed.List", Steps: []string{"impulse", "listFn"}},
		{Name: "seed.Extract", From: []string{"seed.List"}, Steps: []string{"shuffle", "extractFn", "withMetadata", "shuffle", "totalsFn"}},
		{Name: "seed.Visit", From: []string{"seed.Extract"}, Steps: []string{"shuffle", "visitFn"}},
		{Name: "seed.Complete", From: []string{"seed.Extract", "seed.Visit"}, Steps: []string{"addFixedKeyFn", "shuffle", "completeFn", "shuffle", "outageFn"}},
		{Name: "lane.Total", From: []string{"seed.List", "seed.Extract", "seed.Visit", "seed.Complete"}, Steps: []string{"addFixedKeyFn", "addFixedKeyFn", "addFixedKeyFn", "addFixedKeyFn", "shuffle", "totalFn"}},
	}, stages)

	var cfg seed.Config
	cfg.Lanes, cfg.Lane.Polite.Servers.Delay = 3, time.Second
	stages, err = contents(modelOf(t, cfg))
	require.NoError(t, err)
	require.Equal(t, []graphStage{
		{Name: "seed.Resolve", From: []string{"seed.Extract"}, Steps: []string{"shuffle", "resolveFn"}},
		{Name: "seed.Visit", From: []string{"seed.Resolve"}, Steps: []string{"shuffle", "visitFn"}},
	}, stages[2:4])
	cfg.Lanes = 1
	stages, err = contents(modelOf(t, cfg))
	require.NoError(t, err)
	require.Equal(t, "seed.Visit", stages[2].Name, "one lane has all servers")
}

// A pipeline that its workers could not read is refused, with the place.
func TestUnreadableGraph(t *testing.T) {
	named := func(p *pipepb.Pipeline, name string) *pipepb.PTransform {
		for _, transform := range p.Components.Transforms {
			if transform.UniqueName == name {
				return transform
			}
		}
		t.Fatalf("no transform %s", name)
		return nil
	}
	for want, spoil := range map[string]func(*pipepb.Pipeline){
		"2 environments": func(p *pipepb.Pipeline) { p.Components.Environments["other"] = &pipepb.Environment{} },
		"collection n.*decoding its coder": func(p *pipepb.Pipeline) {
			for _, c := range p.Components.Coders {
				if c.Spec.Urn == "beam:go:coder:custom:v1" {
					c.Spec.Payload = c.Spec.Payload[:len(c.Spec.Payload)/2]
				}
			}
		},
		"stage seed.Visit: seed.Visit/seed.visitFn: .*base64": func(p *pipepb.Pipeline) {
			visit := named(p, "seed.Visit/seed.visitFn")
			var payload pipepb.ParDoPayload
			require.NoError(t, proto.Unmarshal(visit.Spec.Payload, &payload))
			payload.DoFn.Payload = payload.DoFn.Payload[1:]
			var err error
			visit.Spec.Payload, err = proto.Marshal(&payload)
			require.NoError(t, err)
		},
		`stage seed.Visit: seed.Visit/CoGBK: a worker does not know transform "beam:transform:unheard_of:v1"`: func(p *pipepb.Pipeline) {
			named(p, "seed.Visit/CoGBK").Spec.Urn = "beam:transform:unheard_of:v1"
		},
		"stage seed.Extract: no stage before it makes collection": func(p *pipepb.Pipeline) {
			p.RootTransformIds = p.RootTransformIds[1:]
		},
		"stage seed.Visit: seed.Visit has part gone, which the pipeline does not have": func(p *pipepb.Pipeline) {
			visit := named(p, "seed.Visit")
			visit.Subtransforms = append(visit.Subtransforms, "gone")
		},
		"stage seed.Visit: seed.Visit/CoGBK makes collection gone, which the pipeline does not have": func(p *pipepb.Pipeline) {
			named(p, "seed.Visit/CoGBK").Outputs["more"] = "gone"
		},
	} {
		t.Run(want, func(t *testing.T) {
			p := seedModel(t)
			spoil(p)
			stages, err := contents(p)
			require.Regexp(t, want, err)
			require.Nil(t, stages)
		})
	}
}
