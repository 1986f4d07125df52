package launch

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/core/util/hooks"
	fnpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/fnexecution_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"
	"google.golang.org/protobuf/proto"
)

// setupErrors is the hook that makes a failed Setup (a store or a database that
// cannot be opened) end a job at once.
//
// A Go worker connects to the runner's data service when it begins to read.
// Beam's job servers wait three minutes for that (GrpcDataService.java) before
// they look at the worker's answer. A worker whose Setup fails never reads, so
// the hook connects just before that answer is sent.
const setupErrors = "newsfork-setup-errors"

func init() {
	hooks.RegisterHook(setupErrors, func([]string) hooks.Hook { return hooks.Hook{Resp: setupFailed} })
}

var dataConnected sync.Once

func setupFailed(ctx context.Context, req *fnpb.InstructionRequest, resp *fnpb.InstructionResponse) (err error) {
	control := bootArg(os.Args[1:], "control_endpoint") // missing when the worker is in the launcher's process
	bundle := req.GetProcessBundle().GetProcessBundleDescriptorId()
	if bundle == "" || control == "" || !strings.Contains(resp.GetError(), "while executing Up for") {
		return nil
	}
	dataConnected.Do(func() { err = connectData(context.WithoutCancel(ctx), control, bundle) })
	return err
}

// connectData opens the stream over which the runner sends a bundle's elements,
// for as long as the process lives.
func connectData(ctx context.Context, control, bundle string) error {
	cc, err := grpcx.Dial(ctx, control, 10*time.Second)
	if err != nil {
		return fmt.Errorf("connecting to the runner: %w", err)
	}
	defer func() { _ = cc.Close() }() // the call was answered
	d, err := fnpb.NewBeamFnControlClient(cc).GetProcessBundleDescriptor(ctx, &fnpb.GetProcessBundleDescriptorRequest{ProcessBundleDescriptorId: bundle})
	if err != nil {
		return fmt.Errorf("asking the runner for bundle %s: %w", bundle, err)
	}
	for _, t := range d.GetTransforms() {
		if t.GetSpec().GetUrn() != "beam:runner:source:v1" {
			continue
		}
		var port fnpb.RemoteGrpcPort
		if err := proto.Unmarshal(t.GetSpec().GetPayload(), &port); err != nil {
			return fmt.Errorf("reading the source of bundle %s: %w", bundle, err)
		}
		data, err := grpcx.Dial(ctx, port.GetApiServiceDescriptor().GetUrl(), 10*time.Second)
		if err != nil {
			return fmt.Errorf("connecting to the runner's data: %w", err)
		}
		if _, err := fnpb.NewBeamFnDataClient(data).Data(ctx); err != nil {
			return fmt.Errorf("opening the runner's data: %w", err)
		}
		return nil
	}
	return nil
}
