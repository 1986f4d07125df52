package pdf

import (
	"fmt"

	"github.com/tetratelabs/wazero/experimental"
)

// memory is the number of bytes that PDFium may use for a document.
const memory = 256 << 20

// linear is the memory of one machine. Its address range is reserved whole, so growth
// copies nothing, and the system gives it a page when PDFium first writes there.
type linear struct {
	reserved []byte
	refused  bool // PDFium wanted more
}

// newLinear reserves the memory. That it fails is the machine's shortage and no fact about
// the document, so the error is no refusal.
func newLinear() (*linear, error) {
	b, err := reserve(memory)
	if err != nil {
		return nil, fmt.Errorf("reserving %d MB for PDFium: %w", memory>>20, err)
	}
	return &linear{reserved: b}, nil
}

func (l *linear) Allocate(_, _ uint64) experimental.LinearMemory { return l }

func (l *linear) Reallocate(size uint64) []byte {
	if size > memory {
		l.refused = true
		return nil
	}
	return l.reserved[:size:size]
}

// Free does nothing: whoever made the memory releases it after the machine's end.
func (l *linear) Free() {}
