package server

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/lektordir/lektor/internal/app/server/accounts"
	"github.com/lektordir/lektor/internal/http/httpserver"
	"github.com/lektordir/lektor/internal/http/passwords"
	"github.com/lektordir/lektor/internal/protocol/greader"
)

// login implements ClientLogin.
func (c *request) login() error {
	if c.r.Method == http.MethodPost {
		if err := c.readForm(maxAnonymous); err != nil {
			return err
		}
	}
	client := cmp.Or(c.values.Get("source"), c.values.Get("client"), c.r.UserAgent())
	from := httpserver.Peer(c.r, c.opts.TrustedProxies)
	token, _, err := c.accounts.Login(c.r.Context(), c.values.Get("Email"), c.values.Get("Passwd"), client, from)
	if limited, ok := errors.AsType[*passwords.LimitedError](err); ok {
		c.w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(limited.Wait.Seconds()))))
		return &httpError{http.StatusTooManyRequests, "Error=TooManyAttempts"}
	}
	if errors.Is(err, accounts.ErrDenied) {
		return &httpError{http.StatusUnauthorized, "Error=BadAuthentication"}
	}
	if err != nil {
		return err
	}
	c.w.Header().Set("Cache-Control", "no-store")
	if c.values.Get("output") == "json" {
		return c.json(greader.Login{SID: token, LSID: token, Auth: token})
	}
	return c.text(fmt.Sprintf("SID=%s\nLSID=%[1]s\nAuth=%[1]s\n", token))
}

// token answers with the token that edits have in the field T. It is the token of the login, so
// it does not expire.
func (c *request) token() error { return c.text(c.auth) }

// userInfo answers with the name of the user.
func (c *request) userInfo() error {
	name := c.user.Name
	return c.json(map[string]string{"userId": "1", "userName": name, "userProfileId": "1", "userEmail": name})
}
