package chunk

import (
	"bytes"
	"compress/gzip"
	"container/heap"
	_ "embed"
	"fmt"
	"io"
	"sync"
)

// packed is the vocabulary of cl100k_base, published by OpenAI (licence: deploy/notice/cl100k_base.txt): the tokens in the order of their
// ranks, each after a byte with its length, compressed with gzip.
//
//go:embed cl100k_base.gz
var packed []byte

// ranks maps each token of cl100k_base, without the special ones, to its rank. Every single byte is a token.
var ranks = sync.OnceValue(func() map[string]uint32 {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(fmt.Sprintf("the vocabulary of cl100k_base is damaged: %v", err)) // the build is broken
	}
	all, err := io.ReadAll(z)
	if err != nil {
		panic(fmt.Sprintf("the vocabulary of cl100k_base is damaged: %v", err))
	}
	tokens := make(map[string]uint32, vocabulary)
	for text := string(all); text != ""; {
		end := 1 + int(text[0])
		tokens[text[1:end]] = uint32(len(tokens))
		text = text[end:]
	}
	return tokens
})

// vocabulary is the number of tokens of cl100k_base, without the special ones.
const vocabulary = 100_256

// pair is two neighbouring parts of a word that together are a token of the given rank. It starts and ends at these bytes.
type pair struct {
	rank       uint32
	start, end int
}

// pairs is a heap. Its top is the pair to merge next: of the lowest rank, and of those the leftmost.
type pairs []pair

func (p pairs) Len() int      { return len(p) }
func (p pairs) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p pairs) Less(i, j int) bool {
	return p[i].rank < p[j].rank || p[i].rank == p[j].rank && p[i].start < p[j].start
}

// Push and Pop take no part: a value in an interface is an allocation.
func (p *pairs) Push(any) {}
func (p *pairs) Pop() any { *p = (*p)[:len(*p)-1]; return nil }

// merged returns the number of tokens of a word by byte pair encoding: it begins with single bytes, and merges the
// neighbours that together are the token of the lowest rank until no neighbours are a token.
func merged(word string, ranks map[string]uint32) int {
	// Where the part that starts at a byte ends, and where the part before it starts. ends is 0 at a byte that starts no part.
	ends, before := make([]int, len(word)), make([]int, len(word)+1)
	for i := range ends {
		ends[i], before[i+1] = i+1, i
	}
	var next pairs
	add := func(start int) {
		if middle := ends[start]; middle < len(word) {
			if rank, ok := ranks[word[start:ends[middle]]]; ok {
				next = append(next, pair{rank, start, ends[middle]})
				heap.Fix(&next, len(next)-1)
			}
		}
	}
	for i := range ends {
		add(i)
	}
	parts := len(word)
	for len(next) > 0 {
		p := next[0]
		heap.Pop(&next)
		middle := ends[p.start]
		if middle == 0 || middle >= p.end || ends[middle] != p.end { // another merge took one of the two
			continue
		}
		ends[p.start], ends[middle], before[p.end] = p.end, 0, p.start
		parts--
		add(p.start)
		if p.start > 0 {
			add(before[p.start])
		}
	}
	return parts
}
