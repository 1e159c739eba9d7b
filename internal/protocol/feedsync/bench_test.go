package feedsync

import (
	"bytes"
	"fmt"
	"testing"
)

// states returns a document with n marks of entries, in the form of lektor-share.
func states(n int) []byte {
	d := New(RSS, "t", "", "")
	for i := range n {
		it, _ := create(fmt.Sprintf("80af8e84e5ef7ae6b68acb8d1987e58e3e5731dd:%016x:S", i),
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

func BenchmarkWithContent(b *testing.B) {
	content := []byte(`<item><title>Entry 5, with a title of usual length</title><guid isPermaLink="false">80af8e84e5ef7ae6b68acb8d1987e58e3e5731dd:0000000000000001:S</guid><category>read</category><lektor:feed>http://feed1.example/</lektor:feed><lektor:entry>http://feed1.example/entries/1.html</lektor:entry></item>`)
	it := &Item{}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := it.WithContent(canonical(content)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	d, _ := Parse(states(20_000))
	b.ReportAllocs()
	for b.Loop() {
		d.Bytes()
	}
}
