// Package lektordir reads and writes lektor-dirs: feeds as directories, the
// way maildir keeps mail.
//
// A lektor-dir holds feeds under src/ and entries under tmp/ (being written),
// new/ (delivered) and cur/ (taken by a viewer):
//
//	tmp/$feed/$unique/           an entry being written
//	new/$feed/$unique/           delivered; no viewer has taken it yet
//	cur/$feed/$unique;2,FLAGS/   taken by a viewer
//	src/$feed/{id,name,…}        the feed
//
// An entry is a directory of small files: title, id, content, the link feed,
// and optional files. The package deals in bytes, names and renames; it
// knows neither XML nor HTTP.
//
// # Concurrency
//
// Any number of processes may read, deliver to and view one lektor-dir at the
// same time, ours and others, on one machine or on several over a network
// file system with working locks. Viewers take no lock: they rename an entry, and
// the second of two gets an error that [errors.Is] fs.ErrNotExist.
// [Dir.Deliver] takes one lock for each feed. A [Dir] is safe for concurrent use.
//
// # To begin with
//
// A fetcher makes the directory ([Create]), finishes what an earlier run left ([Dir.Recover]),
// and delivers entries ([Dir.Deliver]); an entry that was delivered before is not delivered
// again.
//
//	dir, err := lektordir.Create(path, nil)
//	if err != nil {
//		return err
//	}
//	if err := dir.Recover(ctx); err != nil {
//		log.Print(err) // of some feeds; the others were recovered
//	}
//	feed := &lektordir.Feed{ID: lektordir.NormalizeID(url), Name: "Clock"}
//	entry := lektordir.Entry{ID: guid, Title: "Noon", Content: []byte("<b>Noon</b>"), Type: "text/html"}
//	res, err := dir.Deliver(ctx, feed, lektordir.UpdateNew, entry)
//
// A viewer opens a directory ([Open]), lists entries ([Dir.List]), reads entries
// ([Dir.ReadEntry]), and marks them read ([Dir.SetFlags]).
//
//	dir, err := lektordir.Open(path, nil)
//	if err != nil {
//		return err
//	}
//	refs, err := dir.List(ctx, lektordir.ListOptions{}) // the refs are good even if err is not nil
//	for _, ref := range refs {
//		e, err := dir.ReadEntry(ref, lektordir.FieldTitle|lektordir.FieldContent)
//		if err != nil {
//			continue // moved by another viewer, or malformed
//		}
//		fmt.Printf("%s: %s\n%s\n", dir.FeedOf(ref).Title(), e.Title, e.Content)
//		_, err = dir.SetFlags(ref, "S", "") // S: it was read
//	}
//
// # Malformed names and entries
//
// Every walk goes on past what is malformed, and returns what it found
// together with the errors, joined. Unknown files are kept and ignored.
//
// # Links
//
// tmp, new, cur, src and etc may be links themselves, and so may an entry. A link
// in the place of a directory below them, new/$feed, src/$feed/etc or etc/fetch
// say, is read through, and nothing is written, moved or deleted behind it: that
// is an error. A link in the place of a file is replaced by a file.
//
// # What is not promised
//
// A listing is no snapshot: entries that arrive or are deleted while it is made
// may or may not be in it, and none is in it twice. Entries that move meanwhile
// are in it, as directories that changed are read again, three times at most.
// Callers that act on an entry's absence set [ListOptions.Strict]. A viewer's
// moves are not synced; a power cut may undo the last seconds of them.
package lektordir
