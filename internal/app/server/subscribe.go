package server

import (
	"cmp"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/protocol/greader"
	"github.com/lektordir/lektor/internal/protocol/opml"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/undo"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// origin is the origin of feeds that clients name, see [subscriptions.Subscription]. It is not the URL
// of a document in a private network, so fetchers refuse private addresses for these feeds. Their
// messages have it after "named by".
const origin = "a client of lektor-serve"

// maxURL is the maximum length of a feed's URL, in bytes.
const maxURL = 8 << 10

// editor changes the subscriptions of a user.
type editor struct {
	*View
	w        *commit.Writer
	recorded undo.Span // the last change
}

// edit calls do with an editor. One request at a time edits a lektor-dir, because folders are read
// and written back.
func (c *request) edit(do func(*editor) error) error {
	c.lib.editing.Lock()
	defer c.lib.editing.Unlock()
	v, err := c.currentView()
	if err != nil {
		return err
	}
	w, err := feedfiles.NewWriter(v.dir, commit.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	return do(&editor{View: v, w: w})
}

// record records changes in the journal of undo that has the client's marks.
func (e *editor) record(changes ...subscriptions.Change) {
	e.recorded = e.moving(func(m *undo.Mover, _ map[string]bool) { m.Settings(changes...) })
}

// whenFree calls do again while a fetcher has the feed locked, for ten seconds.
func (e *editor) whenFree(do func() error) error {
	err := workers.WhileBusy(e.request.r.Context(), e.dir.Options().Sleep, workers.Patience, nil, commit.IsBusy, do)
	if commit.IsBusy(err) {
		return &httpError{http.StatusConflict, "the feed is being fetched; try again later"}
	}
	return err
}

// refuses returns the reason why a client may not add a feed, and the origin for one that it may.
func refuses(url string, allow []netip.Prefix) (from string, err error) {
	switch {
	case feedurl.Check(url) != nil:
		return "", bad("%v", feedurl.Check(url))
	case !feedurl.IsHTTP(url):
		return "", bad("%s: not an http or https URL", feedurl.Brief(feedurl.Public(url)))
	case strings.Contains(subscriptions.DefaultName(url), ".."):
		return "", bad("%s: the host has two dots in a row", feedurl.Brief(url))
	case len(url) > maxURL:
		return "", bad("%s: the URL is longer than 8 KiB", feedurl.Brief(feedurl.Public(url)))
	case feedurl.Public(url) != url:
		return "", bad("the URL has a user or password; subscribe to it with lektor-fetch add")
	}
	why, addr := fetch.RefusesHost(url, allow)
	switch {
	case addr.IsValid():
		return "", &httpError{http.StatusForbidden, why + "; the server allows it with --allow " +
			netip.PrefixFrom(addr, addr.BitLen()).String()}
	case why != "":
		return "", bad("%s", why)
	}
	if ignored, private := fetch.RefusesHost(url, nil); ignored != "" && private.IsValid() {
		return "", nil // the owner of the server allows it, so the fetcher must not refuse it
	}
	return origin, nil
}

// subscribe subscribes to a feed, or adds it to folders if it is subscribed to. It leaves a due
// marker, so that a fetcher fetches a new feed at once, and looks for the feed if the URL is that of a
// page: the server makes no requests.
func (e *editor) subscribe(url, title string, folders []string) (hash string, err error) {
	if entryname.IsFeedHash(url) {
		url = cmp.Or(subscriptions.PublicURL(e.dir, e.feedOf(url)), url)
	}
	url = subscriptions.FeedURL(url)
	if hash = e.feedOf(url); hash != "" && feedfiles.Subscribed(e.dir, hash) {
		if schedule.Checked(e.dir, hash).IsZero() {
			e.due(hash) // an earlier request may have been interrupted before that
		}
		return hash, e.change(hash, title, folders, nil)
	}
	from, err := refuses(url, e.request.opts.AllowPrivate)
	if err != nil {
		return "", err
	}
	folders = slices.DeleteFunc(slices.Clone(folders), func(f string) bool { return f == "" })
	if err := checkFolders(folders); err != nil {
		return "", err
	}
	sub := &subscriptions.Subscription{ID: url, Alias: feedfiles.OneField(title), Categories: folders, Origin: from,
		Discover: true}
	err = e.whenFree(func() error {
		_, err := subscriptions.Add(e.w, e.dir, sub, subscriptions.AddOptions{Record: e.record})
		return err
	})
	if err != nil {
		return "", err
	}
	e.due(sub.Hash)
	return sub.Hash, nil
}

// due leaves a due marker. Without one the feed is fetched later.
func (e *editor) due(hash string) {
	if err := schedule.AddMarker(e.dir, hash); err != nil {
		e.Store.S.Report.Warn("%v", err)
	}
}

// checkFolders returns an error if feeds cannot be in a folder.
func checkFolders(folders []string) error {
	for _, f := range folders {
		if strings.ContainsAny(f, "\n\r\x00") {
			return bad("%q is not a name of a folder", termsafe.Brief(f))
		}
	}
	if err := settings.Check("categories", strings.Join(folders, "\n")); err != nil {
		return bad("%v", err)
	}
	return nil
}

// unsubscribe ends the subscription of a feed. Its entries stay. A feed that another program
// delivers is no longer shown.
func (e *editor) unsubscribe(hash string) error {
	return e.whenFree(func() error { return subscriptions.Remove(e.w, e.dir, e.present(hash), e.record) })
}

// change sets the title of a feed, unless it is empty, and its folders.
func (e *editor) change(hash, title string, add, remove []string) error {
	if title = strings.TrimSpace(feedfiles.OneField(title)); title != "" {
		f, err := e.dir.ReadFeed(hash)
		if f == nil {
			return err
		}
		// Clients send back the title that they were shown, which may have the error of the feed behind it.
		if a := subscriptions.ReadAbout(e.dir, hash); title != f.Title() && (a == nil || title != shownTitle(a)) {
			if err := e.set(hash, "alias", title); err != nil {
				return err
			}
		}
	}
	if len(add)+len(remove) == 0 {
		return nil
	}
	before := settings.Categories(e.dir, hash)
	after := refoldered(before, add, remove)
	if slices.Equal(before, after) {
		return nil
	}
	if err := checkFolders(after); err != nil {
		return err
	}
	return e.set(hash, "categories", strings.Join(after, "\n"))
}

// firstTitle reports whether a title is the one that a feed, or the page that it was, had until it was
// fetched: Capy and Readrops send the title that they know with each move.
func (e *editor) firstTitle(title, hash, named string) bool {
	f, _ := e.dir.ReadFeed(hash)
	if f == nil || f.Alias != "" {
		return false
	}
	ids := []string{f.ID, named}
	if entryname.IsFeedHash(named) {
		if page, _ := e.dir.ReadFeed(named); page != nil {
			ids = append(ids, page.ID)
		}
	}
	title, _, _ = strings.Cut(title, " (") // the error
	return slices.ContainsFunc(ids, func(id string) bool { return subscriptions.DefaultName(id) == title })
}

// refoldered returns folders without some and with others. These take the place of the first that is
// removed, since clients may see only the first folder.
func refoldered(before, add, remove []string) []string {
	remove = slices.DeleteFunc(slices.Clone(remove), sameFolder(add...))
	after := slices.DeleteFunc(slices.Clone(before), sameFolder(remove...))
	at := slices.IndexFunc(before, sameFolder(remove...))
	if at < 0 {
		at = len(after)
	}
	for _, f := range add {
		if i := slices.IndexFunc(after, sameFolder(f)); i >= at {
			f = after[i]
			after = slices.Delete(after, i, i+1)
		} else if i >= 0 || f == "" {
			continue
		}
		after = slices.Insert(after, at, f)
		at++
	}
	return after
}

// refolder moves feeds out of a folder, and into others.
func (e *editor) refolder(in map[*catalog.Feed]bool, add []string, name string) error {
	var failed error
	for _, f := range e.Feeds {
		if in[f] {
			failed = cmp.Or(failed, e.change(f.Hash, "", add, []string{name}))
		}
	}
	return failed
}

// set sets a setting of a feed.
func (e *editor) set(hash, key, value string) error {
	if err := settings.Check(key, value); err != nil {
		return bad("%v", err)
	}
	return e.whenFree(func() error { return subscriptions.Set(e.w, e.dir, e.present(hash), key, value, e.record) })
}

// present returns the feed that a subscription has become while this request waited for it.
func (e *editor) present(hash string) string {
	return cmp.Or(subscriptions.Successor(e.dir, hash), hash)
}

// folders returns the names of the folders among the ids of streams, made safe as [View.folders] does.
func folders(ids []string) (names []string) {
	for _, id := range ids {
		if s, ok := greader.ParseStream(id); ok && s.Kind == greader.Label {
			names = append(names, strings.TrimSpace(termsafe.Clean(s.Name)))
		}
	}
	return names
}

// editSubscription implements subscription/edit.
func (c *request) editSubscription() error {
	action, add, remove := c.values.Get("ac"), folders(c.values["a"]), folders(c.values["r"])
	ids := c.values["s"]
	if len(ids) == 0 && action == "edit" && len(add) > 0 { // Read You adds a folder so
		v, err := c.currentView()
		if err == nil {
			_, err = v.withLabels(add, true)
		}
		return err
	}
	if len(ids) == 0 {
		return bad("s: no feed")
	}
	return c.edit(func(e *editor) error {
		for i, id := range ids {
			s, ok := greader.ParseStream(id)
			if !ok || s.Kind != greader.Feed {
				return bad("s: not the id of a feed")
			}
			title := ""
			if titles := c.values["t"]; i < len(titles) {
				title = termsafe.Line(titles[i])
			}
			hash := e.feedOf(s.Name)
			if hash == "" && action != "subscribe" {
				return &httpError{http.StatusNotFound, "s: unknown feed"}
			}
			if len(add) > 0 && e.firstTitle(title, hash, s.Name) {
				title = ""
			}
			var err error
			switch {
			case action == "subscribe":
				_, err = e.subscribe(s.Name, title, add)
			case action == "unsubscribe":
				err = e.unsubscribe(hash)
			case action == "edit" && len(remove) == 0 && !e.all && len(add) > 0:
				err = e.change(hash, title, add, e.folders(e.Feed(hash))) // Capy and Readrops move feeds so
			case action == "edit":
				err = e.change(hash, title, add, remove)
			default:
				err = bad("ac: subscribe, unsubscribe or edit")
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// quickAdd implements subscription/quickadd.
func (c *request) quickAdd() error {
	query := strings.TrimSpace(c.values.Get("quickadd"))
	url := strings.TrimPrefix(query, "feed/")
	if url == "" {
		return bad("quickadd: no URL")
	}
	answer := greader.QuickAdd{Query: query}
	err := c.edit(func(e *editor) error {
		hash, err := e.subscribe(withScheme(url), "", nil)
		if err != nil {
			return err
		}
		answer.Results, answer.StreamID = 1, greader.FeedID(hash)
		if f, _ := e.dir.ReadFeed(hash); f != nil {
			answer.Name = titleOf(f)
		}
		return nil
	})
	if refused, ok := errors.AsType[*httpError](err); ok {
		answer.Error, err = refused.message, nil
	}
	if err != nil {
		return err
	}
	return c.json(answer)
}

// withScheme returns a URL that a user may have typed without its scheme: as a host, perhaps with a port and a path.
func withScheme(url string) string {
	host, _, _ := strings.Cut(url, "/")
	name, port, _ := strings.Cut(host, ":")
	if strings.Contains(name, ".") && strings.Trim(port, "0123456789") == "" {
		return "https://" + url
	}
	return url
}

// label returns the folder or flag that a request names in s, or in t without "user/-/label/".
func label(v greader.Values) (string, error) {
	id := v.Get("s")
	if id == "" && v.Get("t") != "" {
		id = greader.LabelID(v.Get("t"))
	}
	s, ok := greader.ParseStream(id)
	if !ok || s.Kind != greader.Label {
		return "", bad("s: not the id of a folder")
	}
	return s.Name, nil
}

// labelsOf returns the names of a flag.
func (v *View) labelsOf(flag string) []entrystore.Label {
	return slices.DeleteFunc(slices.Clone(v.ownLabels), func(l entrystore.Label) bool { return l.Flag != flag })
}

// hasLabel reports whether something has a label: a folder, or a flag unless folder is set.
func (v *View) hasLabel(name string, folder bool) bool {
	_, empty := v.named(name, true)
	return empty || len(v.feedsIn(name, allFolders)) > 0 || !folder && v.flag(name) != ""
}

// withLabels names a flag for each label that nothing has, or makes an empty folder of it. It returns the
// lektor-dir with these.
func (v *View) withLabels(names []string, folder bool) (*View, error) {
	names = slices.DeleteFunc(names, func(name string) bool { return v.hasLabel(name, folder) })
	if len(names) == 0 {
		return v, nil
	}
	if err := checkLabels(names); err != nil {
		return nil, err
	}
	err := v.request.edit(func(e *editor) error {
		taken := e.usedFlags() + "d" // d is that of saved entries
		for _, l := range e.ownLabels {
			taken += l.Flag
		}
		old := len(e.ownLabels)
		for _, name := range names {
			l := entrystore.Label{Name: name}
			if e.hasLabel(name, folder) {
				continue
			}
			if !folder {
				l.Flag = strings.TrimLeft(flags, taken)
				if l.Flag == "" {
					return bad("a: all flags have names; to use one for another label, see etc/view/labels")
				}
				l.Flag = l.Flag[:1]
				taken += l.Flag
			}
			e.ownLabels = append(e.ownLabels, l)
		}
		return entrystore.EditLabels(e.dir.Path(), nil, e.ownLabels[old:])
	})
	if err != nil {
		return nil, err
	}
	return v.request.currentView()
}

// checkLabels returns an error if a flag or folder cannot have one of the names.
func checkLabels(names []string) error {
	for _, name := range names {
		if folderKey(name) == "" || strings.Contains(name, "\t") {
			return bad("%q is not a label", termsafe.Brief(name))
		}
	}
	return checkFolders(names)
}

// renameTag implements rename-tag, for folders and flags.
func (c *request) renameTag() error {
	name, err := label(c.values)
	if err != nil {
		return err
	}
	to := folders(c.values["dest"])
	if len(to) != 1 || to[0] == "" {
		return bad("dest: not the id of a folder")
	}
	return c.edit(func(e *editor) error {
		if err := checkLabels(to); err != nil {
			return err
		}
		hashes := e.feedsIn(name, allFolders)
		l, folder := e.named(name, true)
		if flag := e.flag(name); flag != "" && !folder && len(hashes) == 0 {
			if e.hasLabel(to[0], false) && e.flag(to[0]) != flag {
				return bad("dest: %q is another label", to[0])
			}
			return entrystore.EditLabels(e.dir.Path(), e.labelsOf(flag), []entrystore.Label{{Flag: flag, Name: to[0]}})
		}
		if len(hashes) == 0 && !folder {
			return &httpError{http.StatusNotFound, "s: unknown folder"}
		}
		if err := e.refolder(hashes, to, name); err != nil || !folder {
			return err
		}
		return entrystore.EditLabels(e.dir.Path(), []entrystore.Label{l}, []entrystore.Label{{Name: to[0]}})
	})
}

// disableTag implements disable-tag: the feeds of a folder leave it, or the entries with a flag
// lose it, and the flag its label. A label that nothing has is passed over: NetNewsWire and Read You end the
// subscriptions of a folder before, and with the last one the folder is gone.
func (c *request) disableTag() error {
	name, err := label(c.values)
	if err != nil {
		return err
	}
	return c.edit(func(e *editor) error {
		hashes := e.feedsIn(name, allFolders)
		l, folder := e.named(name, true)
		gone := []entrystore.Label{l}
		var err error
		switch flag := e.flag(name); {
		case len(hashes) > 0:
			err = e.refolder(hashes, nil, name)
		case flag != "" && !folder:
			gone = e.labelsOf(flag)
			flagged := e.In(greader.Stream{Kind: greader.Label, Name: name}, 0, 0, true)
			_, err = e.Mark(slices.Collect(flagged), "", flag)
		}
		if err != nil {
			return err
		}
		return entrystore.EditLabels(e.dir.Path(), gone, nil)
	})
}

// export implements subscription/export: an OPML list without passwords.
func (c *request) export() error {
	v, err := c.currentView()
	if err != nil {
		return err
	}
	names := v.Folders()
	var feeds []opml.Feed
	for _, f := range v.Feeds {
		s, err := v.subscription(f, names)
		if err != nil {
			return err
		}
		if feedurl.IsHTTP(s.URL) {
			feeds = append(feeds, opml.Feed{URL: s.URL, Title: s.Title, HTMLURL: s.HTMLURL,
				Categories: f.About.Folders})
		}
	}
	data := termsafe.XML(opml.New("Subscriptions").Update(feeds, subscriptions.FeedURL).Bytes())
	c.w.Header().Set("Content-Disposition", `attachment; filename="subscriptions.opml"`)
	return c.data(typeOPML, data)
}

// importList implements subscription/import: the body is an OPML list. Feeds that clients may not
// add are left out.
func (c *request) importList() error {
	doc, err := opml.Parse(c.body)
	if err != nil {
		return bad("%v", err)
	}
	var subs []*subscriptions.Subscription
	refused := 0
	for _, f := range doc.Feeds() {
		id := subscriptions.FeedURL(f.URL)
		from, err := refuses(id, c.opts.AllowPrivate)
		if err != nil || len(id) >= atomicfile.MaxLine || checkFolders(f.Categories) != nil {
			refused++
			continue
		}
		s := &subscriptions.Subscription{ID: id, Alias: f.Title, Link: f.HTMLURL, About: f.Description,
			Categories: f.Categories, Origin: from}
		if s.Alias == f.URL {
			s.Alias = ""
		}
		subs = append(subs, s)
	}
	if refused > 0 {
		c.s.Report.Warn("import: %d feeds were left out: clients may only add http and https URLs without passwords, of public hosts", refused)
	}
	return c.edit(func(e *editor) error {
		list, err := subscriptions.AddAll(e.w, e.dir, subs, subscriptions.AddAllOptions{})
		for _, s := range list.Added {
			e.due(s.Hash)
		}
		return notBusy(err)
	})
}

// notBusy returns an error as one for the client if it is only about feeds that a fetcher has
// locked.
func notBusy(err error) error {
	for _, one := range humanize.Errors(err) {
		if !commit.IsBusy(one) {
			return err
		}
	}
	if err != nil {
		return &httpError{http.StatusConflict, "some feeds are being fetched; send the list again later"}
	}
	return nil
}
