package lane

import "context"

// DoFn is embedded by every DoFn of a job. It has the process's worker of the run, from Setup, which calls Open, to Teardown.
type DoFn struct {
	Worker *Worker `json:"-"` // each process has its own
}

// Open opens the process's worker, or shares it when another DoFn has opened it.
func (d *DoFn) Open(ctx context.Context, cfg Config) error {
	workers.Lock()
	defer workers.Unlock()
	w, err := open(ctx, cfg)
	if err != nil {
		return err
	}
	w.users++
	d.Worker = w
	return nil
}

// Teardown closes the worker after the last DoFn that uses it. In the launcher's process it stays open until Close. Beam's Go harness 2.77
// does not call Teardown: there the worker ends with its process.
func (d *DoFn) Teardown() error {
	w := d.Worker
	if w == nil { // Setup failed
		return nil
	}
	d.Worker = nil
	workers.Lock()
	w.users--
	last := w.users == 0 && w.cfg.Leases && w.lease == nil && workers.open[w.cfg.RunID] == w
	if last {
		delete(workers.open, w.cfg.RunID)
	}
	workers.Unlock()
	if !last {
		return nil
	}
	return w.close()
}
