package httpserver

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

// Limit closes a connection of the peer with the most connections.
func TestLimitSparesOtherPeers(t *testing.T) {
	inner, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	l := Limit(inner, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				line, err := bufio.NewReader(c).ReadString('\n')
				if err == nil {
					io.WriteString(c, line)
				}
				c.Close()
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(inner.Addr().String())
	dial := func(from string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Skip("this system has one loopback address only")
		}
		return c
	}
	honest := dial("127.0.0.9")
	defer honest.Close()
	for range 100 {
		defer dial("127.0.0.1").Close()
	}
	io.WriteString(honest, "hello\n")
	if line, err := bufio.NewReader(honest).ReadString('\n'); line != "hello\n" {
		t.Errorf("got %q, %v; want line == \"hello\\n\"", line, err)
	}
}

func TestPeerBehindProxies(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, tc := range []struct{ remote, forwarded, want string }{
		{"10.0.0.1:5", "192.0.2.1, 10.0.0.2", "192.0.2.1"},
		{"10.0.0.1:5", "6.6.6.6, 192.0.2.1", "192.0.2.1"},
		{"192.0.2.7:5", "6.6.6.6", "192.0.2.7"},
		{"10.0.0.1:5", "garbage", "10.0.0.1"},
		{"10.0.0.1:5", "", "10.0.0.1"},
		{"@", "6.6.6.6", "6.6.6.6"}, // "@" is a Unix socket, which only a proxy on this machine uses
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = tc.remote
		if tc.forwarded != "" {
			r.Header.Set("X-Forwarded-For", tc.forwarded)
		}
		if got := Peer(r, proxies); got.String() != tc.want {
			t.Errorf("%s, %q: got %s, want %s", tc.remote, tc.forwarded, got, tc.want)
		}
	}
}

type silent struct{}

func (silent) Warn(string, ...any) {}
func (silent) Info(string, ...any) {}

// Serve ends when its work ends or a socket fails. It then closes the socket, and returns the
// error of the failed part.
func TestDoor(t *testing.T) {
	d, err := Open(Options{Address: "127.0.0.1:0", MaxConns: 4}, silent{})
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "here") }), silent{})
	ctx, cancel := context.WithCancel(context.Background())
	err = d.Serve(ctx, s, func(ctx context.Context) error {
		resp, err := http.Get("http://" + d.Addr().String())
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if b, _ := io.ReadAll(resp.Body); string(b) != "here" {
			t.Errorf("got %s; want string(b) == \"here\"", b)
		}
		cancel()
		<-ctx.Done()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	l, err := net.Listen("tcp", d.Addr().String())
	if err != nil {
		t.Fatal("the socket is not free:", err)
	}
	defer l.Close()
	if _, err := Open(Options{Address: l.Addr().String()}, silent{}); err == nil {
		t.Error("Open succeeds at an address that is in use")
	}
	// The socket is closed while Serve runs.
	d, err = Open(Options{Address: "127.0.0.1:0", MaxConns: 4}, silent{})
	if err != nil {
		t.Fatal(err)
	}
	err = d.Serve(t.Context(), NewServer(http.NotFoundHandler(), silent{}), func(ctx context.Context) error {
		d.Close()
		<-ctx.Done()
		return nil
	})
	if err == nil {
		t.Error("Serve returns no error after its socket failed")
	}
}

// Only a trusted proxy can say that a request came by TLS.
func TestSecure(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, tc := range []struct {
		remote, proto string
		want          bool
	}{
		{"10.0.0.1:5", "https", true},
		{"10.0.0.1:5", "http", false},
		{"10.0.0.1:5", "", false},
		{"192.0.2.7:5", "https", false},
		{"@", "https", true}, // a proxy on this machine
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = tc.remote
		r.Header.Set("X-Forwarded-Proto", tc.proto)
		if got := Secure(r, proxies); got != tc.want {
			t.Errorf("%s, %q: got %v", tc.remote, tc.proto, got)
		}
	}
	if !Secure(httptest.NewRequest("GET", "https://x/", nil), nil) {
		t.Error("a request by TLS is not secure")
	}
}
