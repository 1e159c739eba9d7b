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
// An entry is a directory of small files: title, id, content, the link feed, and optional
// files; lektor-dir(5) describes them. The package parses no feed documents and never uses
// the network; package feedconv parses them, and package fromfeed brings its entries here.
//
// # Concurrency
//
// A [Dir] is safe for concurrent use. Any number of processes may use one lektor-dir at the
// same time, on one machine, or on several if the network file system has working locks.
// [Dir.Deliver] locks the feed. Viewers take no lock: they mark an entry by renaming it. If
// two viewers rename the same entry, the second one gets an error for which
// errors.Is(err, fs.ErrNotExist) is true.
//
// # Getting started
//
// A fetcher makes the directory ([Create]), finishes interrupted deliveries ([Dir.Recover]),
// and delivers entries ([Dir.Deliver]). An entry that was delivered before is not delivered
// again.
//
//	dir, err := lektordir.Create(path, nil)
//	if err != nil {
//		return err
//	}
//	if err := dir.Recover(ctx); err != nil {
//		log.Print(err) // some feeds failed; the others were recovered
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
//	refs, err := dir.List(ctx, lektordir.ListOptions{}) // the refs are valid even if err is not nil
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
// A function that reads several feeds or entries skips malformed ones. It returns the valid
// ones together with the errors, joined. Unknown files are ignored and stay in place.
//
// # Symbolic links
//
// The directories tmp, new, cur, src and etc may be symbolic links, and so may an entry.
// Any other directory, for example new/$feed, src/$feed/etc or etc/fetch, should not be one:
// the package reads through such a link, but refuses to write, move or delete behind it. When
// a file is written, it replaces a link of the same name.
//
// # Limits
//
// A listing is not a snapshot: an entry that arrives or is deleted during the listing may or
// may not be in it. An entry that is moved during the listing is in it, once: a directory that
// has changed is read again, up to three times in all. If you act on the absence of an entry,
// set [ListOptions.Strict].
//
// The renames by [Dir.SetFlags] and [Dir.Remove] are not synced: a power cut may undo those of
// the last seconds.
package lektordir
