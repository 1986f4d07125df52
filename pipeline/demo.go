package pipeline

import (
	"errors"
	"fmt"

	"github.com/newsfork/seed-engine/io/web"
	"github.com/newsfork/seed-engine/io/web/webtest"
)

// StartDemo starts the simulated web where --web=demo asks for it, and makes a
// client connect to it.
func (j Job) StartDemo(c RunOptions, client *web.Config) (end func() error, err error) {
	return startDemo(c, j.Demo, client)
}

// startDemo adds a job's own sites to the simulated web, if it has some.
func startDemo(c RunOptions, sites func(*webtest.Web), client *web.Config) (end func() error, err error) {
	if c.Web != "demo" {
		return func() error { return nil }, nil
	}
	sim := webtest.New(webtest.Options{Seed: 1})
	if sites != nil {
		sites(sim)
	}
	if err := sim.Start(); err != nil {
		return nil, fmt.Errorf("starting the simulated web: %w", err)
	}
	if client.Resolver, err = sim.DNS(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the simulated web: %w", err), sim.Close())
	}
	client.ConnectTo, client.RootCAs = sim.Addr(), sim.CAPEM()
	return sim.Close, nil
}
