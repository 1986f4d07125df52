package beamfs

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/io/store/bucket/buckettest"
)

// What Beam's textio and parquetio call: files are written, found by a pattern and read, under both schemes.
func TestPattern(t *testing.T) {
	t.Setenv("VGW_REGION", "auto") // as R2
	t.Setenv("AWS_REGION", "auto")
	s := buckettest.StartVersity(t)
	t.Setenv("AWS_ENDPOINT_URL", s.Endpoint)
	t.Setenv("R2_ENDPOINT", s.Endpoint)
	for _, scheme := range []string{"s3", "r2"} {
		at := scheme + "://" + s.Bucket + "/" + scheme
		f, err := filesystem.New(t.Context(), at)
		require.NoError(t, err)
		for _, file := range []string{"/a/1.txt", "/a/2 ü.txt", "/a/deeper/3.txt", "/a/4.json"} {
			require.NoError(t, filesystem.Write(t.Context(), f, at+file, []byte("in "+file)))
		}
		found, err := f.List(t.Context(), at+"/a/*.txt")
		require.NoError(t, err)
		require.ElementsMatch(t, []string{at + "/a/1.txt", at + "/a/2 ü.txt"}, found)
		for _, file := range found {
			b, err := filesystem.Read(t.Context(), f, file)
			require.NoError(t, err)
			require.Equal(t, at+strings.TrimPrefix(string(b), "in "), file)
		}
		require.NoError(t, f.Close())
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
