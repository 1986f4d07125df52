package pipeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/transforms/seed/metadata"
)

// pool is what an engineer could write in an afternoon instead of the program:
// goroutines that share an http.Client with Go's default settings, fetch robots.txt
// and the sitemap that it names, and write the same objects. There is no Beam, no
// report, no parser and no lease. It is this test program, started as a child
// process, so that for both sides the CPU of a process is measured.
type pool struct {
	Web         string // address that all requests go to
	Dir         string // the store
	Concurrency int
	Durable     bool // write a temporary file, sync it, rename it; else only write
}

// pools are the sides of a comparison that are bare pools.
var pools = []string{"durable", "plain"}

// poolSettings is the environment variable with the pool as JSON.
const poolSettings = "SEED_BENCH_POOL"

func init() {
	settings := os.Getenv(poolSettings)
	if settings == "" {
		return
	}
	var p pool // before any test's own start-up
	if err := errors.Join(json.Unmarshal([]byte(settings), &p), p.run()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (p pool) String() string {
	settings, _ := json.Marshal(p) // cannot fail: it has strings, numbers and a bool
	return string(settings)
}

func (p pool) run() error {
	raw, err := os.Open(filepath.Join(p.Dir, filepath.FromSlash(benchRaw)))
	if err != nil {
		return err
	}
	var in struct {
		Records []struct {
			RawURL string `json:"raw_url"`
		} `json:"records"`
	}
	if err := errors.Join(json.NewDecoder(raw).Decode(&in), raw.Close()); err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, p.Web)
	}
	client := &http.Client{Timeout: 15 * time.Second, Transport: transport}
	sending := make(chan struct{}, p.Concurrency)
	work := make(chan int)
	failed := make(chan error, p.Concurrency)
	var all sync.WaitGroup
	for range p.Concurrency {
		all.Go(func() {
			for i := range work {
				name := strings.TrimSuffix(strings.TrimPrefix(in.Records[i].RawURL, "https://"), "/")
				if err := p.visit(client, sending, name, i); err != nil {
					failed <- fmt.Errorf("%s: %w", name, err)
					return
				}
			}
		})
	}
	for i := range in.Records {
		select {
		case work <- i:
		case err := <-failed:
			return err
		}
	}
	close(work)
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func (p pool) visit(client *http.Client, sending chan struct{}, name string, index int) error {
	raw, _ := hive.ParseRaw(benchRaw)
	dir := filepath.Join(p.Dir, filepath.FromSlash(raw.Partition.DomainDir(name)))
	start := time.Now()
	robots, err := get(client, sending, "https://"+name+"/robots.txt")
	if err != nil {
		return err
	}
	middle := time.Now()
	begin := time.Now()
	_, at, _ := strings.Cut(string(robots), "Sitemap: ")
	at = strings.TrimSpace(at)
	sitemap, err := get(client, sending, at)
	if err != nil {
		return err
	}
	end := time.Now()
	took := []int64{middle.Sub(start).Milliseconds(), end.Sub(begin).Milliseconds()}
	now, urls := metadata.Timestamp(end), int64(bytes.Count(sitemap, []byte("<url>")))
	doc, err := metadata.Marshal(metadata.Domain{
		DomainID: "com:sg:" + name, RegistrableDomain: name, Country: "SG", Category: "news", CollectedAt: now,
		Robots:  metadata.Robots{StatusCode: 200, ContentLength: int64(len(robots)), Exists: true, FetchedAt: metadata.Timestamp(middle), SitemapURLs: []string{at}, ResponseMS: &took[0]},
		Sitemap: metadata.Sitemap{StatusCode: 200, ContentLength: int64(len(sitemap)), Exists: true, FetchedAt: now, URLCount: &urls, URL: at, Kind: "urlset", ResponseMS: &took[1]},
		Source:  &metadata.Source{RawFilePath: benchRaw, RecordIndex: &index},
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return errors.Join(
		p.write(dir, "robots.txt", robots),
		p.write(dir, "sitemap.xml", sitemap),
		p.write(dir, "domain_metadata.json", doc),
		p.write(dir, "domain_metadata.json"+hive.Success, nil))
}

func get(client *http.Client, sending chan struct{}, url string) ([]byte, error) {
	sending <- struct{}{}
	defer func() { <-sending }()
	resp, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: status %d", url, resp.StatusCode)
	}
	return body, nil
}

func (p pool) write(dir, file string, body []byte) error {
	path := filepath.Join(dir, file)
	if !p.Durable {
		return os.WriteFile(path, body, 0o666)
	}
	temp, err := os.CreateTemp(dir, ".temp-")
	if err != nil {
		return err
	}
	_, err = temp.Write(body)
	if err == nil && len(body) > 0 {
		err = temp.Sync()
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
