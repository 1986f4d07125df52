// Package lineage tells a collector of OpenLineage, such as Marquez or DataHub, when runs begin and end, what they read and what they
// wrote: https://openlineage.io. No promise: see docs/library.md.
package lineage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/newsfork/seed-engine/io/secret"
)

const (
	producer = "https://github.com/newsfork/seed-engine"
	core     = "2-0-2/OpenLineage.json#/$defs/"

	sendTimeout = 5 * time.Second
	maxQueue    = 100 // events; later ones are dropped
)

// State is what happened to a run.
type State string

// The states of OpenLineage that a run has.
const (
	Start    State = "START"
	Complete State = "COMPLETE"
	Fail     State = "FAIL"
	Abort    State = "ABORT" // cancelled or interrupted
)

// Dataset is what a run reads or writes.
type Dataset struct {
	Namespace, Name string
	// Rows and Files are how many the run read or wrote; 0: not known.
	Rows, Files int64
}

// Event is one change of a run.
type Event struct {
	State           State
	At              time.Time
	RunID, Job      string
	Streaming       bool
	Error           string // of Fail
	Inputs, Outputs []Dataset
}

// Sender sends events in the background. The nil Sender sends nothing.
type Sender struct {
	url, key, namespace string
	failed              func(error)
	client              *http.Client
	queue               chan Event
	stop                context.CancelFunc
	done                chan struct{}
	warn                sync.Once
}

// FromEnv returns a sender for the variables of OpenLineage's clients: OPENLINEAGE_URL, _ENDPOINT (default api/v1/lineage), _NAMESPACE
// (default: default), _API_KEY, _DISABLED. It is nil without a URL. An event that cannot be sent is lost; failed is called with the
// first such error.
func FromEnv(getenv func(string) string, failed func(error)) (*Sender, error) {
	at := getenv("OPENLINEAGE_URL")
	if off, _ := strconv.ParseBool(getenv("OPENLINEAGE_DISABLED")); off || at == "" { // another text is no yes
		return nil, nil
	}
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("OPENLINEAGE_URL is no address of a collector: use one such as http://localhost:5000")
	}
	key, err := secret.Read("OPENLINEAGE_API_KEY")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Sender{url: u.JoinPath(cmp.Or(getenv("OPENLINEAGE_ENDPOINT"), "api/v1/lineage")).String(), key: key, failed: failed, stop: stop,
		namespace: cmp.Or(getenv("OPENLINEAGE_NAMESPACE"), "default"), client: secret.Client(sendTimeout),
		queue: make(chan Event, maxQueue), done: make(chan struct{})}
	go s.work(ctx)
	return s, nil
}

// Send sends an event after those before it. It does not wait.
func (s *Sender) Send(e Event) {
	if s == nil {
		return
	}
	select {
	case s.queue <- e:
	default:
		s.lost(fmt.Errorf("%d events wait already", maxQueue))
	}
}

// Close waits at most that long until the events are sent. Nothing may be sent afterwards.
func (s *Sender) Close(within time.Duration) {
	if s == nil {
		return
	}
	close(s.queue)
	defer time.AfterFunc(within, s.stop).Stop()
	<-s.done
	s.stop()
}

func (s *Sender) work(ctx context.Context) {
	defer close(s.done)
	for e := range s.queue {
		if err := s.post(ctx, e); err != nil {
			s.lost(err)
		}
	}
}

func (s *Sender) lost(err error) { s.warn.Do(func() { s.failed(err) }) }

func (s *Sender) post(ctx context.Context, e Event) error {
	text, err := json.Marshal(s.event(e))
	if err != nil {
		return fmt.Errorf("encoding an OpenLineage event: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("sending an OpenLineage event: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return fmt.Errorf("sending an OpenLineage event: %w", err)
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 200)) // only for the error
	_ = resp.Body.Close()                                 // only read
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("sending an OpenLineage event: the collector answers %s: %s", resp.Status, strings.TrimSpace(string(said)))
	}
	return nil
}

type object = map[string]any

func schema(path string) string { return "https://openlineage.io/spec/" + path }

// facet adds to fields what each facet has. version and name are those of its schema.
func facet(version, name string, fields object) object {
	fields["_producer"], fields["_schemaURL"] = producer, schema("facets/"+version+"/"+name+".json#/$defs/"+name)
	return fields
}

// event is an event in the words of the standard. The id of a run there is a UUID, which is made of ours.
func (s *Sender) event(e Event) object {
	run := object{"seed_engine_run": object{"run_id": e.RunID, "_producer": producer, "_schemaURL": schema(core + "RunFacet")}}
	if e.Error != "" {
		run["errorMessage"] = facet("1-0-1", "ErrorMessageRunFacet", object{"message": e.Error, "programmingLanguage": "Go"})
	}
	kind := "BATCH"
	if e.Streaming {
		kind = "STREAMING"
	}
	return object{
		"eventType": e.State, "eventTime": e.At.UTC().Format(time.RFC3339Nano), "producer": producer, "schemaURL": schema(core + "RunEvent"),
		"run": object{"runId": uuid.NewSHA1(uuid.NameSpaceURL, []byte(producer+"/runs/"+e.RunID)).String(), "facets": run},
		"job": object{"namespace": s.namespace, "name": "seed-engine." + e.Job, "facets": object{
			"jobType": facet("2-0-4", "JobTypeJobFacet", object{"processingType": kind, "integration": "seed-engine", "jobType": "JOB"})}},
		"inputs":  datasets(e.Inputs, "input", "1-0-0", "InputStatisticsInputDatasetFacet"),
		"outputs": datasets(e.Outputs, "output", "1-0-2", "OutputStatisticsOutputDatasetFacet"),
	}
}

func datasets(all []Dataset, side, version, name string) []object {
	out := []object{}
	for _, d := range all {
		counts := object{}
		for name, n := range map[string]int64{"rowCount": d.Rows, "fileCount": d.Files} {
			if n > 0 {
				counts[name] = n
			}
		}
		one := object{"namespace": d.Namespace, "name": d.Name}
		if len(counts) > 0 {
			one[side+"Facets"] = object{side + "Statistics": facet(version, name, counts)}
		}
		out = append(out, one)
	}
	return out
}
