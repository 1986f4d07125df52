package launch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime/graphx"
	v1pb "github.com/apache/beam/sdks/v2/go/pkg/beam/core/runtime/graphx/v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/util/protox"
	pipepb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/pipeline_v1"
	"google.golang.org/protobuf/proto"
)

// graphReader reads a pipeline as its workers will: each function and each coder is decoded.
type graphReader struct {
	*pipepb.Components
	of map[string]string // the stage that makes each collection
}

// graphStage is one line of a pipeline's table of contents.
type graphStage struct {
	Name  string   `json:"name"`
	From  []string `json:"from,omitempty"` // the stages whose data it reads
	Steps []string `json:"steps"`
}

func (g graphStage) String() string {
	line := g.Name + ": " + strings.Join(g.Steps, ", ")
	if len(g.From) > 0 {
		line += "; reads " + strings.Join(g.From, ", ")
	}
	return line
}

// contents returns the stages of a pipeline that is to be staged. An error says which
// part of the pipeline its workers could not read.
func contents(p *pipepb.Pipeline) (stages []graphStage, err error) {
	r := graphReader{p.GetComponents(), map[string]string{}}
	if n := len(r.GetEnvironments()); n != 1 {
		return nil, fmt.Errorf("the pipeline has %d environments, and its workers have one", n)
	}
	if err := r.collections(); err != nil {
		return nil, err
	}
	for _, id := range p.GetRootTransformIds() {
		stage := r.GetTransforms()[id]
		inputs := map[string]bool{}
		for _, input := range stage.GetInputs() {
			if r.of[input] == "" {
				return nil, fmt.Errorf("stage %s: no stage before it makes collection %s", stage.GetUniqueName(), input)
			}
			inputs[r.of[input]] = true
		}
		g := graphStage{Name: stage.GetUniqueName()}
		for _, before := range stages {
			if inputs[before.Name] {
				g.From = append(g.From, before.Name)
			}
		}
		if g.Steps, err = r.steps(stage); err != nil {
			return nil, fmt.Errorf("stage %s: %w", stage.GetUniqueName(), err)
		}
		stages = append(stages, g)
	}
	return stages, nil
}

// collections decodes the coder of each collection.
func (r graphReader) collections() error {
	for _, id := range slices.Sorted(maps.Keys(r.GetPcollections())) {
		if _, err := graphx.UnmarshalCoders([]string{r.GetPcollections()[id].GetCoderId()}, r.GetCoders()); err != nil {
			return fmt.Errorf("collection %s: decoding its coder: %w", id, err)
		}
	}
	return nil
}

// steps reads the transforms of a stage.
func (r graphReader) steps(stage *pipepb.PTransform) (steps []string, err error) {
	err = r.leaves(stage, func(leaf *pipepb.PTransform) error {
		step, err := step(leaf)
		if err != nil {
			return fmt.Errorf("%s: %w", leaf.GetUniqueName(), err)
		}
		if step != "" {
			steps = append(steps, step)
		}
		for _, id := range leaf.GetOutputs() {
			if r.GetPcollections()[id] == nil {
				return fmt.Errorf("%s makes collection %s, which the pipeline does not have", leaf.GetUniqueName(), id)
			}
			r.of[id] = stage.GetUniqueName()
		}
		return nil
	})
	return steps, err
}

// leaves calls do for each transform below t that has none below it.
func (r graphReader) leaves(t *pipepb.PTransform, do func(*pipepb.PTransform) error) error {
	if len(t.GetSubtransforms()) == 0 {
		return do(t)
	}
	for _, id := range t.GetSubtransforms() {
		sub, ok := r.GetTransforms()[id]
		if !ok {
			return fmt.Errorf("%s has part %s, which the pipeline does not have", t.GetUniqueName(), id)
		}
		if err := r.leaves(sub, do); err != nil {
			return err
		}
	}
	return nil
}

// step returns the name of a transform; "" for a flatten and for what Beam adds around a shuffle.
func step(t *pipepb.PTransform) (string, error) {
	switch urn := t.GetSpec().GetUrn(); urn {
	case graphx.URNImpulse:
		return "impulse", nil
	case graphx.URNGBK:
		return "shuffle", nil
	case graphx.URNWindow:
		return "window", nil
	case graphx.URNFlatten:
		return "", nil
	case graphx.URNParDo:
		var payload pipepb.ParDoPayload
		if err := proto.Unmarshal(t.GetSpec().GetPayload(), &payload); err != nil {
			return "", err
		}
		return function(payload.GetDoFn())
	default:
		return "", fmt.Errorf("a worker does not know transform %q", urn)
	}
}

// function decodes a DoFn and returns the name of its type.
func function(spec *pipepb.FunctionSpec) (string, error) {
	var payload v1pb.TransformPayload
	if err := protox.DecodeBase64(string(spec.GetPayload()), &payload); err != nil {
		return "", err
	}
	if payload.GetUrn() != graphx.URNDoFn {
		return "", nil
	}
	_, fn, _, _, _, err := graphx.DecodeMultiEdge(payload.GetEdge())
	switch {
	case err != nil:
		return "", err
	case fn == nil:
		return "", errors.New("it has no function")
	}
	return fn.Name()[strings.LastIndexByte(fn.Name(), '.')+1:], nil
}
