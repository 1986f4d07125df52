package server

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/newsfork/seed-engine/server/runs"
)

// metrics are the metrics at /metrics. docs/server.md lists them.
type metrics struct {
	http.Handler
	registry    *prometheus.Registry
	starts      *prometheus.CounterVec
	ticks       *prometheus.CounterVec
	deliveries  *prometheus.CounterVec
	errors      *prometheus.CounterVec
	wrongTokens *prometheus.CounterVec
	requests    *prometheus.HistogramVec
}

func newMetrics(s *Server) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		registry:    prometheus.NewRegistry(),
		starts:      counter("seed_engine_runs_started_total", "Runs that this server started.", "job"),
		ticks:       counter("seed_engine_schedule_ticks_total", "Ticks of schedules that this server handled, by outcome: started, active (another run of the job was active), failed or missed.", "schedule", "outcome"),
		deliveries:  counter("seed_engine_alert_deliveries_total", "Tries to send a message, by channel and outcome: sent, failed (it is tried again) or given_up.", "channel", "outcome"),
		errors:      counter("seed_engine_server_errors_total", "Periodic work that failed and is tried again, by work: "+strings.Join(works, ", ")+".", "work"),
		wrongTokens: counter("seed_engine_wrong_tokens_total", "Requests with a wrong token, by way: header or form.", "way"),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "seed_engine_http_request_duration_seconds",
			Help: "Time to answer a request to this server, by method and status code; event streams are left out.", Buckets: prometheus.DefBuckets}, []string{"method", "code"}),
	}
	for _, j := range s.jobs.Started() {
		m.starts.WithLabelValues(j.Name)
	}
	for _, work := range works {
		m.errors.WithLabelValues(work)
	}
	for _, way := range []string{"header", "form"} {
		m.wrongTokens.WithLabelValues(way)
	}
	m.registry.MustRegister(m.starts, m.ticks, m.deliveries, m.errors, m.wrongTokens, m.requests, &ledgerCollector{s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.Handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return m
}

// ledgerCollector reads the board at each scrape.
type ledgerCollector struct{ s *Server }

// descs are all metrics of the collector.
var descs []*prometheus.Desc

func desc(name, help string, labels ...string) *prometheus.Desc {
	descs = append(descs, prometheus.NewDesc(name, help, labels, nil))
	return descs[len(descs)-1]
}

var (
	runsDesc      = desc("seed_engine_runs", "Runs on the board (the newest 1,000 in the store), by job and state.", "job", "state")
	itemsDesc     = desc("seed_engine_run_items", "Counts of each job's newest run, by the names of its report.", "job", "item")
	responsesDesc = desc("seed_engine_run_responses", "Answers from sites in each job's newest run, by status code.", "job", "code")
	failuresDesc  = desc("seed_engine_run_request_failures", "Requests of each job's newest run that failed below HTTP, by reason.", "job", "reason")
	retriesDesc   = desc("seed_engine_run_retries", "Requests of each job's newest run that were sent again.", "job")
	itemDesc      = desc("seed_engine_run_item_duration_seconds", "How long one item took in each job's newest run, where items are timed one by one: a domain of seed.", "job")
	stageDesc     = desc("seed_engine_run_stage_seconds_per_item", "Duration of each job's newest run divided by the items that came through a stage.", "job", "stage")
	durationDesc  = desc("seed_engine_run_duration_seconds", "How long each job's newest run took, or takes so far.", "job")
	startDesc     = desc("seed_engine_run_start_timestamp_seconds", "When each job's newest run began.", "job")
	successDesc   = desc("seed_engine_run_success_timestamp_seconds", "When the latest complete run of each job ended.", "job")
	alertsDesc    = desc("seed_engine_alerts_firing", "Alerts that fire, by job and rule.", "job", "alert")
	leaderDesc    = desc("seed_engine_server_leader", "1 when this server judges alerts and writes reports for all servers on the store.")
)

// Describe implements prometheus.Collector.
func (c *ledgerCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *ledgerCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	states := map[[2]string]int{}
	newest, done := map[string]*runs.Entry{}, map[string]*runs.Entry{}
	for _, e := range c.s.board.Runs() {
		states[[2]string{e.Run.Job, e.State()}]++
		if e.Broken {
			continue
		}
		if newest[e.Run.Job] == nil {
			newest[e.Run.Job] = e
		}
		if e.State() == "done" && done[e.Run.Job] == nil {
			done[e.Run.Job] = e
		}
	}
	for k, n := range states {
		gauge(runsDesc, float64(n), k[0], k[1])
	}
	for name, e := range done {
		gauge(successDesc, float64(e.Run.FinishedAt.UnixMilli())/1000, name)
	}
	for name, e := range newest {
		gauge(durationDesc, e.Report.Duration, name)
		gauge(startDesc, float64(e.Run.StartedAt.UnixMilli())/1000, name)
		gauge(retriesDesc, float64(e.Report.HTTP.Retries), name)
		if t := e.Report.Timings; t.Domains > 0 {
			ch <- prometheus.MustNewConstSummary(itemDesc, uint64(t.Domains), t.Mean*float64(t.Domains),
				map[float64]float64{0.5: t.P50, 0.95: t.P95, 1: t.Max}, name)
		}
		for _, stage := range e.Job.Stages {
			if n := e.Report.Through(stage); n > 0 {
				gauge(stageDesc, e.Report.Duration/float64(n), name, stage.Name)
			}
		}
		for item, n := range e.Report.Counts {
			gauge(itemsDesc, float64(n), name, strings.ToValidUTF8(item, ""))
		}
		for code, n := range e.Report.HTTP.ByStatus {
			gauge(responsesDesc, float64(n), name, strings.ToValidUTF8(code, ""))
		}
		for reason, n := range e.Report.HTTP.Failures {
			gauge(failuresDesc, float64(n), name, strings.ToValidUTF8(reason, ""))
		}
	}
	firing := map[[2]string]int{}
	for _, b := range c.s.alarm.Firing() {
		firing[[2]string{b.Job, b.Rule}]++
	}
	for k, n := range firing {
		gauge(alertsDesc, float64(n), k[0], k[1])
	}
	leads := 0.0
	if c.s.leading.Load() {
		leads = 1
	}
	gauge(leaderDesc, leads)
}

// measure records how long answers take.
func (m *metrics) measure(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/events" {
			h.ServeHTTP(w, r)
			return
		}
		begin := time.Now()
		seen := &statusWriter{ResponseWriter: w, code: http.StatusOK}
		h.ServeHTTP(seen, r)
		method := r.Method
		switch method {
		case http.MethodGet, http.MethodHead, http.MethodPost:
		default:
			method = "other" // a client may send any word
		}
		m.requests.WithLabelValues(method, strconv.Itoa(seen.code)).Observe(time.Since(begin).Seconds())
	})
}

// statusWriter records the status.
type statusWriter struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Counters are made at 0, before there is something to count: Prometheus does not see an
// increase in the first value of a series.

// works are the parts of a server's periodic work.
var works = []string{"board", "sessions", "schedules", "alerts", "reports", "retention", "removals"}

// has makes a channel's counters.
func (m *metrics) has(channel string) {
	for _, outcome := range []string{"sent", "failed", "given_up"} {
		m.deliveries.WithLabelValues(channel, outcome)
	}
}

// hasSchedule makes a schedule's counters.
func (m *metrics) hasSchedule(name string) {
	for _, outcome := range []string{"started", "active", "failed", "missed"} {
		m.ticks.WithLabelValues(name, outcome)
	}
}

// delivered counts a try to send a message.
func (m *metrics) delivered(channel, outcome string) {
	m.deliveries.WithLabelValues(channel, outcome).Inc()
}
