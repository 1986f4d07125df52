package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func made(t testing.TB, encode func(b *bytes.Buffer, m image.Image) error) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, encode(&b, image.NewPaletted(image.Rect(0, 0, 40, 25), color.Palette{color.Black})))
	return b.Bytes()
}

// boxed is a box of ISO/IEC 14496-12.
func boxed(name string, parts ...[]byte) []byte {
	data := bytes.Join(parts, nil)
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(8+len(data))), name...), data...)
}

func ispe(w, h uint32) []byte {
	return boxed("ispe", make([]byte, 4), binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, w), h))
}

func avifOf(brand string, sizes ...[]byte) []byte {
	return append(boxed("ftyp", []byte(brand+"\x00\x00\x00\x00mif1")), boxed("meta", make([]byte, 4), boxed("hdlr", make([]byte, 20)), boxed("iprp", boxed("ipco", sizes...)))...)
}

func webpOf(chunk string, data ...byte) []byte {
	return append([]byte("RIFF\x00\x00\x00\x00WEBP"+chunk+"\x00\x00\x00\x00"), append(data, make([]byte, 20)...)...)
}

func samples(t testing.TB) map[string][]byte {
	return map[string][]byte{
		"image/jpeg":   made(t, func(b *bytes.Buffer, m image.Image) error { return jpeg.Encode(b, m, nil) }),
		"image/png":    made(t, func(b *bytes.Buffer, m image.Image) error { return png.Encode(b, m) }),
		"image/gif":    made(t, func(b *bytes.Buffer, m image.Image) error { return gif.Encode(b, m, nil) }),
		"image/avif":   avifOf("avif", ispe(8, 5), boxed("pixi", make([]byte, 4)), ispe(40, 25), ispe(4, 4)),
		"image/webp":   webpOf("VP8X", 0, 0, 0, 0, 39, 0, 0, 24, 0, 0),
		"image/webp/1": webpOf("VP8L", 0x2f, 39, 0, 6, 0),
		"image/webp/2": webpOf("VP8 ", 0, 0, 0, 0x9d, 0x01, 0x2a, 40, 0, 25, 0),
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	for name, b := range samples(t) {
		got, err := Read(b)
		require.NoError(t, err, name)
		assert.Equal(t, Info{Type: strings.TrimRight(name, "/12"), Width: 40, Height: 25}, got)
		for n := range 13 { // a file that ends early
			_, err := Read(b[:n])
			assert.Error(t, err, "%s, %d bytes", name, n)
		}
	}
	unknown := func(b string) {
		t.Helper()
		_, err := Read([]byte(b))
		assert.ErrorIs(t, err, errUnknown)
	}
	unknown("")
	unknown(`<svg xmlns="http://www.w3.org/2000/svg" width="40" height="25"/>`)
	unknown("<!doctype html><p>there is no image")
	unknown(string(avifOf("heic", ispe(40, 25))))
	for text, b := range map[string][]byte{
		"it ends early":                       boxed("ftyp", []byte("avif\x00\x00\x00\x00")),
		"it has no width or no height":        avifOf("avif", ispe(1<<31, 1<<31)),
		"it has no signature of a lossless":   webpOf("VP8L", 1),
		"it has no start code of a key frame": webpOf("VP8 ", 1),
		"its first chunk is none of an image": webpOf("ANIM", 1),
		"reading the header of image/png":     []byte("\x89PNG\r\n\x1a\nxxxxxxxxxxxxxxxxxxxxxxx"),
	} {
		_, err := Read(b)
		assert.ErrorContains(t, err, text)
	}
	assert.Equal(t, "jpg", Info{Type: "image/jpeg"}.Extension())
}

func FuzzRead(f *testing.F) {
	for _, b := range samples(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := Read(b)
		if err != nil {
			assert.Equal(t, Info{}, got)
			return
		}
		assert.Positive(t, got.Width)
		assert.Positive(t, got.Height)
		assert.NotEmpty(t, got.Extension())
	})
}
