package listener

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/http/httpserver"
	"github.com/lektordir/lektor/internal/testkit/hub"
)

// pair writes a certificate with a serial number, and its key.
func pair(t *testing.T, dir string, serial int64) (cert, key string) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		when := time.Unix(1_800_000_000+serial, 0)
		if err := os.Chtimes(name, when, when); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestTLSWithCertificateFilesThatAreRenewed(t *testing.T) {
	w := newWorld(t, &hub.Hub{}, nil)
	dir := t.TempDir()
	cert, key := pair(t, dir, 1)
	conf, err := httpserver.Certificate(cert, key, w.log)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httpserver.NewServer(w.l, w.log)
	go s.Serve(tls.NewListener(httpserver.Limit(inner, 8), conf))
	defer s.Close()
	get := func(serial int64) {
		t.Helper()
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		resp, err := c.Get("https://" + inner.Addr().String() + "/")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.TLS.PeerCertificates[0].SerialNumber.Int64(); got != serial || resp.StatusCode != 404 || resp.ProtoMajor != 1 {
			t.Errorf("certificate %d, want %d; %s", got, serial, resp.Proto)
		}
	}
	get(1)
	pair(t, dir, 2)
	get(2)
	// One that cannot be read is warned of once, and the old one stays.
	when := time.Unix(1_800_000_100, 0)
	if err := errors.Join(os.WriteFile(cert, []byte("x"), 0o600), os.Chtimes(cert, when, when)); err != nil {
		t.Fatal(err)
	}
	get(2)
	get(2)
	if got := w.log.String(); strings.Count(got, "the old certificate is used, since the new one cannot be read: ") != 1 {
		t.Errorf("logged %q, want one warning", got)
	}
	pair(t, dir, 3)
	get(3)
	if _, err := httpserver.Certificate(filepath.Join(dir, "none"), key, w.log); err == nil {
		t.Error("no error")
	}
}
