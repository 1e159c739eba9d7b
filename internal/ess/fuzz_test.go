package ess

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"testing/iotest"
)

// FuzzDecode: nothing makes a decoder fail; it reads the same whole, in pieces
// and strictly; what it read is written so that it is read again.
func FuzzDecode(f *testing.F) {
	f.Fuzz(func(t *testing.T, in []byte) {
		var warned []Warning
		doc, err := Decode(in, func(w Warning) { warned = append(warned, w) })
		var warnedPieces []Warning
		d := &Decoder{Warn: func(w Warning) { warnedPieces = append(warnedPieces, w) }}
		d.Reset(iotest.OneByteReader(bytes.NewReader(in)))
		pieces, perr := d.Decode()
		if (err == nil) != (perr == nil) {
			t.Fatalf("%v, in pieces %v", err, perr)
		}
		if !slices.Equal(warned, warnedPieces) {
			t.Fatalf("%v, in pieces %v", warned, warnedPieces)
		}
		if err != nil {
			return
		}
		d = &Decoder{Strict: true}
		d.ResetBytes(in)
		strict, err := d.Decode()
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range []*Document{pieces, strict} {
			if !other.Build.Equal(doc.Build) || other.Kind != doc.Kind || other.URL != doc.URL || !slices.Equal(other.Entries, doc.Entries) {
				t.Fatalf("%+v, otherwise %+v", doc, other)
			}
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
			t.Fatalf("%v, written and read %v", want, again.Entries)
		}
	})
}

// FuzzTop: what is held is what sorting all entries gives, in one piece or in
// two workers.
func FuzzTop(f *testing.F) {
	f.Fuzz(func(t *testing.T, a, b []byte, n uint8) {
		docs := [][]byte{a, b}
		size := 1 + int(n)
		top, other := NewTop(size), NewTop(size)
		var samples []sample
		for i, in := range docs {
			doc, err := Decode(in, nil)
			if err != nil {
				continue
			}
			for j := range doc.Entries {
				doc.Entries[j].Feed = string(bytes.ReplaceAll([]byte(doc.Entries[j].Feed), []byte(","), []byte("%2C")))
			}
			samples = append(samples, sample{kind: NNO, entries: doc.Entries})
			if err := []*Top{top, other}[i].AddBytes(in, nil); err != nil {
				t.Fatal(err)
			}
		}
		top.Merge(other)
		if want, got := bruteForce(samples, size), top.Entries(); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
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
