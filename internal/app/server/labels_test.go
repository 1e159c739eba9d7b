package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// labels returns the file of labels.
func (f *fixture) labels() string {
	b, _ := os.ReadFile(filepath.Join(f.Path, "etc/view/labels"))
	return string(b)
}

// tagged returns the labels that tag/list has, in its order.
func (f *fixture) tagged() string {
	f.t.Helper()
	var list []string
	for _, tag := range strings.Split(f.get("tag/list"), `"id":"`) {
		if id, rest, ok := strings.Cut(tag, `"`); ok && strings.HasPrefix(id, "user/-/label/") {
			_, kind, _ := strings.Cut(rest, `"type":"`)
			list = append(list, strings.TrimPrefix(id, "user/-/label/")+" "+kind[:3])
		}
	}
	return strings.Join(list, ", ")
}

// A label that a client adds to entries is a name of a flag: the first that is neither used nor named.
func TestLabels(t *testing.T) {
	const label = "user/-/label/"
	f := newFixture(t)
	ids := []string{f.add(feedA, 100, "a").Long(), f.add(feedA, 200, "S").Long()}
	f.post("edit-tag", "i", ids[1], "a", label+"To read")
	f.post("edit-tag", "i", ids[0], "a", label+"to READ", "a", label+"Recipes", "a", label+"News")
	if got, want := f.flags(), "100:abc 200:Sb"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := f.labels(), "b\tTo read\nc\tRecipes\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := f.tagged(), "News fol, a/b fol, flag-a tag, To read tag, Recipes tag"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if seconds, _ := f.ids("s=" + label + "Recipes"); len(seconds) != 1 || seconds[0] != 100 {
		t.Errorf("got %v", seconds)
	}
	if items := f.contents(f.get("stream/items/contents?i=" + ids[1])); !strings.Contains(strings.Join(items[0].Categories, " "), label+"To read") {
		t.Errorf("got %+v", items)
	}
	f.post("edit-tag", "i", ids[0], "r", label+"To read", "r", label+"flag-a")
	f.post("rename-tag", "s", label+"Recipes", "dest", label+"Food")
	f.post("disable-tag", "s", label+"To read")
	if got := f.flags() + " " + f.labels(); got != "100:c 200:S c\tFood\n" {
		t.Errorf("got %q", got)
	}
	f.post("rename-tag", "s", label+"flag-c", "dest", label+"Cooking")
	if got := f.labels(); got != "c\tCooking\n" {
		t.Errorf("got %q", got)
	}
	// Two flags with one name would be one label, and a folder would hide that of a flag.
	f.text(f.do("POST", api+"rename-tag", values("s", label+"flag-b", "dest", label+"cooking")), 400)
	f.text(f.do("POST", api+"rename-tag", values("s", label+"Cooking", "dest", label+"flag-b")), 400)
	f.text(f.do("POST", api+"rename-tag", values("s", label+"Cooking", "dest", label+"News")), 400)
	f.post("rename-tag", "s", label+"Cooking", "dest", label+"\x1b[1mcooking\u202e")
	if got := f.labels(); got != "c\t[1mcooking\n" {
		t.Errorf("got %q", got)
	}
	f.post("rename-tag", "s", label+"[1mcooking", "dest", label+"[1mCooking")
	f.post("rename-tag", "s", label+"[1mCooking", "dest", label+"Cooking")
	// The flag of saved entries is nobody else's, and notes of the user stay.
	if err := os.WriteFile(filepath.Join(f.Path, "etc/view/labels"), []byte("# mine\nc\tCooking\nb \tx\nno tab"), 0o666); err != nil {
		t.Fatal(err)
	}
	for c := 'a'; c <= 'z'; c++ {
		want := 200
		if c > 'x' {
			want = 400 // 24 letters are free: all but c, which has a name, and d
		}
		f.text(f.do("POST", api+"edit-tag", values("i", ids[0], "a", label+"New "+string(c))), want)
	}
	if got := f.labels(); !strings.HasPrefix(got, "# mine\nc\tCooking\nb \tx\nno tab\na\tNew a\n") || strings.Contains(got, "\nd\t") || !strings.HasSuffix(got, "\nz\tNew x\n") {
		t.Errorf("got %q", got)
	}
	f.text(f.do("POST", api+"edit-tag", values("i", ids[0], "a", label+"a\tb")), 400)
}

// A folder without feeds is made by edit-tag without items, as Readrops does, and by subscription/edit
// without a feed, as Read You does.
func TestEmptyFolder(t *testing.T) {
	const label = "user/-/label/"
	f := newFixture(t)
	f.post("edit-tag", "a", label+"One")
	f.post("edit-tag", "a", label+"o\u009bne")
	f.post("edit-tag", "a", label+"News")
	f.post("subscription/edit", "ac", "edit", "a", label+label+"Two/Three")
	if got, want := f.tagged(), "News fol, One fol, Two/Three fol, a/b fol"; got != want || f.labels() != "\tOne\n\tTwo/Three\n" {
		t.Errorf("got %s, want %s; %q", got, want, f.labels())
	}
	f.post("rename-tag", "s", label+"One", "dest", label+"1")
	f.post("subscription/edit", "ac", "edit", "s", "feed/"+f.a, "a", label+"1", "r", label+"News")
	f.post("disable-tag", "s", label+"Two/Three")
	if got, want := f.tagged(), "1 fol, News fol, a/b fol"; got != want || !strings.Contains(f.subscribed(), "Alpha http://a.example/ [1]") {
		t.Errorf("got %s, want %s", got, want)
	}
	f.post("disable-tag", "s", label+"1")
	if got, want := f.tagged(), "News fol, a/b fol"; got != want || f.labels() != "" {
		t.Errorf("got %s, want %s; %q", got, want, f.labels())
	}
	// An entry does not get a folder as its label.
	f.post("edit-tag", "a", label+"Empty")
	f.post("edit-tag", "i", f.add(feedA, 100, "-").Long(), "a", label+"Empty")
	if f.flags() != "100:new" {
		t.Errorf("got %s", f.flags())
	}
	for _, bad := range []string{"ac=edit", "ac=edit&a=" + read, "ac=edit&a=" + label + "a%09b", "ac=subscribe&a=" + label + "x"} {
		f.text(f.do("POST", api+"subscription/edit", bad), 400)
	}
}
