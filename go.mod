module github.com/newsfork/seed-engine

go 1.26.8

toolchain go1.26.11

require (
	cloud.google.com/go/storage v1.70.0 // gs://: the client under gocloud.dev, with our own retries
	github.com/adhocore/gronx v1.20.4 // cron expressions of schedules
	github.com/andybalholm/brotli v1.2.8 // web: br answers
	github.com/andybalholm/cascadia v1.3.5 // docs: CSS selectors of the policies
	github.com/apache/beam/sdks/v2 v2.77.0 // pipelines and runners
	github.com/aws/aws-sdk-go-v2 v1.47.7 // s3://, r2://: the client under gocloud.dev, with our own endpoint and checksum settings
	github.com/aws/aws-sdk-go-v2/config v1.33.15 // s3://: credentials and region, found as every AWS tool does
	github.com/aws/aws-sdk-go-v2/service/s3 v1.114.8 // s3://: the client itself
	github.com/aws/smithy-go v1.28.8 // s3://: telling errors apart
	github.com/bmatcuk/doublestar/v4 v4.10.4 // docs: path patterns
	github.com/chromedp/cdproto v0.159.0 // docs: the browser's protocol, to answer a page's requests
	github.com/chromedp/chromedp v0.23.0 // docs: pages that only scripts build (spa_rendering)
	github.com/dunglas/httpsfv v1.1.2 // botauth: structured fields (RFC 9651) of signatures; no dependencies
	github.com/fsouza/fake-gcs-server v1.56.1 // tests: GCS in the process
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // raw files, token by token
	github.com/goccy/go-yaml v1.19.2 // YAML files that people write
	github.com/gogs/chardet v0.0.0-20211120154057-b7413eaefb8f // undeclared character sets; no release since 2021, but it is complete: tables of ICU, ten encodings used, each read back (parse/charset)
	github.com/google/uuid v1.6.0 // warc: ids of records
	github.com/jackc/pgx/v5 v5.12.0 // db: PostgreSQL
	github.com/jmespath-community/go-jmespath v1.1.1 // catalog: paths in JSON; no release since 2023, as the specification that it implements; its panics are errors (catalog/data.go)
	github.com/klauspost/compress v1.20.3 // web: gzip, deflate and zstd answers
	github.com/nats-io/nats-server/v2 v2.14.6 // tests: NATS in the process
	github.com/nats-io/nats.go v1.53.1 // queue: NATS JetStream
	github.com/parquet-go/parquet-go v0.32.0 // packed results and export, from Go structs; apache/arrow-go needs columns, and links Thrift and FlatBuffers
	github.com/pressly/goose/v3 v3.27.1 // db: migrations
	github.com/prometheus/client_golang v1.25.0 // /metrics
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // metadata is checked before it is written
	github.com/schollz/progressbar/v3 v3.19.1 // the live line on a terminal
	github.com/spf13/cobra v1.10.2 // commands: help, completion for four shells, man pages, suggestions
	github.com/spf13/pflag v1.0.10 // flags of the commands, with those of Beam
	github.com/stretchr/testify v1.12.1 // tests: comparing values
	github.com/temoto/robotstxt v1.1.2 // tests: a second opinion on robots.txt
	github.com/tiktoken-go/tokenizer v0.10.0 // tests: a second opinion on numbers of tokens
	github.com/yuin/goldmark v1.8.7 // tests: what a CommonMark parser makes of our Markdown
	gocloud.dev v0.47.0 // one adapter for S3, R2, GCS and memory
	golang.org/x/net v0.62.0 // public suffixes, IDNA, HTML, proxies, DNS messages
	golang.org/x/oauth2 v0.37.0 // queue: tokens for Pub/Sub, from the files that gs:// reads
	golang.org/x/sync v0.24.0 // groups and semaphores
	golang.org/x/sys v0.49.0 // sockets, locks, shared memory
	golang.org/x/term v0.47.0 // is standard error a terminal
	golang.org/x/text v0.43.0 // character sets
	golang.org/x/time v0.16.0 // --rate
	google.golang.org/api v0.307.0 // gs://: telling errors apart
	google.golang.org/protobuf v1.36.12 // where a Flink worker connects to when it cannot start; tests: the pipeline that Dataflow is given
	modernc.org/sqlite v1.60.1 // db: SQLite without cgo, so that Beam can cross-compile workers
)

require (
	github.com/google/licenseclassifier/v2 v2.0.0 // deploy/notice: which licence a text is
	github.com/klippa-app/go-pdfium v1.20.0 // docs: the text of PDFs
	github.com/modelcontextprotocol/go-sdk v1.8.0 // search mcp
	github.com/tetratelabs/wazero v1.12.0 // docs: runs PDFium, with bounds on memory and time
	go.yaml.in/yaml/v3 v3.0.5 // strangers' YAML as a tree, with bounded aliases (parse/yamltext)
)

require (
	cel.dev/expr v0.25.3 // indirect
	cloud.google.com/go v0.123.0 // indirect
	cloud.google.com/go/auth v0.24.1 // indirect
	cloud.google.com/go/auth/oauth2adapt v0.3.0 // indirect
	cloud.google.com/go/compute/metadata v0.10.0 // indirect
	cloud.google.com/go/iam v1.13.0 // indirect
	cloud.google.com/go/monitoring v1.30.0 // indirect
	cloud.google.com/go/profiler v0.6.0 // indirect
	cloud.google.com/go/pubsub/v2 v2.7.0 // indirect
	github.com/GoogleCloudPlatform/opentelemetry-operations-go/detectors/gcp v1.37.0 // indirect
	github.com/GoogleCloudPlatform/opentelemetry-operations-go/exporter/metric v0.61.0 // indirect
	github.com/GoogleCloudPlatform/opentelemetry-operations-go/internal/resourcemapping v0.61.0 // indirect
	github.com/Microsoft/go-winio v0.6.2 // indirect
	github.com/antithesishq/antithesis-sdk-go v0.7.2-default-no-op // indirect
	github.com/avast/retry-go/v4 v4.7.0 // indirect
	github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream v1.7.26 // indirect
	github.com/aws/aws-sdk-go-v2/credentials v1.20.15 // indirect
	github.com/aws/aws-sdk-go-v2/feature/ec2/imds v1.20.7 // indirect
	github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager v0.4.3 // indirect
	github.com/aws/aws-sdk-go-v2/internal/configsources v1.5.10 // indirect
	github.com/aws/aws-sdk-go-v2/internal/endpoints/v2 v2.8.10 // indirect
	github.com/aws/aws-sdk-go-v2/internal/v4a v1.5.10 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/accept-encoding v1.13.24 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/checksum v1.11.11 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/presigned-url v1.14.10 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/s3shared v1.20.10 // indirect
	github.com/aws/aws-sdk-go-v2/service/signin v1.12.3 // indirect
	github.com/aws/aws-sdk-go-v2/service/sso v1.39.3 // indirect
	github.com/aws/aws-sdk-go-v2/service/ssooidc v1.44.3 // indirect
	github.com/aws/aws-sdk-go-v2/service/sts v1.51.8 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/clipperhouse/uax29/v2 v2.6.0 // indirect
	github.com/cncf/xds/go v0.0.0-20260202195803-dba9d589def2 // indirect
	github.com/containerd/errdefs v1.0.0 // indirect
	github.com/containerd/errdefs/pkg v0.3.0 // indirect
	github.com/cpuguy83/go-md2man/v2 v2.0.6 // indirect
	github.com/davecgh/go-spew v1.1.2-0.20180830191138-d8f796af33cc // indirect
	github.com/distribution/reference v0.6.0 // indirect
	github.com/dlclark/regexp2/v2 v2.5.1 // indirect
	github.com/docker/go-connections v0.7.0 // indirect
	github.com/docker/go-units v0.5.0 // indirect
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/envoyproxy/go-control-plane/envoy v1.39.0 // indirect
	github.com/envoyproxy/protoc-gen-validate v1.3.3 // indirect
	github.com/felixge/httpsnoop v1.1.0 // indirect
	github.com/go-jose/go-jose/v4 v4.1.5 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/golang-cz/devslog v0.0.17 // indirect
	github.com/google/go-tpm v0.9.8 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	github.com/google/pprof v0.0.0-20260802141513-ef3492d7dac3 // indirect
	github.com/google/renameio/v2 v2.0.0 // indirect
	github.com/google/s2a-go v0.1.11 // indirect
	github.com/google/wire v0.7.0 // indirect
	github.com/googleapis/enterprise-certificate-proxy v0.3.23 // indirect
	github.com/googleapis/gax-go/v2 v2.26.2 // indirect
	github.com/gorilla/handlers v1.5.2 // indirect
	github.com/gorilla/mux v1.8.1 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/jolestar/go-commons-pool/v2 v2.1.2 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/mattn/go-runewidth v0.0.19 // indirect
	github.com/mfridman/interpolate v0.0.2 // indirect
	github.com/minio/highwayhash v1.0.4 // indirect
	github.com/mitchellh/colorstring v0.0.0-20190213212951-d06e56a500db // indirect; from progressbar, which colours only if asked to: we do not
	github.com/moby/docker-image-spec v1.3.1 // indirect
	github.com/moby/moby/api v1.56.0 // indirect
	github.com/moby/moby/client v0.6.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect; from prometheus/common: the Accept header of /metrics
	github.com/nats-io/jwt/v2 v2.8.2 // indirect
	github.com/nats-io/nkeys v0.4.16 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	github.com/ncruces/go-strftime v1.0.0 // indirect
	github.com/opencontainers/go-digest v1.0.0 // indirect
	github.com/opencontainers/image-spec v1.1.1 // indirect
	github.com/parquet-go/bitpack v1.0.0 // indirect
	github.com/parquet-go/jsonlite v1.0.0 // indirect
	github.com/pierrec/lz4/v4 v4.1.26 // indirect
	github.com/pkg/xattr v0.4.12 // indirect
	github.com/planetscale/vtprotobuf v0.6.1-0.20240319094008-0393e58bdf10 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	github.com/segmentio/asm v1.2.1 // indirect
	github.com/segmentio/encoding v0.5.4 // indirect
	github.com/sergi/go-diff v1.1.0 // indirect
	github.com/sethvargo/go-retry v0.3.0 // indirect
	github.com/spiffe/go-spiffe/v2 v2.8.1 // indirect
	github.com/twpayne/go-geom v1.6.1 // indirect
	github.com/yosida95/uritemplate/v3 v3.0.2 // indirect
	go.opencensus.io v0.24.0 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/contrib/detectors/gcp v1.46.0 // indirect
	go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc v0.71.0 // indirect
	go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp v0.71.0 // indirect
	go.opentelemetry.io/otel v1.46.0 // indirect
	go.opentelemetry.io/otel/metric v1.46.0 // indirect
	go.opentelemetry.io/otel/sdk v1.46.0 // indirect
	go.opentelemetry.io/otel/sdk/metric v1.46.0 // indirect
	go.opentelemetry.io/otel/trace v1.46.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/exp v0.0.0-20260508232706-74f9aab9d74a // indirect
	golang.org/x/xerrors v0.0.0-20240903120638-7835f813f4da // indirect
	google.golang.org/genproto v0.0.0-20260904194346-d0f1323225a4 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20260904194346-d0f1323225a4 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261019180522-ce908d29299b // indirect
	google.golang.org/grpc v1.84.0 // indirect
	modernc.org/libc v1.77.1 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)
