//go:build e2e

package dataflow

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	fnpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/fnexecution_v1"
	pipepb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/pipeline_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/util/grpcx"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/newsfork/seed-engine/io/web/webtest"
	"github.com/newsfork/seed-engine/pipeline/e2etest/rig"
)

// workers are several worker processes that prism takes for one. Prism has one worker
// for each environment of a pipeline, and with two environments it panics: it keeps one
// table of the short ids of metrics for a job, where each worker numbers its own metrics.
//
// To prism this is the worker of an external environment. To the processes it is the
// runner: it sends each bundle to the process that has the fewest, and all that belongs to
// the bundle after it. Ids that are unique for one process only get its number in front.
type workers struct {
	fnpb.UnimplementedBeamFnExternalWorkerPoolServer
	fnpb.UnimplementedBeamFnControlServer
	fnpb.UnimplementedBeamFnDataServer
	fnpb.UnimplementedBeamFnStateServer
	fnpb.UnimplementedBeamFnLoggingServer
	fnpb.UnimplementedProvisionServiceServer

	command  string
	endpoint *pipepb.ApiServiceDescriptor // for prism, and for the processes
	process  []*process

	runner struct { // prism
		ctx     context.Context
		end     context.CancelFunc
		sending sync.Mutex
		conn    *grpc.ClientConn
		control grpc.BidiStreamingClient[fnpb.InstructionResponse, fnpb.InstructionRequest]
		data    grpc.BidiStreamingClient[fnpb.Elements, fnpb.Elements]
		state   grpc.BidiStreamingClient[fnpb.StateRequest, fnpb.StateResponse]
	}

	mu      sync.Mutex
	bundles map[string]int          // the process of each bundle
	infos   map[string]*infoRequest // about metrics, that processes have not answered yet
	errs    []error
}

// process is one worker process: what it is to get, and the bundles it has.
type process struct {
	cmd       *exec.Cmd
	control   chan *fnpb.InstructionRequest
	data      chan *fnpb.Elements
	state     chan *fnpb.StateResponse
	now, ever int // bundles
}

type infoRequest struct {
	missing int
	all     map[string]*pipepb.MonitoringInfo
}

// startWorkers serves n processes of a command until the context ends.
func startWorkers(ctx context.Context, command string, n int) (*workers, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &workers{command: command, endpoint: &pipepb.ApiServiceDescriptor{Url: l.Addr().String()}, bundles: map[string]int{}, infos: map[string]*infoRequest{}}
	for range n {
		const enough = 10_000 // nothing waits: a process that is busy must not keep another from its data
		m.process = append(m.process, &process{control: make(chan *fnpb.InstructionRequest, enough), data: make(chan *fnpb.Elements, enough), state: make(chan *fnpb.StateResponse, enough)})
	}
	g := grpc.NewServer(grpc.MaxRecvMsgSize(1 << 30))
	fnpb.RegisterBeamFnExternalWorkerPoolServer(g, m)
	fnpb.RegisterBeamFnControlServer(g, m)
	fnpb.RegisterBeamFnDataServer(g, m)
	fnpb.RegisterBeamFnStateServer(g, m)
	fnpb.RegisterBeamFnLoggingServer(g, m)
	fnpb.RegisterProvisionServiceServer(g, m)
	go func() { _ = g.Serve(l) }() // until Stop
	context.AfterFunc(ctx, func() {
		m.stop()
		g.Stop()
	})
	return m, nil
}

// environment is the one of a pipeline that these workers run.
func (m *workers) environment() (urn string, payload []byte, err error) {
	payload, err = proto.Marshal(&pipepb.ExternalPayload{Endpoint: m.endpoint})
	return "beam:env:external:v1", payload, err
}

// StartWorker starts the processes, as prism's one worker.
func (m *workers) StartWorker(_ context.Context, r *fnpb.StartWorkerRequest) (*fnpb.StartWorkerResponse, error) {
	conn, err := grpc.NewClient(r.GetControlEndpoint().GetUrl(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		return nil, err
	}
	m.runner.conn = conn
	m.runner.ctx, m.runner.end = context.WithCancel(grpcx.WriteWorkerID(context.Background(), r.GetWorkerId()))
	if m.runner.control, err = fnpb.NewBeamFnControlClient(conn).Control(m.runner.ctx); err != nil {
		return nil, err
	}
	if m.runner.data, err = fnpb.NewBeamFnDataClient(conn).Data(m.runner.ctx); err != nil {
		return nil, err
	}
	if m.runner.state, err = fnpb.NewBeamFnStateClient(conn).State(m.runner.ctx); err != nil {
		return nil, err
	}
	go receive(m.runner.control, m.instruct)
	go receive(m.runner.data, m.elements)
	go receive(m.runner.state, func(s *fnpb.StateResponse) {
		var i int
		i, s.Id = m.owner(s.GetId())
		m.process[i].state <- s
	})
	for i, p := range m.process {
		p.cmd = exec.Command(m.command, fmt.Sprintf("--id=%d", i), "--provision_endpoint="+m.endpoint.GetUrl())
		if err := p.cmd.Start(); err != nil {
			return nil, err
		}
	}
	return &fnpb.StartWorkerResponse{}, nil
}

// StopWorker ends the processes, when prism has no more work.
func (m *workers) StopWorker(context.Context, *fnpb.StopWorkerRequest) (*fnpb.StopWorkerResponse, error) {
	m.stop()
	return &fnpb.StopWorkerResponse{}, nil
}

func (m *workers) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.process {
		if p.cmd != nil && p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill() // it may have ended
			_ = p.cmd.Wait()
		}
	}
	if m.runner.end != nil {
		m.runner.end()
		_ = m.runner.conn.Close()
	}
}

// err is what went wrong here; prism does not learn it.
func (m *workers) err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return errors.Join(m.errs...)
}

func (m *workers) failed(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.errs = append(m.errs, err)
}

// receive calls got for each message of a stream.
func receive[T any](s interface{ Recv() (T, error) }, got func(T)) {
	for {
		v, err := s.Recv()
		if err != nil { // the other side has ended, and the job's end says whether it should have
			return
		}
		got(v)
	}
}

// send sends what a process is to get until the stream ends.
func send[T any](ctx context.Context, s interface{ Send(T) error }, from chan T) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case v := <-from:
			if err := s.Send(v); err != nil {
				return err
			}
		}
	}
}

// of returns the process of a bundle; a new bundle goes to the one with the fewest.
func (m *workers) of(bundle string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, known := m.bundles[bundle]
	if !known {
		for j, p := range m.process {
			if o := m.process[i]; p.now < o.now || p.now == o.now && p.ever < o.ever {
				i = j
			}
		}
		m.bundles[bundle] = i
		m.process[i].now++
		m.process[i].ever++
	}
	return i
}

// ids of a process get its number in front when prism sees them.

func named(i int, id string) string { return fmt.Sprintf("%d.%s", i, id) }

func (m *workers) owner(id string) (i int, own string) {
	n, own, _ := strings.Cut(id, ".")
	i, err := strconv.Atoi(n)
	if err != nil {
		m.failed(fmt.Errorf("prism names an id that it did not get: %s", id))
	}
	return i, own
}

func renamed[V any](i int, ids map[string]V) map[string]V {
	out := make(map[string]V, len(ids))
	for id, v := range ids {
		out[named(i, id)] = v
	}
	return out
}

// instruct passes an instruction of prism's on.
func (m *workers) instruct(r *fnpb.InstructionRequest) {
	bundle := r.GetInstructionId()
	switch about := r.GetRequest().(type) {
	case *fnpb.InstructionRequest_ProcessBundle:
	case *fnpb.InstructionRequest_ProcessBundleProgress:
		bundle = about.ProcessBundleProgress.GetInstructionId()
	case *fnpb.InstructionRequest_ProcessBundleSplit:
		bundle = about.ProcessBundleSplit.GetInstructionId()
	case *fnpb.InstructionRequest_FinalizeBundle:
		bundle = about.FinalizeBundle.GetInstructionId()
	case *fnpb.InstructionRequest_MonitoringInfos:
		ids := map[int][]string{}
		for _, id := range about.MonitoringInfos.GetMonitoringInfoId() {
			i, own := m.owner(id)
			ids[i] = append(ids[i], own)
		}
		m.mu.Lock()
		m.infos[r.GetInstructionId()] = &infoRequest{len(ids), map[string]*pipepb.MonitoringInfo{}}
		m.mu.Unlock()
		for i, own := range ids {
			m.process[i].control <- &fnpb.InstructionRequest{InstructionId: r.GetInstructionId(), Request: &fnpb.InstructionRequest_MonitoringInfos{MonitoringInfos: &fnpb.MonitoringInfosMetadataRequest{MonitoringInfoId: own}}}
		}
		return
	default:
		m.failed(fmt.Errorf("prism sends an instruction that nothing here passes on: %T", about))
	}
	m.process[m.of(bundle)].control <- r
}

// answer passes a process's answer on. It reports whether it is complete.
func (m *workers) answer(i int, r *fnpb.InstructionResponse) bool {
	switch about := r.GetResponse().(type) {
	case *fnpb.InstructionResponse_ProcessBundle:
		about.ProcessBundle.MonitoringData = renamed(i, about.ProcessBundle.GetMonitoringData())
	case *fnpb.InstructionResponse_ProcessBundleProgress:
		about.ProcessBundleProgress.MonitoringData = renamed(i, about.ProcessBundleProgress.GetMonitoringData())
	case *fnpb.InstructionResponse_MonitoringInfos:
		m.mu.Lock()
		defer m.mu.Unlock()
		asked := m.infos[r.GetInstructionId()]
		for id, info := range about.MonitoringInfos.GetMonitoringInfo() {
			asked.all[named(i, id)] = info
		}
		asked.missing--
		about.MonitoringInfos.MonitoringInfo = asked.all
		return asked.missing == 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if of, bundle := m.bundles[r.GetInstructionId()]; bundle {
		m.process[of].now--
	}
	return true
}

// elements passes data of prism's on.
func (m *workers) elements(e *fnpb.Elements) {
	of := map[int]*fnpb.Elements{}
	to := func(bundle string) *fnpb.Elements {
		i := m.of(bundle)
		if of[i] == nil {
			of[i] = &fnpb.Elements{}
		}
		return of[i]
	}
	for _, d := range e.GetData() {
		o := to(d.GetInstructionId())
		o.Data = append(o.Data, d)
	}
	for _, t := range e.GetTimers() {
		o := to(t.GetInstructionId())
		o.Timers = append(o.Timers, t)
	}
	for i, e := range of {
		m.process[i].data <- e
	}
}

// from returns the process that calls.
func (m *workers) from(ctx context.Context) (int, error) {
	id, err := grpcx.ReadWorkerID(ctx)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(id)
}

func (m *workers) Control(s fnpb.BeamFnControl_ControlServer) error {
	i, err := m.from(s.Context())
	if err != nil {
		return err
	}
	go receive(s, func(r *fnpb.InstructionResponse) {
		if m.answer(i, r) {
			m.runner.sending.Lock()
			defer m.runner.sending.Unlock()
			_ = m.runner.control.Send(r) // fails when the job has ended
		}
	})
	return send(s.Context(), s, m.process[i].control)
}

func (m *workers) Data(s fnpb.BeamFnData_DataServer) error {
	i, err := m.from(s.Context())
	if err != nil {
		return err
	}
	go receive(s, func(e *fnpb.Elements) {
		m.runner.sending.Lock()
		defer m.runner.sending.Unlock()
		_ = m.runner.data.Send(e)
	})
	return send(s.Context(), s, m.process[i].data)
}

func (m *workers) State(s fnpb.BeamFnState_StateServer) error {
	i, err := m.from(s.Context())
	if err != nil {
		return err
	}
	go receive(s, func(r *fnpb.StateRequest) {
		r.Id = named(i, r.GetId())
		m.runner.sending.Lock()
		defer m.runner.sending.Unlock()
		_ = m.runner.state.Send(r)
	})
	return send(s.Context(), s, m.process[i].state)
}

// Logging takes lines and drops them: the workers keep their log in the store.
func (m *workers) Logging(s fnpb.BeamFnLogging_LoggingServer) error {
	receive(s, func(*fnpb.LogEntry_List) {})
	return nil
}

func (m *workers) GetProvisionInfo(_ context.Context, r *fnpb.GetProvisionInfoRequest) (*fnpb.GetProvisionInfoResponse, error) {
	p, err := fnpb.NewProvisionServiceClient(m.runner.conn).GetProvisionInfo(m.runner.ctx, r)
	if err == nil {
		p.Info.ControlEndpoint, p.Info.LoggingEndpoint = m.endpoint, m.endpoint
	}
	return p, err
}

func (m *workers) GetProcessBundleDescriptor(_ context.Context, r *fnpb.GetProcessBundleDescriptorRequest) (*fnpb.ProcessBundleDescriptor, error) {
	d, err := fnpb.NewBeamFnControlClient(m.runner.conn).GetProcessBundleDescriptor(m.runner.ctx, r)
	if err != nil {
		return nil, err
	}
	if d.GetStateApiServiceDescriptor() != nil {
		d.StateApiServiceDescriptor = m.endpoint
	}
	if d.GetTimerApiServiceDescriptor() != nil {
		d.TimerApiServiceDescriptor = m.endpoint
	}
	for _, t := range d.GetTransforms() {
		if urn := t.GetSpec().GetUrn(); urn != "beam:runner:source:v1" && urn != "beam:runner:sink:v1" {
			continue
		}
		var port fnpb.RemoteGrpcPort
		if err := proto.Unmarshal(t.GetSpec().GetPayload(), &port); err != nil {
			return nil, err
		}
		port.ApiServiceDescriptor = m.endpoint
		if t.Spec.Payload, err = proto.Marshal(&port); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Two worker processes have lanes of the staged pipeline at work at the same time. They
// leave, packed, what a local run leaves, and together keep --rate and --concurrency.
func TestTwoWorkers(t *testing.T) {
	const rate, atOnce, slots = 15, 4, 4
	w := worldOf(t, 120, 200*time.Millisecond) // more than twenty seconds of work: they know of each other after ten
	given, _ := otherWorker(t)
	a := startAPI(t, runStagedOn(t, 2, 2*time.Minute))
	c := w.submit(t, a, "--worker_binary="+given, "--num_workers=2", "--number_of_worker_harness_threads=2", "--lanes=8", "--layout=packed",
		fmt.Sprintf("--rate=%d", rate), fmt.Sprintf("--concurrency=%d", atOnce), "--log-level=debug")
	require.Zero(t, c.Wait(t, 2*time.Minute), "%s", rig.Tail(c.Output(t)))
	got := rig.LastReport(t, w.bucket)
	assert.Equal(t, "done", got.State)
	rig.Materialize(t, w.bucket)
	rig.Same(t, rig.Objects(t, w.bucket), rig.Objects(t, w.reference))
	assert.Equal(t, rig.LastReport(t, w.reference).Counted(), got.Counted())
	log := w.web.Requests()
	rig.OneAtATime(t, log)
	assert.EqualValues(t, len(log), got.HTTP.Requests)

	both, logs := time.Time{}, 0 // both is when each of them knows of the other
	s := rig.Open(t, w.bucket)
	for o, err := range s.List(t.Context(), "runs/"+got.RunID+"/log-") {
		require.NoError(t, err)
		logs++
		knows, visits := logOf(t, rig.Get(t, s, o.Key), atOnce, rate)
		if knows.After(both) {
			both = knows
		}
		assert.Greater(t, visits, 10, "visits of %s", o.Key)
	}
	assert.Equal(t, 2, logs, "worker processes")
	// Until the first knows of the second, that one uses the floor besides.
	inTwoSeconds, inFlight := most(log)
	assert.LessOrEqual(t, inTwoSeconds, 2*(rate+rate/slots+1)+4)
	assert.LessOrEqual(t, inFlight, atOnce+1)
	after := slices.DeleteFunc(log, func(r webtest.LoggedRequest) bool { return r.Start.Before(both) })
	assert.Greater(t, len(after), 2*rate, "requests when they know of each other")
	inTwoSeconds, inFlight = most(after)
	assert.LessOrEqual(t, inTwoSeconds, 2*rate+4)
	assert.LessOrEqual(t, inFlight, atOnce)
}

// logOf reads a worker's log: since when it has a part of the limits only, and how many
// domains it visited.
func logOf(t *testing.T, text []byte, atOnce int, rate float64) (knows time.Time, visits int) {
	t.Helper()
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var line struct {
			Time        time.Time
			Event       string
			Processes   int
			Concurrency int
			Rate        float64
		}
		require.NoError(t, d.Decode(&line))
		switch {
		case line.Event == "domain_collector_start":
			visits++
		case line.Event == "limits_shared" && line.Processes == 2 && knows.IsZero():
			knows = line.Time
			assert.Less(t, line.Concurrency, atOnce)
			assert.Less(t, line.Rate, rate)
		}
	}
	assert.False(t, knows.IsZero(), "it learns of the other process")
	return knows, visits
}

// most returns how many requests began within two seconds, and how many were in flight at once.
func most(log []webtest.LoggedRequest) (inTwoSeconds, inFlight int) {
	for _, at := range log {
		begun, now := 0, 0
		for _, r := range log {
			if !r.Start.Before(at.Start) && r.Start.Sub(at.Start) < 2*time.Second {
				begun++
			}
			if !r.Start.After(at.Start) && r.End.After(at.Start) {
				now++
			}
		}
		inTwoSeconds, inFlight = max(inTwoSeconds, begun), max(inFlight, now)
	}
	return inTwoSeconds, inFlight
}
