package server

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"strings"

	"github.com/lektordir/lektor/internal/app/server/accounts"
	"github.com/lektordir/lektor/internal/protocol/greader"
)

// request is a request of a client, and its answer.
type request struct {
	*Server
	w http.ResponseWriter
	r *http.Request

	name   string         // of the route, without the stream
	stream string         // the stream in the path
	values greader.Values // of the query and the form
	body   []byte         // of a POST request
	auth   string         // the token
	user   accounts.User
	lib    *library
	sent   bool // a part of the answer was written
	gone   bool // the client takes no more
}

// authenticate finds the user of a request by its token: in the header, or for a POST request
// without it in the field T of the form, where Liferea sends it.
func (c *request) authenticate() error {
	post := c.r.Method == http.MethodPost
	token, ok := headerToken(c.r.Header.Get("Authorization"))
	if !ok {
		if !post {
			return c.unauthorized()
		}
		if err := c.readForm(maxAnonymous); err != nil {
			return err
		}
		token = strings.TrimSpace(c.values.Get("T"))
	}
	u, err := c.accounts.Check(token)
	if errors.Is(err, accounts.ErrDenied) {
		return c.unauthorized()
	}
	if err != nil {
		return err
	}
	c.user, c.auth = u, token
	c.extend()
	if !ok || !post {
		return nil
	}
	if err := c.readForm(maxForm); err != nil {
		return err
	}
	return c.checkEditToken()
}

// checkEditToken checks the field T of a request whose header has a valid token. Clients that
// never ask for a token send none, or "x".
func (c *request) checkEditToken() error {
	t := strings.TrimSpace(c.values.Get("T"))
	if t == "" || t == "x" || t == c.auth {
		return nil
	}
	u, err := c.accounts.Check(t)
	if err == nil && u == c.user {
		return nil
	}
	if err != nil && !errors.Is(err, accounts.ErrDenied) {
		return err
	}
	c.w.Header().Set("X-Reader-Google-Bad-Token", "true")
	return c.unauthorized()
}

// headerToken returns the token in a field Authorization.
func headerToken(field string) (token string, ok bool) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(field), " ")
	if !strings.EqualFold(scheme, "GoogleLogin") {
		return "", false
	}
	for part := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r == ',' || r == ' ' }) {
		if key, value, found := strings.Cut(part, "="); found && strings.EqualFold(key, "auth") {
			return strings.Trim(value, `"`), true
		}
	}
	return "", false
}

func (c *request) unauthorized() error {
	c.w.Header().Set("WWW-Authenticate", `GoogleLogin realm="lektor-serve", service="reader"`)
	return &httpError{http.StatusUnauthorized, "Unauthorized"}
}

// readForm reads the body of a request. Its parameters replace those of the query with the same names:
// Read You sends a URL in both, and escapes it only in the form.
func (c *request) readForm(most int64) error {
	var err error
	c.body, err = io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, most))
	if errors.As(err, new(*http.MaxBytesError)) {
		return &httpError{http.StatusRequestEntityTooLarge, "the request is too large"}
	}
	if err != nil {
		return bad("the request is incomplete")
	}
	kind, params, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	form := greader.Values{}
	switch kind {
	case "text/xml", "application/xml", "text/x-opml", "text/x-opml+xml", "application/octet-stream":
	case "multipart/form-data":
		if form, err = greader.ParseMultipart(c.body, params["boundary"]); err != nil {
			return bad("the form is malformed or incomplete")
		}
	default:
		form = greader.ParseValues(string(bytes.TrimRight(c.body, "\r\n")))
	}
	maps.Copy(c.values, form)
	return nil
}

// compatible answers FreshRSS's question of clients and users, whether a proxy lets the header through.
func (c *request) compatible() error {
	if c.r.Header.Get("Authorization") == "" {
		return c.text("FAIL: the header Authorization did not arrive; send one, or look at the proxy")
	}
	return c.text("PASS")
}
