package feedsync

import (
	"bytes"
	"fmt"
	"testing"
)

// states makes a document of n states of entries, as lektor-share has them.
func states(n int) []byte {
	d := New(RSS, "t", "", "")
	for i := range n {
		it, _ := Create(fmt.Sprintf("80af8e84e5ef7ae6b68acb8d1987e58e3e5731dd:%016x:S", i),
			fmt.Appendf(nil, "<item><title>Entry number %d</title><link>https://example.com/entries/%d</link></item>", i, i), day0, "laptop-0123456789abcdef")
		d.Append(it)
	}
	return d.Bytes()
}

func BenchmarkParse(b *testing.B) {
	data := states(20_000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMerge(b *testing.B) {
	data := states(20_000)
	local, _ := Parse(data)
	for b.Loop() {
		in, _ := Parse(bytes.Clone(data))
		if c := local.Merge(in, Rules{}); len(c) > 0 {
			b.Fatal(len(c))
		}
	}
}
