package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/newsfork/seed-engine/io/ledger"
)

// costDescriptions are the metrics of what a job's newest run that ended has cost. Their
// label figure is actual or estimated.
type costDescriptions struct{ requests, received, seconds, calls, bytes, dollars *prometheus.Desc }

func newCostDescs() costDescriptions {
	of := func(name, help string, labels ...string) *prometheus.Desc {
		return desc("seed_engine_run_cost_"+name, help+" each job's newest ended run, actual and estimated.", append([]string{"job", "figure"}, labels...)...)
	}
	return costDescriptions{
		requests: of("requests", "Requests to sites in"),
		received: of("received_bytes", "Bytes received from sites in"),
		seconds:  of("duration_seconds", "Duration of"),
		calls:    of("store_calls", "Calls to the store, by class, in", "class"),
		bytes:    of("store_bytes", "Bytes written to the store and read from it in", "direction"),
		dollars:  of("price_dollars", "Price of the store's calls, of a month's storage of what was written, and of what was read if it left the provider's network, in", "part"),
	}
}

func (d costDescriptions) all() []*prometheus.Desc {
	return []*prometheus.Desc{d.requests, d.received, d.seconds, d.calls, d.bytes, d.dollars}
}

// collect gives the metrics of one job to gauge.
func (d costDescriptions) collect(job string, c ledger.Cost, gauge func(d *prometheus.Desc, v float64, labels ...string)) {
	figures := map[string]*ledger.Figures{"actual": &c.Actual, "estimated": c.Estimated}
	for figure, f := range figures {
		if f == nil {
			continue
		}
		gauge(d.requests, float64(f.Requests), job, figure)
		gauge(d.received, float64(f.Bytes), job, figure)
		gauge(d.seconds, f.Duration, job, figure)
		for class, n := range map[string]int64{"reads": f.Calls.Reads, "lists": f.Calls.Lists, "writes": f.Calls.Writes, "deletes": f.Calls.Deletes} {
			gauge(d.calls, float64(n), job, figure, class)
		}
		gauge(d.bytes, float64(f.Written), job, figure, "written")
		gauge(d.bytes, float64(f.Read), job, figure, "read")
		if f.Price == nil {
			continue
		}
		gauge(d.dollars, f.Price.Calls, job, figure, "calls")
		gauge(d.dollars, f.Price.Storage, job, figure, "storage_month")
		gauge(d.dollars, f.Price.Egress, job, figure, "egress")
	}
}
