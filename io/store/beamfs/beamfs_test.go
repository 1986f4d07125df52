package beamfs

import (
	"io"
	"os"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/textio"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/passert"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx" // the runners
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store/bucket/buckettest"
)

func TestMain(m *testing.M) {
	beam.Init()
	os.Exit(m.Run())
}

// textio writes to a bucket and reads from it by a pattern, under both schemes.
func TestTextio(t *testing.T) {
	t.Setenv("VGW_REGION", "auto") // as R2
	t.Setenv("AWS_REGION", "auto")
	s := buckettest.StartVersity(t)
	t.Setenv("AWS_ENDPOINT_URL", s.Endpoint)
	t.Setenv("R2_ENDPOINT", s.Endpoint)
	for _, scheme := range []string{"s3", "r2"} {
		at := scheme + "://" + s.Bucket + "/" + scheme
		p, root := beam.NewPipelineWithRoot()
		textio.Write(root, at+"/a/1.txt", beam.CreateList(root, []string{"one", "two"}))
		textio.Write(root, at+"/a/2 ü.txt", beam.CreateList(root, []string{"three"}))
		textio.Write(root, at+"/a/deeper/3.txt", beam.CreateList(root, []string{"not matched"}))
		textio.Write(root, at+"/a/4.json", beam.CreateList(root, []string{"not matched"}))
		_, err := beam.Run(t.Context(), "direct", p)
		require.NoError(t, err)

		p, root = beam.NewPipelineWithRoot()
		passert.EqualsList(root, textio.Read(root, at+"/a/*.txt"), []string{"one", "two", "three"})
		_, err = beam.Run(t.Context(), "direct", p)
		require.NoError(t, err)
	}
}

func TestFiles(t *testing.T) {
	t.Setenv("VGW_REGION", "auto")
	s := buckettest.StartVersity(t)
	t.Setenv("R2_ENDPOINT", s.Endpoint)
	at := "r2://" + s.Bucket + "/file"
	f, err := filesystem.New(t.Context(), at)
	require.NoError(t, err)
	_, err = f.Size(t.Context(), at)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = f.OpenRead(t.Context(), at)
	require.ErrorIs(t, err, os.ErrNotExist)

	w, err := f.OpenWrite(t.Context(), at)
	require.NoError(t, err)
	_, err = io.WriteString(w, "text")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	size, err := f.Size(t.Context(), at)
	require.NoError(t, err)
	require.EqualValues(t, 4, size)
	changed, err := f.(filesystem.LastModifiedGetter).LastModified(t.Context(), at)
	require.NoError(t, err)
	require.False(t, changed.IsZero())

	w, err = f.OpenWrite(t.Context(), "r2://"+s.Bucket+"//no key")
	require.NoError(t, err)
	_, err = io.WriteString(w, "text")
	require.ErrorContains(t, err, "not a key", "a refused object does not keep its writer waiting")
	require.ErrorContains(t, w.Close(), "not a key")
	_, err = f.List(t.Context(), "r2://no-such-bucket/*")
	require.ErrorContains(t, err, "no-such-bucket")

	require.NoError(t, f.(filesystem.Remover).Remove(t.Context(), at))
	found, err := f.List(t.Context(), at+"*")
	require.NoError(t, err)
	require.Empty(t, found)
	require.NoError(t, f.Close())
}
