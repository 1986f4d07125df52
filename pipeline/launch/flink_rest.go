package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/newsfork/seed-engine/pipeline/usage"
)

// buffersPerSlot are the network buffers that a task slot needs: a batch exchange
// sorts its data in at least 512 of them (taskmanager.network.sort-shuffle.min-buffers),
// and a slot may read and write several at once. 1,024 a slot were too few for the seed
// job, 3,072 enough.
const buffersPerSlot = 3 * 512

// maxFlinkAnswer bounds one answer of a JobManager, in bytes.
const maxFlinkAnswer = 4 << 20

// flinkSlots are the task slots of a cluster.
type flinkSlots struct {
	Total int `json:"slots-total"`
	Free  int `json:"slots-available"`
}

// flinkManager is a TaskManager.
type flinkManager struct {
	ID      string `json:"id"`
	Slots   int    `json:"slotsNumber"`
	Metrics struct {
		Buffers int `json:"nettyShuffleMemorySegmentsTotal"`
	} `json:"metrics"`
}

// checkFlinkREST refuses an address that could not be a JobManager's.
func (o *Options) checkFlinkREST() error {
	switch {
	case o.FlinkREST == "":
		return nil
	case o.Runner != "flink":
		return usage.Errorf("--flink-rest=%s is for --runner=flink; leave it out", o.FlinkREST)
	case !HostPort(o.FlinkREST):
		return usage.Errorf("--flink-rest=%s: write host:port, such as localhost:8081", o.FlinkREST)
	}
	return nil
}

// lookAtFlink warns before a run of what would keep it from starting: too few free task
// slots, or too few network buffers. Both may change at any time, so the run begins in
// any case.
func (o *Options) lookAtFlink(ctx context.Context, log *slog.Logger) error {
	if o.FlinkREST == "" {
		return nil
	}
	slots, err := o.flinkSlots(ctx)
	if err != nil {
		return err
	}
	if slots.Free < o.Slots() {
		log.Warn("few_free_slots", "free", slots.Free, "total", slots.Total, "parallelism", o.Slots(), "advice",
			"Flink waits five minutes for free task slots (slot.request.timeout) and then fails the job: lower --parallelism, or add TaskManagers")
	}
	var all struct {
		Managers []flinkManager `json:"taskmanagers"`
	}
	if err := o.askFlink(ctx, "/taskmanagers", &all); err != nil {
		return err
	}
	for _, m := range all.Managers[:min(len(all.Managers), 3)] { // those of a cluster are alike
		if err := o.askFlink(ctx, "/taskmanagers/"+url.PathEscape(m.ID), &m); err != nil {
			return err
		}
		if used := min(m.Slots, o.Slots()); o.Slots() > 1 && m.Metrics.Buffers > 0 && m.Metrics.Buffers < used*buffersPerSlot {
			log.Warn("few_network_buffers", "taskmanager", m.ID, "buffers", m.Metrics.Buffers, "wanted", used*buffersPerSlot, "advice",
				"the job may fail with \"Insufficient number of network buffers\": raise taskmanager.memory.network.min and .max, or lower --parallelism")
			break
		}
	}
	return nil
}

func (o *Options) flinkSlots(ctx context.Context) (s flinkSlots, err error) {
	return s, o.askFlink(ctx, "/overview", &s)
}

// askFlink makes one request of the JobManager's REST API.
func (o *Options) askFlink(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.FlinkREST+path, nil)
	if err != nil {
		return usage.Errorf("--flink-rest=%s: %w", o.FlinkREST, err)
	}
	wrong := func(err error) error {
		return fmt.Errorf("--flink-rest=%s: no JobManager of Flink answers there; start it, correct the address, or leave it out: %w", o.FlinkREST, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return wrong(err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	if resp.StatusCode != http.StatusOK {
		return wrong(fmt.Errorf("it answers %s to %s", resp.Status, path))
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxFlinkAnswer)).Decode(into); err != nil {
		return wrong(fmt.Errorf("its answer to %s: %w", path, err))
	}
	return nil
}

// slotsNow says how many slots are free, for a run that waits; "" when that is unknown.
func (o *Options) slotsNow(ctx context.Context) string {
	if o.FlinkREST == "" {
		return ""
	}
	s, err := o.flinkSlots(ctx)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("waiting for slots: %d of %d are free", s.Free, s.Total)
}
