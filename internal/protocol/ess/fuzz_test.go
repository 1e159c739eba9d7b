package ess

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// FuzzDecode checks that Decode and DecodeStrict read the same entries from any input, and
// that these entries can be written and read again.
func FuzzDecode(f *testing.F) {
	f.Fuzz(func(t *testing.T, in []byte) {
		doc, err := Decode(in, nil)
		if err != nil {
			return
		}
		strict, err := DecodeStrict(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !strict.Build.Equal(doc.Build) || strict.Kind != doc.Kind || strict.URL != doc.URL || !slices.Equal(strict.Entries, doc.Entries) {
			t.Fatalf("Decode: %+v, DecodeStrict: %+v", doc, strict)
		}
		want := slices.Clone(doc.Entries)
		for i := range want {
			want[i].Feed = EscapeURL(want[i].Feed)
		}
		slices.SortStableFunc(want, FeedEntry.Compare)
		again, err := Decode(AppendNNO(nil, doc.Build, doc.Entries), func(w Warning) { t.Fatal(w) })
		if err != nil {
			t.Fatal(err)
		}
		for i := range again.Entries {
			again.Entries[i].Feed = EscapeURL(again.Entries[i].Feed)
		}
		slices.SortStableFunc(again.Entries, FeedEntry.Compare)
		if !again.Build.Equal(doc.Build) || !slices.Equal(again.Entries, want) {
			t.Fatalf("%v is written and read as %v", want, again.Entries)
		}
	})
}

// FuzzTop checks that Top returns the same entries as sorting all of them, in either order of
// the documents.
func FuzzTop(f *testing.F) {
	f.Fuzz(func(t *testing.T, a, b []byte, n uint8) {
		size := 1 + int(n)
		for _, docs := range [][][]byte{{a, b}, {b, a}} {
			top := NewTop(size)
			var samples []sample
			for _, in := range docs {
				doc, err := Decode(in, nil)
				if err != nil {
					continue
				}
				own := sample{kind: ESS, build: Minute(doc.Build)}
				other := sample{kind: NNO}
				escape := func(url string) string { return strings.ReplaceAll(url, ",", "%2C") }
				for _, e := range doc.Entries {
					e.Feed = escape(e.Feed)
					if e.Feed == escape(doc.URL) {
						own.entries = append(own.entries, e)
					} else {
						other.entries = append(other.entries, e)
					}
				}
				if doc.Kind == ESS && len(own.entries) == 0 {
					return // newestOf does not support an ESS without entries, which replaces those of its feed
				}
				for _, s := range []sample{own, other} {
					if len(s.entries) > 0 {
						samples = append(samples, s)
					}
				}
				top.Add(doc)
			}
			want, got := newestOf(samples), top.Entries()
			want = want[:min(size, len(want))]
			if top.Lost() {
				want = want[:min(len(want), len(got))]
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%v, want %v", got, want)
			}
		}
	})
}

func TestSeeds(t *testing.T) {
	for _, target := range []string{"FuzzDecode", "FuzzTop"} {
		if files, err := os.ReadDir("testdata/fuzz/" + target); err != nil || len(files) < 3 {
			t.Errorf("%s: %d seeds, %v", target, len(files), err)
		}
	}
}
