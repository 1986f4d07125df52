package cli

import (
	"strings"
	"time"

	"github.com/newsfork/seed-engine/io/queue"
	"github.com/newsfork/seed-engine/io/store/hive"
	"github.com/newsfork/seed-engine/io/web/polite"
	"github.com/newsfork/seed-engine/pipeline"
	"github.com/newsfork/seed-engine/pipeline/launch"
	"github.com/newsfork/seed-engine/pipeline/option"
	"github.com/newsfork/seed-engine/pipeline/usage"
)

// Options are all options of a run, from flags, environment and file.
type Options struct {
	launch.Options
	Env, Config string

	from map[string]string // where the value of an option comes from, if it is not the default
	home string            // the store where none is named; "": defaultStore
}

// newFlags tells the options of all jobs, and sets their defaults in o.
func newFlags(o *Options) *option.Set {
	s := option.New("pipeline")
	s.Text(&o.Job, "job", "seed", "the job: "+usage.Or(pipeline.Names())).Is(option.OneRun | option.Outward)
	s.Text(&o.Runner, "runner", "direct", "Beam runner: "+strings.Join(launch.Runners, ", ")+" (with --streaming: prism, unless another is given)").
		OneOf(launch.Runners...).Says("there is no such runner; use one of " + strings.Join(launch.Runners, ", ")).In(option.RunOn)
	s.Text(&o.Store, "store", "", "bucket with datasets/ and processing/: a directory, file:///dir, s3://bucket/prefix, r2://bucket, gs://bucket, mem://name (default: the sample bucket, copied to ./out)").
		NotEmpty("name a bucket, or leave it out for the sample").Is(option.Secret).In(option.Where)
	s.Text(&o.Roots.Raw, "raw-prefix", hive.Datasets, "prefix in the store below which raw files are: country=CC/category=…; /: none").NotEmpty("write / for none")
	s.Text(&o.Roots.Results, "results-prefix", hive.Processing, "prefix in the store below which the results of domains are written").NotEmpty("name a prefix, or leave it out")
	s.Text(&o.Env, "env", "", "dev, staging or prod: fills {env} in --store").OneOf("dev", "staging", "prod")
	s.Text(&o.Country, "country", "", "only this country, two lower-case letters").Like("[a-z]{2}").Says("a country is two lower-case letters, such as sg").
		NotEmpty("name a country, or leave it out for all").Asked("Country", "two lower-case letters, such as sg").SuchAs("sg").Is(option.OneRun | option.Selects).In(option.What)
	s.Text(&o.Category, "category", "", "only this category").Like(`[a-z0-9_\-]{1,64}`).Says("a category is up to 64 lower-case letters, digits, _ and -").
		NotEmpty("name a category, or leave it out for all").Asked("Category", "such as news").SuchAs("news").Is(option.OneRun | option.Selects).In(option.What)
	s.Day(&o.Date, "date", "only this date, YYYY-MM-DD").
		NotEmpty("name a day, or leave it out for all").Asked("Date", "YYYY-MM-DD").SuchAs("2026-01-28").Is(option.OneRun | option.Selects).In(option.What)
	s.Text(&o.Share, "sample", "", "only this share of the domains, such as 1% or 0.5%: the same ones each time, and all of a smaller share's").
		Like(`(0\.[0-9]{0,3}[1-9]|[1-9][0-9]?(\.[0-9]{1,4})?)%`).Says("write a share of the domains, such as 1% or 0.5%").
		NotEmpty("write a share such as 1%, or leave it out for all").Asked("Sample", "share of the domains, such as 1%; empty: all").SuchAs("1%").
		Is(option.OneRun | option.Selects | option.Extent)
	s.Text(&o.URL, "url", "", "docs: crawl this page, and with --depth those below it, without a policy file; news: print this article as JSON, and store nothing").
		Is(option.OneRun | option.Selects | option.Extent).In(option.What)
	s.Yes(&o.Force, "force", false, "also do what has its .success").Asked("Do again what is done", "").Is(option.OneRun).In(option.What)
	s.Yes(&o.Strict, "strict", false, "exit with 4 when the run left dead letters, or providers that are not done").Is(option.Outward).In(option.Output)
	s.Number(&o.Limit, "limit", 0, "begin at most this many in this run, as for a first trial (seed: domains, docs: pages, catalog: products, news: articles); the next run continues; 0: all").
		Range(0, 1_000_000).Says("use 0 (all) to 1000000").Asked("At most", "domains, pages, products or articles; 0: all").SuchAs(20).Is(option.OneRun | option.Extent).In(option.What)
	s.Number(&o.Lanes, "lanes", 0, "number of lanes over which hosts are spread (default: 1 in one process, for seed one per 4 MiB of raw files and at most 128; on a cluster 16 × the parallelism, and for seed at least one per MiB)").
		Range(1, 100_000)
	s.Number(&o.Concurrency, "concurrency", 64, "requests in flight, all workers together").Range(1, 10_000).In(option.Polite)
	s.Decimal(&o.Rate, "rate", 0, "requests a second, all workers together; 0: no limit").From(0).Says("use 0 for no limit, or requests a second").In(option.Polite)
	s.Pause(&o.HostDelay, "host-delay", 200*time.Millisecond, "pause between two requests to one host").From(0).Says("use 0 or more, such as 200ms").In(option.Polite)
	s.Pause(&o.MaxCrawlDelay, "max-crawl-delay", 30*time.Second, "longest Crawl-delay or Retry-After that is obeyed; a host that asks for more is abandoned for this run").
		Above(0).Says("use more than 0, such as 30s")
	s.Decimal(&o.AdaptiveDelay, "adaptive-delay", 0, "lengthen the pause between two requests to a host to so many times its response time, e.g. 5, and after each 429 and 503; 0: off").
		From(0).Says("use times the response time, such as 5, or 0 (off)")
	s.Pause(&o.ServerDelay, "server-delay", 0, "pause between two requests to one server address, whatever the host names, one request at a time; 0: only hosts are told apart").
		From(0).Says("use 0 (off) or more, such as 1s")
	s.Decimal(&o.CDNRate, "cdn-rate", polite.DefaultCDNRate, "with --server-delay: requests a second to each network whose addresses serve many unrelated sites, such as Cloudflare's, in place of that pause").
		Above(0).Says("use requests a second, more than 0")
	s.Text(&o.Purpose, "purpose", "none", "what the pages are for: none, search, ai-input, ai-train or archive. What a site reserves for it is not fetched (robots.txt) or not handed on (headers, pages); none: what sites say is only recorded").
		OneOf("none", "search", "ai-input", "ai-train", "archive").Asked("Purpose", "none, search, ai-input, ai-train or archive").Is(option.Extent).In(option.What)
	s.Text(&o.Turns, "turns", polite.OwnTurns, "path of the file by which all processes of a machine, of all jobs, take turns at a site; auto: in the folder of the user's caches; off: each process for itself").
		Like("(?s).+").Says("use auto, off, or the path of a file for all processes of this machine and user")
	s.Block(&o.BotText, "bot", "who crawls, for all jobs, as YAML: name, contact, page, key, sign; in --config it is a block: docs/identity.md")
	s.Text(&o.Contact, "contact", "", "URL or mail address for owners of sites who have a question, in place of the block's: part of the User-Agent, and From; catalog needs one for real sites").
		Like("(?s).*@.*|https?://.*").Says("use a URL or a mail address")
	s.Text(&o.Politeness, "politeness", "", "YAML file with the pauses, hours and user agents of single hosts, for all jobs: docs/operations.md")
	s.Text(&o.Web, "web", "live", "live, or demo: the simulated web that is part of the program, offline").OneOf("live", "demo").Is(option.Extent).In(option.Where)
	s.Text(&o.ConnectTo, "connect-to", "", "host:port that every request is sent to instead of the URL's own")
	s.Yes(&o.AllowPrivate, "allow-private", false, "allow requests to loopback and private addresses")
	s.Yes(&o.UnsandboxedBrowser, "allow-unsandboxed-browser", false, "docs and catalog: let the browser that renders pages run without its sandbox: as root, or where the system has none")
	s.Yes(&o.Images, "images", false, "catalog and news: fetch the images that products name in fields of the type image, or that articles name, also from other hosts, and keep their bytes in the store under images/")
	s.Text(&o.Report, "report", "", "also write the JSON report to this file, or - for standard output").Is(option.OneRun | option.Secret).In(option.Output)
	s.Other(&o.Estimate, "estimate", "print what a run will cost (requests, bytes, hours, calls to the store and their price), and change nothing; --estimate=json: for programs").Is(option.OneRun | option.Secret)
	s.Text(&o.Prices, "prices", "", "YAML file with the store's prices, for --estimate and the report (default: public list prices of S3, R2 and GCS)")
	s.Text(&o.LogFormat, "log-format", "", "text or json, to standard error (default: text on a terminal, else json)").OneOf("text", "json").Is(option.Outward)
	s.Text(&o.LogLevel, "log-level", "", "debug, info, warn or error (default: warn on a terminal, else info)").
		Like("(?i)(debug|info|warn|error)").Says("use debug, info, warn or error").Is(option.Outward)
	s.Text(&o.Progress, "progress", "auto", "auto: a live line on a terminal; off").OneOf("auto", "off").Is(option.OneRun | option.Outward)
	s.Text(&o.Config, "config", "", "YAML file with any of these flags").Is(option.OneRun | option.Secret).In(option.Where)
	s.Pause(&o.LeaseTTL, "lease-ttl", 30*time.Second, "how long a run's lease lasts after its holder was killed on another machine").From(1)
	s.Pause(&o.Watch, "watch", 0, "keep running and read new raw files as they come; the interval between two polls, e.g. 1m").Is(option.OneRun | option.Selects)
	s.Yes(&o.Streaming, "streaming", false, "with --watch: one streaming pipeline (prism, Flink, Dataflow) instead of a batch run for each poll").Is(option.OneRun)
	s.Text(&o.From, "from", "", "with --watch: take raw files and domains from this queue's messages, without listing the store: "+queue.Forms).NotEmpty("name a queue").Is(option.OneRun)
	s.Text(&o.Events, "events", "", "send an event of each row that is stored or changed: "+queue.OutForms).NotEmpty("name a queue or an endpoint").Is(option.Outward)
	s.Yes(&o.SharedFilesystem, "shared-filesystem", false, "all workers see the store's directory under the same path")
	s.Text(&o.DB, "db", "", "database of docs, catalog and news: sqlite:///path or postgres://… (default: a SQLite file next to a directory store)").Is(option.Secret).In(option.Where)
	o.Flags = s
	o.Jobs = pipeline.Told(s)
	return s
}
