package lektordir_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/lektordir/lektor/lektordir"
)

// clock is the feed of the examples.
var clock = &lektordir.Feed{ID: "urn:example:clock", Name: "Clock"}

// temporary returns a new lektor-dir. A program would open that of its user.
func temporary() (d *lektordir.Dir, remove func()) {
	tmp, err := os.MkdirTemp("", "lektor-")
	if err != nil {
		log.Fatal(err)
	}
	d, err = lektordir.Create(filepath.Join(tmp, "feeds"), nil)
	if err != nil {
		log.Fatal(err)
	}
	return d, func() { os.RemoveAll(tmp) }
}

// put delivers an entry to the feed of the examples.
func put(d *lektordir.Dir, id, title string) {
	entry := lektordir.Entry{ID: id, Title: title, Content: []byte("It is time.\n")}
	if _, err := d.Deliver(context.Background(), clock, lektordir.UpdateNew, entry); err != nil {
		log.Fatal(err)
	}
}

// A fetcher delivers the entries of a document. An entry that was delivered before is not
// delivered again, even if it was deleted.
func ExampleDir_Deliver() {
	dir, remove := temporary()
	defer remove()
	ctx := context.Background()
	// Finish the deliveries in which an earlier run was interrupted.
	if err := dir.Recover(ctx); err != nil {
		log.Print(err)
	}
	found := []lektordir.Entry{
		{ID: "urn:example:clock:12", Title: "Noon", Content: []byte("<b>Noon</b>"), Type: "text/html"},
		{ID: "urn:example:clock:18", Title: "Six", PubDate: time.Unix(1700000000, 0)},
	}
	for range 2 {
		res, err := dir.Deliver(ctx, clock, lektordir.UpdateNew, found...)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(res.New), "new,", res.Unchanged, "known")
		for _, ref := range res.New {
			dir.Remove(ref)
		}
	}
	// Output:
	// 2 new, 0 known
	// 0 new, 2 known
}

// An importer delivers the entries of another reader, and marks those that the user has read or
// starred there.
func Example_importer() {
	dir, remove := temporary()
	defer remove()
	ctx := context.Background()
	imported := []struct {
		id, title  string
		read, star bool
	}{
		{"urn:example:clock:6", "Six in the morning", true, true},
		{"urn:example:clock:12", "Noon", false, false},
	}
	for _, e := range imported {
		res, err := dir.Deliver(ctx, clock, lektordir.UpdateNever, lektordir.Entry{ID: e.id, Title: e.title})
		if err != nil {
			log.Fatal(err) // the import can be repeated: no entry is delivered twice
		}
		for _, ref := range res.New {
			flags := ""
			if e.read {
				flags += "S"
			}
			if e.star {
				flags += "F"
			}
			if flags == "" {
				continue // the entry stays in new/
			}
			if ref, err = dir.SetFlags(ref, flags, ""); err != nil {
				log.Fatal(err)
			}
			fmt.Println(e.title, "has", ref.Flags())
		}
	}
	unread, err := dir.List(ctx, lektordir.ListOptions{Places: []lektordir.Place{lektordir.New}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(unread), "unread")
	// Output:
	// Six in the morning has FS
	// 1 unread
}

// A viewer lists entries by their names, and reads only the fields that it shows.
func ExampleDir_List() {
	dir, remove := temporary()
	defer remove()
	put(dir, "urn:example:clock:12", "Noon")
	put(dir, "urn:example:clock:18", "Six")

	dir, err := lektordir.Open(dir.Path(), nil)
	if err != nil {
		log.Fatal(err)
	}
	refs, err := dir.List(context.Background(), lektordir.ListOptions{})
	if err != nil {
		log.Print(err) // the refs are valid even then
	}
	for _, ref := range refs {
		e, err := dir.ReadEntry(ref, lektordir.FieldTitle)
		if err != nil {
			log.Print(err)
			continue
		}
		fmt.Println(dir.FeedOf(ref).Title(), "-", e.Title, "- unread:", ref.Unread())
	}
	// Output:
	// Clock - Noon - unread: true
	// Clock - Six - unread: true
}

// Setting flags moves the entry.
func ExampleDir_SetFlags() {
	dir, remove := temporary()
	defer remove()
	put(dir, "urn:example:clock:12", "Noon")

	refs, err := dir.List(context.Background(), lektordir.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	read, err := dir.SetFlags(refs[0], "SF", "")
	if err != nil {
		log.Fatal(err) // fs.ErrNotExist: another viewer was faster
	}
	fmt.Println(refs[0].Place, "to", read.Place, read.Flags(), read.Unread())
	// Output: new to cur FS false
}
