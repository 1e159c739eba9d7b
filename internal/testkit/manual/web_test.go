package manual

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/server"
)

// web is the Internet of the examples: a proxy on a loopback address that answers for all hosts
// in them.
type web struct {
	proxy *httptest.Server
	certs string // path of the certificate of the hosts
}

// hosts are the hosts in examples.
var hosts = []string{"example.org", "example.com", "daringfireball.net", "me.example"}

// newWeb starts a web. me.example serves the files of a directory.
func newWeb(t *testing.T, files string) *web {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the hosts of the examples"}, DNSNames: hosts,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	w := &web{certs: filepath.Join(t.TempDir(), "certs.pem")}
	if err := os.WriteFile(w.certs, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o666); err != nil {
		t.Fatal(err)
	}
	site := sites(files)
	secure := httptest.NewUnstartedServer(site)
	secure.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that have closed the connection
	secure.StartTLS()
	t.Cleanup(secure.Close)
	w.proxy = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			tunnel(rw, secure.Listener.Addr().String())
			return
		}
		site.ServeHTTP(rw, r)
	}))
	t.Cleanup(w.proxy.Close)
	return w
}

// tunnel connects the client of a CONNECT with an address.
func tunnel(w http.ResponseWriter, addr string) {
	to, err := net.Dial("tcp", addr)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer to.Close()
	from, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer from.Close()
	if _, err := io.WriteString(from, "HTTP/1.1 200 Connected\r\n\r\n"); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(to, buffered)
		_ = to.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(from, to)
}

// sites returns the handler of all hosts.
func sites(files string) http.Handler {
	mux := http.NewServeMux()
	page := server.Doc("text/html", `<!DOCTYPE html><title>A page</title>
<link rel="alternate" type="application/rss+xml" href="/feed">`)
	for _, host := range []string{"example.org", "example.com", "daringfireball.net"} {
		mux.HandleFunc(host+"/{$}", page)
		mux.HandleFunc(host+"/blog", page)
		mux.HandleFunc(host+"/blog/", page)
		mux.HandleFunc(host+"/feed", server.Doc("application/rss+xml", blog(host)))
		mux.HandleFunc(host+"/feeds/main", server.Doc("application/rss+xml", blog(host)))
	}
	for i := range 5 {
		mux.HandleFunc(fmt.Sprintf("daringfireball.net/%d", i+1), server.Doc("text/html", fmt.Sprintf(
			"<!DOCTYPE html><title>A post</title><nav>Home</nav><article><p>Text of number %d.</p><p>%s</p></article>", i+1, strings.Repeat("More of it, which the feed has not. ", 20))))
	}
	mux.HandleFunc("daringfireball.net/2001", server.Doc("application/atom+xml", archive))
	mux.HandleFunc("example.org/broken", server.Answer(http.StatusGone, "gone"))
	mux.HandleFunc("example.com/flagged.nno", server.Doc("application/nno", flagged(time.Now())))
	// These files are served by me.example, and at the address of the proxy.
	mux.Handle("/", http.FileServer(http.Dir(files)))
	mux.HandleFunc("/ping", server.Doc("text/xml", `<?xml version="1.0"?><result success="true" msg="Thanks for the ping."/>`))
	return mux
}

// blog returns a feed of five entries, from the last five hours.
func blog(host string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0"?><rss version="2.0"><channel><title>Blog of %s</title><link>https://%[1]s/</link><description>d</description><link xmlns="http://www.w3.org/2005/Atom" rel="prev-archive" href="/2001"/>`, host)
	for i, title := range []string{"A frost", "Tea at noon", "Third", "Fourth", "Fifth"} {
		fmt.Fprintf(&b, "<item><title>%s</title><author>wren@%s (wren)</author><link>https://%[2]s/%[3]d</link><guid>https://%[2]s/%[3]d</guid><pubDate>%s</pubDate><description>Text of number %[3]d.</description></item>",
			title, host, i+1, published(i).Format(time.RFC1123Z))
	}
	b.WriteString("</channel></rss>")
	return b.String()
}

// archive is the archive of daringfireball.net. The archives of other hosts are missing.
const archive = `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><title>2001</title><id>urn:x:2001</id>
<updated>2001-01-02T00:00:00Z</updated><fh:archive/><link rel="current" href="/feed"/>
<entry><title>Old 2</title><id>urn:x:2</id><updated>2001-01-02T00:00:00Z</updated></entry>
<entry><title>Old 1</title><id>urn:x:1</id><updated>2001-01-01T00:00:00Z</updated></entry></feed>`

// started is the beginning of the test. Dates are relative to it, so the hosts' answers do not
// change.
var started = time.Now().UTC().Truncate(time.Minute)

// published returns the date of an entry of a blog.
func published(i int) time.Time { return started.Add(-time.Duration(i+1) * time.Hour) }

// flagged returns an NNO document with two entries of the blog at example.com.
func flagged(now time.Time) string {
	build := now.Unix() / 60
	var b strings.Builder
	fmt.Fprintf(&b, "%d,", build*60)
	for i, title := range []string{"A frost", "Tea at noon"} {
		sum := 0
		for _, c := range title {
			sum += int(c)
		}
		fmt.Fprintf(&b, "\nhttps://example.com/feed,%d,%d,", build-published(i).Unix()/60, sum%256)
	}
	return strings.TrimSuffix(b.String(), ",")
}
