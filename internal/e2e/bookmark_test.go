package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// The secrets of the bookmark services, and a page with characters that have a meaning in URLs, JSON
// and shells.
const (
	bookmarkToken = `se"cr\et&1`
	bookmarkPage  = "https://page.example/?a=1&b=%20+@;'$(touch ran)"
)

// bookmarks is the three services on one server, as their APIs are documented. It remembers pages by
// service.
type bookmarks struct {
	mu    sync.Mutex
	pages map[string]string
}

func (b *bookmarks) save(service, page string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pages[service] = page
}

func (b *bookmarks) saved(service string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pages[service]
}

func (b *bookmarks) linkding(w http.ResponseWriter, r *http.Request) {
	var in struct {
		URL, Title string
		Unread     bool
	}
	switch err := json.NewDecoder(r.Body).Decode(&in); {
	case r.Header.Get("Authorization") != "Token "+bookmarkToken:
		http.Error(w, `{"detail": "Invalid token."}`, http.StatusUnauthorized)
	case r.Method != http.MethodPost || err != nil || in.URL == "" || r.Header.Get("Content-Type") != "application/json":
		http.Error(w, `{"url": ["Enter a valid URL.`+"\x1b[2J"+`"]}`, http.StatusBadRequest)
	default:
		w.WriteHeader(http.StatusCreated)
		b.save("linkding", fmt.Sprint(in.URL, " ", in.Title, " ", in.Unread))
		fmt.Fprint(w, `{"id": 1}`)
	}
}

func (b *bookmarks) pinboard(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch page := q.Get("url"); {
	case q.Get("auth_token") != "user:"+bookmarkToken:
		http.Error(w, "API requires authentication", http.StatusUnauthorized)
	case page == "" || q.Get("description") == "":
		fmt.Fprint(w, `{"result_code":"missing url"}`)
	case strings.HasPrefix(b.saved("pinboard"), page) && q.Get("replace") == "no":
		fmt.Fprint(w, `{"result_code":"item already exists"}`)
	case strings.HasSuffix(page, "/wrong"):
		fmt.Fprint(w, `{"result_code":"something went wrong"}`)
	default:
		b.save("pinboard", page+" "+q.Get("description")+" "+q.Get("toread"))
		fmt.Fprint(w, `{"result_code":"done"}`)
	}
}

func (b *bookmarks) token(w http.ResponseWriter, r *http.Request) {
	for name, want := range map[string]string{"grant_type": "password", "client_id": "1_id", "client_secret": bookmarkToken, "username": "me", "password": "pass word+"} {
		if r.PostFormValue(name) != want {
			http.Error(w, `{"error":"invalid_grant","error_description":"Invalid `+name+`"}`, http.StatusBadRequest)
			return
		}
	}
	fmt.Fprint(w, `{"access_token":"bearer-1","expires_in":3600,"token_type":"bearer","scope":null,"refresh_token":"x"}`)
}

func (b *bookmarks) wallabag(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer bearer-1" || r.PostFormValue("url") == "" {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusUnauthorized)
		return
	}
	b.save("wallabag", r.PostFormValue("url")+" "+r.PostFormValue("title"))
	fmt.Fprint(w, `{"id":1}`)
}

// TestBookmark: each service saves the page and its title, and curl gets no secret as an argument.
// If a page is not saved, the message says why, and the exit status is 1.
func TestBookmark(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip(err)
	}
	b := &bookmarks{pages: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/bookmarks/", b.linkding)
	mux.HandleFunc("/v1/posts/add", b.pinboard)
	mux.HandleFunc("/oauth/v2/token", b.token)
	mux.HandleFunc("/api/entries.json", b.wallabag)
	s := httptest.NewServer(mux)
	defer s.Close()
	k := newDesk(t, map[string]string{"curl": `printf '%s\n' "$@" >>"$HOME/arguments"; exec ` + curl + ` "$@"`})
	k.env = append(k.env, "XDG_CONFIG_HOME=")
	secrets := map[string]string{"linkding": bookmarkToken, "pinboard": "user:" + bookmarkToken, "wallabag": "1_id\n" + bookmarkToken + "\nme\npass word+"}
	keep := func(service, base, secret string, mode os.FileMode) {
		name := ".config/lektor/bookmark/" + service
		k.write(name, base+"\n"+secret+"\n")
		if err := os.Chmod(filepath.Join(k.home, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	title := "Tom & \"Jerry\" \\ ünï\n@x 'q' $(touch ran)"
	for service, want := range map[string]string{
		"linkding": bookmarkPage + " " + strings.ReplaceAll(title, "\n", " ") + " true", "pinboard": bookmarkPage + " " + title + " yes", "wallabag": bookmarkPage + " " + title,
	} {
		keep(service, s.URL+"/", secrets[service], 0o600)
		for range 2 { // a second time, too, if the service has the page
			if out := k.run("lektor-bookmark", service, bookmarkPage, title); out != "" || b.saved(service) != want {
				t.Errorf("%s: it prints %q, and saved %q, not %q", service, out, b.saved(service), want)
			}
		}
		k.run("lektor-bookmark", service, bookmarkPage+"2")
	}
	script, err := filepath.Abs(samples + "/lektor-bookmark")
	if err != nil {
		t.Fatal(err)
	}
	entry, err := (&testdir.Dir{Path: k.dir}).Entry("https://a.example/feed", "new", "1700000009.1.h", "title=By lektor-view", "id=https://a.example/9")
	if err != nil {
		t.Fatal(err)
	}
	k.env = append(k.env, "LEKTOR_BOOKMARK=sh "+script+" linkding")
	k.view("bookmark", entry)
	if want := "https://a.example/9 By lektor-view true"; b.saved("linkding") != want {
		t.Errorf("lektor-view bookmark saves %q, not %q", b.saved("linkding"), want)
	}
	arguments := k.read("arguments")
	for _, secret := range []string{bookmarkToken, "secr", "1_id", "pass word", "bearer-1"} {
		if !strings.Contains(arguments, bookmarkPage) || strings.Contains(arguments, secret) {
			t.Errorf("%q is an argument of curl, or the page is not:\n%s", secret, arguments)
		}
	}
	for _, c := range []struct {
		service, page, base, secret string
		mode                        os.FileMode
		status                      int
		says                        string
	}{
		{"linkding", "", s.URL, bookmarkToken, 0o600, 1, "no URL that begins with http"},
		{"linkding", bookmarkPage, s.URL, "wrong", 0o600, 1, "HTTP 401 from " + s.URL + "/api/bookmarks/" + "; correct the URL or the secrets in "},
		{"linkding", bookmarkPage, s.URL, bookmarkToken, 0o640, 1, "others may read the secrets; run: chmod 600 '"},
		{"linkding", bookmarkPage, s.URL + "/nowhere", bookmarkToken, 0o600, 1, "HTTP 404 from "},
		{"linkding", bookmarkPage, "http://127.0.0.1:1", bookmarkToken, 0o600, 1, "no answer from "},
		{"pinboard", "https://page.example/wrong", s.URL, "user:" + bookmarkToken, 0o600, 1, `{"result_code":"something went wrong"}`},
		{"wallabag", bookmarkPage, s.URL, "1_id\nwrong\nme\npass word+", 0o600, 1, "Invalid client_secret"},
		{"delicious", bookmarkPage, s.URL, "", 0o600, 2, "usage: "},
	} {
		keep(c.service, c.base, c.secret, c.mode)
		out, err := k.start("lektor-bookmark", c.service, c.page, "T").CombinedOutput()
		exit, _ := errors.AsType[*exec.ExitError](err)
		if exit == nil || exit.ExitCode() != c.status || !strings.Contains(string(out), c.says) || strings.Contains(string(out), bookmarkToken) || strings.Contains(string(out), "\x1b") {
			t.Errorf("%s %s: %v, %q; want status %d and %q", c.service, c.page, err, out, c.status, c.says)
		}
	}
	k.harmless()
}
