package listener

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/protocol/rsscloud"
)

// saveWith runs Save, with a document that names a cloud at u.
func saveWith(t *testing.T, u string, o SaveOptions) (out, msgs string, err error) {
	t.Helper()
	cloud, perr := url.Parse(u)
	if perr != nil {
		t.Fatal(perr)
	}
	o.File, o.User, o.Password = filepath.Join(t.TempDir(), "feed.xml"), "bull", "hunter2"
	doc := fmt.Sprintf(`<rss version="2.0"><channel><title>t</title><cloud domain="%s" port="%s" path="/RPC2" registerProcedure="" protocol="xml-rpc"/></channel></rss>`, cloud.Hostname(), cloud.Port())
	if err := os.WriteFile(o.File, []byte(doc), 0o666); err != nil {
		t.Fatal(err)
	}
	var b, e bytes.Buffer
	err = Save(t.Context(), o, cmdline.NewStreams("test", nil, &b, &e))
	return b.String(), e.String(), err
}

// The password is sent only to its cloud: not to the target of a redirect, and, if the
// document names the cloud, not to a private address.
func TestSaveSendsItsPasswordToOneCloudOnly(t *testing.T) {
	var stolen []string
	thief := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		stolen = append(stolen, string(b))
		w.Write(rsscloud.EncodeResponse("http://thief.example/"))
	}))
	elsewhere := newServer(t, http.RedirectHandler(thief+"/RPC2", http.StatusTemporaryRedirect))
	path := ""
	honest := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path = r.URL.Path; path == "/RPC2" {
			http.Redirect(w, r, "/RPC2/", http.StatusPermanentRedirect)
			return
		}
		w.Write(rsscloud.EncodeResponse("http://static.example/bull/rss.xml"))
	}))
	allowed := Common{Fetch: fetch.Config{AllowPrivate: loopback, MaxRedirects: 5}}
	for _, o := range []SaveOptions{{Common: allowed}, {Cloud: elsewhere + "/RPC2", Common: Common{Fetch: fetch.Config{MaxRedirects: 5}}}} {
		if out, _, err := saveWith(t, elsewhere, o); err == nil || !strings.Contains(err.Error(), "another server") || out != "" || len(stolen) > 0 {
			t.Errorf("%q, %v, %q", out, err, stolen)
		}
	}
	if _, _, err := saveWith(t, thief, SaveOptions{}); err == nil || !strings.Contains(err.Error(), "--allow") || len(stolen) > 0 {
		t.Errorf("%v, %q", err, stolen)
	}
	// A redirect within the server is followed. An address that the user
	// names or allows may be private.
	for _, o := range []SaveOptions{{Common: allowed}, {Cloud: honest + "/RPC2", Common: Common{Fetch: fetch.Config{MaxRedirects: 5}}}} {
		if out, _, err := saveWith(t, honest, o); err != nil || out != "http://static.example/bull/rss.xml\n" || path != "/RPC2/" {
			t.Errorf("%q, %v, %s", out, err, path)
		}
	}
}

func TestDryRunsSendNothing(t *testing.T) {
	requests := 0
	cloud := newServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	out, msgs, err := saveWith(t, cloud, SaveOptions{DryRun: true})
	if err != nil || out != "" || !strings.Contains(msgs, "would be saved at "+cloud+"/RPC2 as bull") || strings.Contains(msgs, "hunter2") {
		t.Errorf("%q, %q, %v", out, msgs, err)
	}
	var b, e bytes.Buffer
	err = Ping(t.Context(), PingOptions{DryRun: true, Cloud: cloud + "/ping", Feeds: []string{"http://me:hunter2@a.example/"}}, cmdline.NewStreams("test", nil, &b, &e))
	if err != nil || !strings.Contains(e.String(), "http://a.example/: would notify "+cloud+"/ping") {
		t.Errorf("%q, %v", e.String(), err)
	}
	if requests != 0 {
		t.Errorf("%d requests", requests)
	}
}
