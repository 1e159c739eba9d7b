package feedstage

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/dir/stage"
	"github.com/lektordir/lektor/lektordir"
)

// changed returns a copy of an entry with changes.
func changed(e feedconv.Entry, changes ...func(*feedconv.Entry)) feedconv.Entry {
	for _, change := range changes {
		change(&e)
	}
	return e
}

func guid(s string) func(*feedconv.Entry)  { return func(e *feedconv.Entry) { e.GUID, e.ID = s, s } }
func link(s string) func(*feedconv.Entry)  { return func(e *feedconv.Entry) { e.Link = s } }
func title(s string) func(*feedconv.Entry) { return func(e *feedconv.Entry) { e.Title = s } }
func undated(e *feedconv.Entry)            { e.PubDate = time.Time{} }
func encl(urls ...string) func(*feedconv.Entry) {
	return func(e *feedconv.Entry) {
		e.Enclosures = nil
		for _, u := range urls {
			e.Enclosures = append(e.Enclosures, feedconv.Enclosure{URL: u, Type: "audio/mpeg", Length: 1})
		}
	}
}

// numbered returns n entries; rename makes the guid of each.
func numbered(n int, rename func(i int) string, changes ...func(*feedconv.Entry)) (doc []feedconv.Entry) {
	for i := range n {
		doc = append(doc, changed(entry(fmt.Sprint(i), fmt.Sprint("text ", i)), append(changes, guid(rename(i)))...))
	}
	return doc
}

func prefix(p string) func(i int) string { return func(i int) string { return fmt.Sprint(p, i) } }

// The guid identifies an entry. Entries with different guids are one entry only if the feed has
// regenerated its guids: more guids of a document are new than stayed, and each of these entries has
// link, title, text and enclosures of one that has left, and a date or enclosures.
func TestGuidsOfTheirOwn(t *testing.T) {
	news := changed(entry("", ""), title("News"), link("http://r.example/"))
	alike := func(changes ...func(*feedconv.Entry)) (docs [][]feedconv.Entry) {
		for i := range 3 {
			docs = append(docs, []feedconv.Entry{changed(news, append(changes, guid(fmt.Sprint("n", i)))...)})
		}
		return docs
	}
	audio := alike(undated)
	for i := range audio {
		encl(fmt.Sprintf("https://r.example/%d.mp3", i))(&audio[i][0])
	}
	old, regenerated := numbered(6, prefix("a")), numbered(6, prefix("b"))
	podcast := func(p string, changes ...func(*feedconv.Entry)) []feedconv.Entry {
		doc := numbered(5, prefix(p), append(changes, link(""))...)
		for i := range doc {
			encl(fmt.Sprintf("https://r.example/%d.mp3?token=%s", i, p))(&doc[i])
		}
		return doc
	}
	same := numbered(4, prefix("a"))
	for i := range same {
		same[i].Title, same[i].Link, same[i].Content = "News", "http://r.example/", ""
	}
	same2 := slices.Clone(same)
	for i := range same2 {
		guid(fmt.Sprint("b", i))(&same2[i])
	}
	for name, c := range map[string]struct {
		docs [][]feedconv.Entry
		want int
	}{
		"undated":                          {alike(undated), 3},
		"undated, with an unparsed date":   {alike(undated, func(e *feedconv.Entry) { e.PubDateRaw = "Invalid Date" }), 3},
		"undated, other enclosures":        {audio, 3},
		"undated, equal enclosures":        {alike(undated, encl("https://r.example/a.mp3")), 1},
		"dated, alone in their documents":  {alike(), 1},
		"dated, no link":                   {alike(link("")), 3},
		"a new one beside some that stay":  {[][]feedconv.Entry{{old[0], old[1], news}, {changed(news, guid("x")), old[0], old[1]}}, 4},
		"a new one like one that left":     {[][]feedconv.Entry{old, append([]feedconv.Entry{changed(old[5], guid("x"))}, old[:5]...)}, 7},
		"all regenerated":                  {[][]feedconv.Entry{old, regenerated, old, regenerated}, 6},
		"regenerated, with a new one":      {[][]feedconv.Entry{old, append([]feedconv.Entry{changed(entry("new", "new"))}, regenerated[:5]...)}, 7},
		"most regenerated":                 {[][]feedconv.Entry{old, append(slices.Clone(regenerated[:4]), old[4:]...)}, 6},
		"some regenerated":                 {[][]feedconv.Entry{old, append(slices.Clone(regenerated[:2]), old[2:]...)}, 8},
		"regenerated at each fetch":        {[][]feedconv.Entry{old, regenerated, numbered(6, prefix("c")), numbered(6, prefix("d"))}, 6},
		"regenerated, undated":             {[][]feedconv.Entry{numbered(3, prefix("a"), undated), numbered(3, prefix("b"), undated)}, 6},
		"a podcast without links":          {[][]feedconv.Entry{podcast("a"), podcast("b"), podcast("c")}, 5},
		"an undated podcast without links": {[][]feedconv.Entry{podcast("a", undated), podcast("b", undated)}, 5},
		"its guids stay":                   {[][]feedconv.Entry{podcast("a"), podcast("a")}, 5},
		"all alike but for the guids":      {[][]feedconv.Entry{same, same2}, 4},
		"alike, some stay":                 {[][]feedconv.Entry{same, {same2[0], same2[1], same2[2], same[3]}}, 7},
		"alike but for the enclosures":     {[][]feedconv.Entry{{changed(news, encl("http://a/1")), changed(news, encl("http://a/2"))}, {changed(news, encl("http://a/2")), changed(news, encl("http://a/1"))}}, 2},
		"a link blog":                      {[][]feedconv.Entry{{changed(news, guid("1"), link("http://other.example/"))}, {changed(news, guid("2"), link("http://other.example/"), func(e *feedconv.Entry) { e.PubDate = e.PubDate.Add(time.Hour) })}}, 2},
		"microposts": {[][]feedconv.Entry{
			{changed(news, guid("1"), title(""), link("http://m.example/1")), changed(news, guid("2"), title(""), link("http://m.example/2"))},
			{changed(news, guid("3"), title(""), link("http://m.example/3")), changed(news, guid("4"), title(""), link("http://m.example/4"))},
		}, 4},
	} {
		for _, atom := range []bool{false, true} {
			wo := newWorld(t, lektordir.UpdateAlways)
			for range 2 {
				for _, doc := range c.docs {
					if atom {
						wo.fetchWith(stage.AnyDate, doc...)
					} else {
						wo.fetch(doc...)
					}
				}
			}
			if got := len(wo.contents()); got != c.want && !(atom && c.docs[0][0].GUID == "") {
				t.Errorf("%s, atom %t: %d entries, want %d: %q", name, atom, got, c.want, wo.contents())
			}
		}
	}
}

// A site that moves to another host has other links, and often other guids, all at once. An entry is
// known by its title, text, date and enclosures if most entries of the document, and at least two, are.
func TestMovedSite(t *testing.T) {
	at := func(host string, n int, changes ...func(*feedconv.Entry)) (doc []feedconv.Entry) {
		for i := range n {
			page := fmt.Sprintf("https://%s/%d", host, i)
			e := changed(entry(fmt.Sprint(i), fmt.Sprint("text ", i)), guid(page), link(page), func(e *feedconv.Entry) {
				e.PubDate = e.PubDate.Add(time.Duration(i) * time.Hour)
			})
			doc = append(doc, changed(e, changes...))
		}
		return doc
	}
	with := func(docs ...[]feedconv.Entry) []feedconv.Entry { return slices.Concat(docs...) }
	oneDate := func(e *feedconv.Entry) { e.PubDate = entry("", "").PubDate }
	content := func(s string) func(*feedconv.Entry) { return func(e *feedconv.Entry) { e.Content = s } }
	fresh := []feedconv.Entry{changed(entry("https://b/new", "new"), link("https://b/new"))}
	for name, c := range map[string]struct {
		docs [][]feedconv.Entry
		want int
	}{
		"guids and links":          {[][]feedconv.Entry{at("a", 4), at("b", 4), at("c", 4), at("a", 4)}, 4},
		"links, and no guids":      {[][]feedconv.Entry{at("a", 4, guid("")), at("b", 4, guid(""))}, 4},
		"with a new one":           {[][]feedconv.Entry{at("a", 4), with(fresh, at("b", 4))}, 5},
		"most are new":             {[][]feedconv.Entry{at("a", 2), at("b", 5)}, 7},
		"one alone":                {[][]feedconv.Entry{at("a", 1), at("b", 1)}, 2},
		"undated":                  {[][]feedconv.Entry{at("a", 3, undated), at("b", 3, undated)}, 6},
		"without a text":           {[][]feedconv.Entry{at("a", 3, content("")), at("b", 3, content(""))}, 6},
		"all alike":                {[][]feedconv.Entry{at("a", 3, title("T"), content("x"), oneDate), at("b", 3, title("T"), content("x"), oneDate)}, 6},
		"the old one is there too": {[][]feedconv.Entry{at("a", 3), with(at("a", 3), at("b", 3))}, 6},
		"some stayed":              {[][]feedconv.Entry{at("a", 4), with(at("a", 2), at("b", 4)[2:])}, 6},
		"some changed":             {[][]feedconv.Entry{at("a", 4), with(at("b", 3), []feedconv.Entry{changed(at("b", 4)[3], title("T"))})}, 5},
	} {
		wo := newWorld(t, lektordir.UpdateAlways)
		for range 2 {
			for _, doc := range c.docs {
				wo.fetch(doc...)
			}
		}
		if got := len(wo.contents()); got != c.want {
			t.Errorf("%s: %d entries, want %d: %q", name, got, c.want, wo.contents())
		}
	}
}

// An entry that has moved from the host of the feed's id is known by the paths of its URLs, its title, text and date,
// even if it is the only one, has no date, or its audio moves along.
func TestMovedFromHome(t *testing.T) {
	at := func(site string, changes ...func(*feedconv.Entry)) []feedconv.Entry {
		page := site + "/2026/one?p=1"
		return []feedconv.Entry{changed(entry("1", "text"), append([]func(*feedconv.Entry){guid(page), link(page), encl(site+"/1.mp3", "https://cdn.example/1.ogg")}, changes...)...)}
	}
	const home = "http://example.com"
	for name, c := range map[string]struct {
		docs [][]feedconv.Entry
		want int
	}{
		"once":                    {[][]feedconv.Entry{at(home), at("http://b.example")}, 1},
		"with a port, and back":   {[][]feedconv.Entry{at(home), at("http://b.example:8080"), at(home)}, 1},
		"twice":                   {[][]feedconv.Entry{at(home), at("http://b.example"), at("http://c.example")}, 1},
		"to https, too":           {[][]feedconv.Entry{at(home), at("https://b.example")}, 1},
		"undated, without a text": {[][]feedconv.Entry{at(home, undated, func(e *feedconv.Entry) { e.Content = "" }), at("http://b.example", undated, func(e *feedconv.Entry) { e.Content = "" })}, 1},
		"without guids":           {[][]feedconv.Entry{at(home, guid("")), at("http://b.example", guid(""))}, 1},
		"without links":           {[][]feedconv.Entry{at(home, link("")), at("http://b.example", link(""))}, 1},
		"retitled":                {[][]feedconv.Entry{at(home), at("http://b.example", title("T"))}, 2},
		"another path":            {[][]feedconv.Entry{at(home), at("http://b.example", guid("http://b.example/2"), link("http://b.example/2"))}, 2},
		"other audio":             {[][]feedconv.Entry{at(home), at("http://b.example", encl("http://b.example/2.mp3"))}, 2},
		"the old one is there":    {[][]feedconv.Entry{at(home), append(at(home), at("http://b.example")...)}, 2},
		"not from home":           {[][]feedconv.Entry{at("http://a.example"), at("http://b.example")}, 2},
		"a host that begins so":   {[][]feedconv.Entry{at("http://example.com.example"), at("http://b.example")}, 2},
	} {
		wo := newWorld(t, lektordir.UpdateAlways)
		for range 2 {
			for _, doc := range c.docs {
				wo.fetch(doc...)
			}
		}
		if got := len(wo.contents()); got != c.want {
			t.Errorf("%s: %d entries, want %d: %q", name, got, c.want, wo.contents())
		}
	}
}

// Links that change together are those of a site that has moved, and no corrections. One that changes
// alone is.
func TestMovedLinks(t *testing.T) {
	to := func(host string, doc []feedconv.Entry) []feedconv.Entry {
		doc = slices.Clone(doc)
		for i := range doc {
			doc[i].Link = fmt.Sprintf("https://%s/%d", host, i)
		}
		return doc
	}
	old := to("a", numbered(4, prefix("g")))
	wo := newWorld(t, lektordir.UpdateAlways)
	wo.fetch(old...)
	one := slices.Clone(old)
	one[0].Link = "https://a/zero"
	if res := wo.fetch(one...); len(res.Updated) != 1 {
		t.Errorf("one link: %+v", res)
	}
	moved := to("b", old)
	if res := wo.fetch(moved...); len(res.Updated) != 0 {
		t.Errorf("all links: %+v", res)
	}
	// The links are recorded: later, when most entries are new ones, they are not taken for changes.
	later := append(numbered(9, prefix("n")), moved...)
	if res := wo.fetch(later...); len(res.New) != 9 || len(res.Updated) != 0 {
		t.Errorf("later: %+v", res)
	}
	moved[1].Title = "T"
	if res := wo.fetch(to("c", moved)...); len(res.Updated) != 1 {
		t.Errorf("moved and retitled: %+v", res)
	}
}

// An entry that an update has joined with another guid keeps that: a new guid with its old values is
// another entry.
func TestRegeneratedOnce(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateNew)
	a, b := entry("a", "A"), entry("b", "B")
	wo.fetch(a, b)
	wo.fetch(changed(a, guid("a2")), changed(b, guid("b2")))
	a2 := changed(a, guid("a2"), title("changed"))
	wo.fetch(a2, changed(b, guid("b3")), changed(a, guid("a3")))
	wo.want("all", "a=A", "b=B", "b=B", "changed=A")
}

// scheme returns a copy of an entry whose guid and link have another scheme.
func scheme(to string, e feedconv.Entry) feedconv.Entry {
	swap := func(s string) string {
		if _, rest, ok := strings.Cut(s, "://"); ok {
			return to + "://" + rest
		}
		return s
	}
	e.Link = swap(e.Link)
	guid(swap(e.GUID))(&e)
	encs := slices.Clone(e.Enclosures)
	for i := range encs {
		encs[i].URL = swap(encs[i].URL)
	}
	e.Enclosures, e.Comments = encs, swap(e.Comments)
	return e
}

// An entry whose guid and link differ from a known one in the scheme alone is that entry. A feed that
// alternates changes nothing, and its journal does not grow after the first time.
func TestOtherScheme(t *testing.T) {
	const site = "http://example.com/"
	base := changed(entry("1", "text"), guid(site+"?p=1"), link(site+"1"), encl(site+"1.mp3"), func(e *feedconv.Entry) { e.Comments = site + "1#comments" })
	secure := scheme("https", base)
	for name, c := range map[string]struct{ a, b []feedconv.Entry }{
		"guid and link":        {[]feedconv.Entry{base}, []feedconv.Entry{secure}},
		"from https":           {[]feedconv.Entry{secure}, []feedconv.Entry{base}},
		"guid alone":           {[]feedconv.Entry{base}, []feedconv.Entry{changed(base, guid(secure.GUID))}},
		"link alone":           {[]feedconv.Entry{base}, []feedconv.Entry{changed(base, link(secure.Link))}},
		"no guid":              {[]feedconv.Entry{changed(base, guid(""))}, []feedconv.Entry{changed(secure, guid(""))}},
		"push and poll":        {[]feedconv.Entry{base, entry("z", "z")}, []feedconv.Entry{changed(base, guid(secure.GUID))}},
		"a shared guid":        {[]feedconv.Entry{changed(base, guid(site)), changed(entry("2", "2"), guid(site))}, []feedconv.Entry{changed(secure, guid("https://example.com/")), scheme("https", changed(entry("2", "2"), guid(site)))}},
		"a shared guid, links": {[]feedconv.Entry{changed(base, guid("g")), changed(entry("2", "2"), guid("g"))}, []feedconv.Entry{changed(secure, guid("g")), scheme("https", changed(entry("2", "2"), guid("g")))}},
		"new guids, too":       {numbered(3, prefix("a")), []feedconv.Entry{scheme("https", numbered(3, prefix("b"))[0]), scheme("https", numbered(3, prefix("b"))[1]), scheme("https", numbered(3, prefix("b"))[2])}},
		"no link":              {[]feedconv.Entry{changed(base, link(""))}, []feedconv.Entry{changed(secure, link(""))}},
	} {
		for _, policy := range []lektordir.Policy{lektordir.UpdateNew, lektordir.UpdateAlways, lektordir.UpdateNever} {
			for _, read := range []bool{false, true} {
				wo := newWorld(t, policy)
				wo.fetch(c.a...)
				if read {
					wo.readAll()
				}
				names, size := wo.names(), 0
				for i := range 6 {
					doc := c.b
					if i%2 == 1 {
						doc = c.a
					}
					var wanted []stage.Wanted
					res := wo.transact(func(tx *stage.Stager) (stage.Result, error) {
						f := &feedconv.Feed{Format: feedconv.RSS20, Entries: doc}
						wanted, _ = tx.Wanted(Document(f, policy, nil))
						return tx.Stage(t.Context(), Document(f, policy, nil))
					})
					if len(res.New)+len(res.Updated)+len(wanted) > 0 || !slices.Equal(wo.names(), names) {
						t.Errorf("%s, %s, read %t, fetch %d: %+v, wanted %v", name, policy, read, i, res, wanted)
					}
					if now := wo.journal(); i > 0 && now != size {
						t.Errorf("%s, %s: fetch %d: the journal grew from %d to %d bytes", name, policy, i, size, now)
					}
					size = wo.journal()
				}
				// A change is one of the same entry.
				doc := slices.Clone(c.b)
				doc[0].Content += " more"
				res := wo.fetch(doc...)
				if wantUpdated := policy == lektordir.UpdateAlways || policy == lektordir.UpdateNew && !read; len(res.New) > 0 || (len(res.Updated) == 1) != wantUpdated {
					t.Errorf("%s, %s, read %t: changed: %+v", name, policy, read, res)
				}
				more := slices.Clone(c.a)
				more[0].Content += " more"
				if res := wo.fetch(more...); len(res.New)+len(res.Updated) > 0 {
					t.Errorf("%s, %s, read %t: the change in the other scheme: %+v", name, policy, read, res)
				}
			}
		}
	}
}

// Entries of one document that differ in the scheme alone are two.
func TestTwinsOfSchemes(t *testing.T) {
	base := changed(entry("1", "text"), guid("http://example.com/1"))
	secure := changed(scheme("https", base), title("secure"))
	for _, docs := range [][][]feedconv.Entry{
		{{base, secure}}, {{secure, base}}, {{base}, {base, secure}}, {{secure}, {base, secure}},
		{{base}, {changed(secure, title("1"))}, {base, secure}},
	} {
		wo := newWorld(t, lektordir.UpdateNew)
		for range 3 {
			for _, doc := range docs {
				wo.fetch(doc...)
			}
		}
		if got := len(wo.contents()); got != 2 {
			t.Errorf("%d entries", got)
		}
		last := docs[len(docs)-1]
		if res := wo.fetch(last...); res.Unchanged != 2 {
			t.Errorf("%+v", res)
		}
		// Alone, each is still itself.
		for _, e := range last {
			if res := wo.fetch(e); res.Unchanged != 1 {
				t.Errorf("%s alone: %+v", e.GUID, res)
			}
		}
		if got := len(wo.contents()); got != 2 {
			t.Errorf("%d entries in the end", got)
		}
	}
}

// The other scheme counts for documents in one transaction, for lists of complete feeds, for the
// times of arrival, and for imported entries.
func TestOtherSchemeElsewhere(t *testing.T) {
	base := changed(entry("1", "text"), guid("http://example.com/1"))
	secure := scheme("https", base)
	wo := newWorld(t, lektordir.UpdateNew)
	wo.transact(func(tx *stage.Stager) (stage.Result, error) {
		var err error
		for _, e := range []feedconv.Entry{base, secure} {
			_, err = tx.Stage(t.Context(), apart(&feedconv.Feed{Format: feedconv.RSS20, Entries: []feedconv.Entry{e}}, wo.p))
		}
		if err != stage.ErrOverlap {
			t.Errorf("staged twice: %v", err)
		}
		return stage.Result{}, nil
	})
	first, second := wo.fetch(base), wo.fetch(secure)
	if !slices.Equal(first.Ranked, second.Ranked) || second.Ranked[0] == "" {
		t.Errorf("ranked %q, then %q", first.Ranked, second.Ranked)
	}
	for _, c := range []struct{ imported, feed feedconv.Entry }{
		{secure, base}, {base, secure},
		{changed(secure, guid("")), base}, {changed(base, guid("")), changed(secure, guid("urn:1"))},
	} {
		for _, feedFirst := range []bool{false, true} {
			wo := newWorld(t, lektordir.UpdateNew)
			move := func() stage.Result {
				return wo.transact(func(tx *stage.Stager) (stage.Result, error) {
					return StageImported(t.Context(), tx, []feedconv.Entry{c.imported}, func(int) bool { return true })
				})
			}
			if feedFirst {
				wo.fetch(c.feed)
			}
			for range 2 {
				move()
				wo.fetch(c.feed)
			}
			if got := len(wo.contents()); got != 1 {
				t.Errorf("imported %s, %s, first %t: %d entries", c.imported.GUID, c.imported.Link, feedFirst, got)
			}
			wo.transact(func(tx *stage.Stager) (stage.Result, error) {
				arrived, err := tx.Arrived(Document(&feedconv.Feed{Format: feedconv.RSS20, Entries: []feedconv.Entry{scheme("https", c.feed)}}, "", nil))
				if err != nil || len(arrived) != 1 {
					t.Errorf("%v, %v", arrived, err)
				}
				return stage.Result{}, nil
			})
		}
	}
}

// names returns the unique names of all versions, in order.
func (wo *world) names() (names []string) {
	wo.t.Helper()
	refs, err := wo.d.List(wo.t.Context(), lektordir.ListOptions{AllVersions: true})
	if err != nil {
		wo.t.Fatal(err)
	}
	for _, r := range refs {
		names = append(names, r.Unique)
	}
	return names
}

// journal returns the size of the journal.
func (wo *world) journal() int {
	wo.t.Helper()
	b, err := os.ReadFile(seen(wo))
	if err != nil {
		wo.t.Fatal(err)
	}
	return len(b)
}

// Random publishers add, change and withdraw entries, regenerate all guids, move between http and
// https, and have dates of the build. Each entry is there exactly once, as it was last published, and
// a document that is fetched again changes nothing.
func TestLives(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		wo := newWorld(t, lektordir.UpdateNew)
		type post struct {
			e    feedconv.Entry
			live bool
		}
		var posts []*post
		generation, to := 0, "http"
		podcast, links, fixed := rnd.IntN(2) == 0, rnd.IntN(3) > 0, rnd.IntN(2) == 0
		links = links || !podcast
		builds, alternates, shift := rnd.IntN(2) == 0, rnd.IntN(4) == 0, time.Duration(0)
		published := map[int]bool{}
		for range 25 {
			for range rnd.IntN(3) {
				i := len(posts)
				e := changed(entry("", fmt.Sprint("text ", rnd.IntN(3))), title([]string{"", "News", fmt.Sprint(i)}[rnd.IntN(3)]))
				e.PubDate = e.PubDate.Add(time.Duration(i) * time.Hour)
				if e.Link = ""; links {
					e.Link = []string{fmt.Sprint("http://s.example/", i), "http://s.example/"}[rnd.IntN(2)]
				}
				if podcast {
					encl(fmt.Sprintf("http://s.example/%d.mp3?t=1", i))(&e)
				}
				posts = append(posts, &post{e, true})
			}
			for _, p := range posts {
				if rnd.IntN(12) == 0 {
					p.live = false
				}
			}
			regenerate := !fixed && rnd.IntN(8) == 0
			if fixed && builds {
				shift += time.Hour // dates of the build
			}
			if alternates || rnd.IntN(8) == 0 {
				to = map[string]string{"http": "https", "https": "http"}[to]
			}
			switch rnd.IntN(6) {
			case 0, 1:
				for i, p := range posts {
					if rnd.IntN(4) == 0 && p.live && published[i] && !regenerate {
						p.e.Content += "."
					}
				}
			}
			if regenerate {
				generation++
			}
			var doc []feedconv.Entry
			for i, p := range slices.Backward(posts) {
				if !p.live {
					continue
				}
				published[i] = true
				e := scheme(to, p.e)
				e.PubDate = e.PubDate.Add(shift)
				guid(fmt.Sprintf("%s://s.example/?g=%d&p=%d", to, generation, i))(&e)
				if fixed {
					guid(fmt.Sprint("urn:", i))(&e)
				}
				doc = append(doc, e)
			}
			if len(doc) > 0 {
				wo.fetch(doc...)
				if size := wo.journal(); rnd.IntN(2) == 0 {
					if res := wo.fetch(doc...); res.Unchanged != len(doc) || wo.journal() != size {
						t.Errorf("seed %d: the same document again: %+v", seed, res)
					}
				}
			}
		}
		got, want := wo.contents(), []string(nil)
		for i, p := range posts {
			if published[i] {
				want = append(want, p.e.Title+"="+p.e.Content)
			}
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("seed %d: %d entries, want %d:\n%q\n%q", seed, len(got), len(want), got, want)
		}
	}
}
