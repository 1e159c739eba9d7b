package fetch

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/http/httpmsg"
)

func TestVerdict(t *testing.T) {
	for _, tc := range []struct {
		status       int
		detail, want string
		refused      bool
	}{
		{200, "thanks", "", false},
		{204, "", "", false},
		{404, "no such path", "u: refused with status 404: no such path", true},
		{410, "", "u: refused with status 410", true},
		{429, "", "it is silent", false},
		{500, "sorry", "sorry", false},
	} {
		err := (&Answer{Status: tc.status, FinalURL: "u"}).Verdict(tc.detail, "it is silent")
		if tc.want == "" {
			if err != nil {
				t.Errorf("%d: %v", tc.status, err)
			}
			continue
		}
		if _, refused := errors.AsType[*RefusedError](err); err == nil || refused != tc.refused || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%d: %v", tc.status, err)
		}
	}
	if got := (&RefusedError{URL: "u", Message: "no"}).Error(); got != "u: refused: no" {
		t.Error(got)
	}
}

// A Secret post follows a redirect on the same server, but not to another.
func TestPostOfASecretStaysWithItsServer(t *testing.T) {
	got := ""
	other := serve(t, func(http.ResponseWriter, *http.Request) { got = "elsewhere" })
	target := ""
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/there" {
			got = "there"
			return
		}
		http.Redirect(w, r, target, http.StatusTemporaryRedirect)
	})
	for to, want := range map[string]string{"/there": "there", other.URL: ""} {
		got, target = "", to
		_, err := client(t).Post(t.Context(), &Post{URL: s.URL, Body: []byte("password"), Secret: true})
		redirect, is := errors.AsType[*httpmsg.RedirectError](err)
		if got != want || is != (want == "") || is && !strings.Contains(redirect.Error(), "another server") {
			t.Errorf("to %s: it came %q, %v", to, got, err)
		}
	}
}
