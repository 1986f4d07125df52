package launch

import (
	"os"
	"slices"
	"testing"

	fnpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/fnexecution_v1"
	pipepb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/pipeline_v1"

	"github.com/stretchr/testify/require"

	"github.com/stretchr/testify/assert"
)

func TestBootArg(t *testing.T) {
	args := []string{"--id=1-1", "-provision_endpoint", "localhost:9", "--control_endpoint=a=b", "id=2"}
	for name, want := range map[string]string{"id": "1-1", "provision_endpoint": "localhost:9", "control_endpoint": "a=b", "logging_endpoint": "", "d": ""} {
		assert.Equal(t, want, bootArg(args, name), name)
	}
}

func TestWorkerArgs(t *testing.T) {
	at := func(url string) *pipepb.ApiServiceDescriptor { return &pipepb.ApiServiceDescriptor{Url: url} }
	args := []string{"--id=7", "--logging_endpoint=given:1", "--control_endpoint=given:2"}
	for _, c := range []struct {
		info *fnpb.ProvisionInfo
		args []string
		want []string
	}{
		{&fnpb.ProvisionInfo{LoggingEndpoint: at("l:1"), ControlEndpoint: at("c:2")}, args,
			[]string{"--worker=true", "--id=7", "--logging_endpoint=l:1", "--control_endpoint=c:2"}},
		{&fnpb.ProvisionInfo{}, args, []string{"--worker=true", "--id=7", "--logging_endpoint=given:1", "--control_endpoint=given:2"}},
		{&fnpb.ProvisionInfo{LoggingEndpoint: at("l:1")}, nil, nil},
	} {
		got, err := workerArgs("7", c.info, c.args)
		assert.True(t, slices.Equal(got, c.want) && (err == nil) == (c.want != nil), "%q, %v; want %q", got, err, c.want)
	}
}

func TestUnnamedFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	name, err := unnamedFile(`{"a":1}`)
	require.NoError(t, err)
	b, err := os.ReadFile(name)
	assert.True(t, err == nil && string(b) == `{"a":1}`, "%q, %v", b, err)
	left, err := os.ReadDir(os.TempDir())
	assert.True(t, err == nil && len(left) <= 0, "left behind: %v, %v", left, err)
}
