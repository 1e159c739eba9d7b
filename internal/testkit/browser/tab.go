package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// Tab is a tab of a headless browser that a test drives.
type Tab struct {
	t       testing.TB
	to      *os.File
	session string
	last    int // number of the last command

	mu       sync.Mutex
	answers  map[int]chan answer
	console  []string
	requests []string
	loaded   int // number of pages
}

// message is a message of the DevTools protocol.
type message struct {
	ID        int                       `json:"id,omitempty"`
	Method    string                    `json:"method,omitempty"`
	SessionID string                    `json:"sessionId,omitempty"`
	Params    any                       `json:"params,omitempty"`
	Result    json.RawMessage           `json:"result,omitempty"`
	Error     *struct{ Message string } `json:"error,omitempty"`
}

type answer struct {
	result json.RawMessage
	err    string
}

// patience is how long the browser may take for a command, a page, or what a test awaits.
const patience = time.Minute

// Start starts Chromium with one tab, for as long as the test runs. If no browser starts, the test is skipped.
func Start(t testing.TB) *Tab {
	t.Helper()
	name := find(t)
	toBrowser, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, fromBrowser, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// Not TempDir of the test, as a process of the browser may still write to it when the browser has ended.
	profile, err := os.MkdirTemp("", "browser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(profile) })
	cmd := exec.CommandContext(context.Background(), name, "--headless", "--no-sandbox", "--disable-gpu",
		"--user-data-dir="+profile, "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{toBrowser, fromBrowser}
	if err := cmd.Start(); err != nil {
		t.Skipf("%s: %v", name, err)
	}
	toBrowser.Close()
	fromBrowser.Close()
	b := &Tab{t: t, to: to, answers: map[int]chan answer{}}
	go b.read(from)
	t.Cleanup(func() {
		b.session = ""
		b.call("Browser.close", nil)
		to.Close()
		late := time.AfterFunc(patience/4, func() { cmd.Process.Kill() })
		cmd.Wait()
		late.Stop()
	})
	var target struct{ TargetID, SessionID string }
	b.result("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.result("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.result(domain+".enable", nil, nil)
	}
	return b
}

// read takes the messages of the browser.
func (b *Tab) read(from *os.File) {
	defer from.Close()
	r := bufio.NewReader(from)
	for {
		data, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(bytes.TrimRight(data, "\x00"), &m) != nil {
			continue
		}
		b.mu.Lock()
		switch m.Method {
		case "":
			if c := b.answers[m.ID]; c != nil {
				a := answer{result: m.Result}
				if m.Error != nil {
					a.err = m.Error.Message
				}
				c <- a
			}
		case "Page.loadEventFired":
			b.loaded++
		case "Network.requestWillBeSent":
			var p struct {
				Params struct{ Request struct{ URL string } }
			}
			_ = json.Unmarshal(bytes.TrimRight(data, "\x00"), &p)
			b.requests = append(b.requests, p.Params.Request.URL)
		case "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled":
			b.console = append(b.console, string(data))
		}
		b.mu.Unlock()
	}
}

// call sends a command and waits for the answer.
func (b *Tab) call(method string, params any) (json.RawMessage, string) {
	b.last++
	done := make(chan answer, 1)
	b.mu.Lock()
	b.answers[b.last] = done
	b.mu.Unlock()
	data, err := json.Marshal(message{ID: b.last, Method: method, SessionID: b.session, Params: params})
	if err == nil {
		_, err = b.to.Write(append(data, 0))
	}
	if err != nil {
		return nil, err.Error()
	}
	select {
	case a := <-done:
		return a.result, a.err
	case <-time.After(patience):
		return nil, "no answer"
	}
}

// result is call for a command that must succeed.
func (b *Tab) result(method string, params, into any) {
	b.t.Helper()
	data, failed := b.call(method, params)
	if failed == "" && into != nil {
		if err := json.Unmarshal(data, into); err != nil {
			failed = err.Error()
		}
	}
	if failed != "" {
		b.t.Fatalf("%s %v: %s", method, params, failed)
	}
}

// Window sets the size of the window, and whether the user prefers dark colours and lets scripts run.
func (b *Tab) Window(width, height int, dark, scripts bool) {
	b.t.Helper()
	b.result("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height,
		"deviceScaleFactor": 1, "mobile": false}, nil)
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.result("Emulation.setEmulatedMedia", map[string]any{"features": []any{
		map[string]string{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.result("Emulation.setScriptExecutionDisabled", map[string]any{"value": !scripts}, nil)
}

// Open loads a page.
func (b *Tab) Open(url string) {
	b.t.Helper()
	b.Loads(func() { b.result("Page.navigate", map[string]any{"url": url}, nil) })
}

// Loads calls do, which loads a page, and waits for the page.
func (b *Tab) Loads(do func()) {
	b.t.Helper()
	count := func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.loaded
	}
	before := count()
	do()
	b.until("a page", func() bool { return count() > before })
}

// Click clicks the first element that a selector selects.
func (b *Tab) Click(selector string) {
	b.t.Helper()
	b.Eval(fmt.Sprintf("document.querySelector(%q).click()", selector))
}

// Eval returns the value of an expression as text.
func (b *Tab) Eval(expression string) string {
	b.t.Helper()
	var v struct {
		Result           struct{ Value any }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	b.result("Runtime.evaluate", map[string]any{"expression": "String(" + expression + ")", "awaitPromise": true}, &v)
	if v.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, v.ExceptionDetails.Exception.Description)
	}
	return fmt.Sprint(v.Result.Value)
}

// Await waits until an expression is true.
func (b *Tab) Await(expression string) {
	b.t.Helper()
	b.until(expression, func() bool { return b.Eval(expression) == "true" })
}

func (b *Tab) until(what string, is func() bool) {
	b.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("waited in vain for %s; console: %s", what, b.Console())
		}
	}
}

// Press presses keys, each of which types its text.
func (b *Tab) Press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		for _, kind := range []string{"keyDown", "keyUp"} {
			p := map[string]any{"type": kind, "key": key}
			if len(key) == 1 && kind == "keyDown" {
				p["text"] = key
			}
			b.result("Input.dispatchKeyEvent", p, nil)
		}
	}
}

// Picture returns a picture of the window, as PNG.
func (b *Tab) Picture() []byte {
	b.t.Helper()
	var p struct{ Data string }
	b.result("Page.captureScreenshot", nil, &p)
	data, err := base64.StdEncoding.DecodeString(p.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	return data
}

// Console returns what the browser and the scripts complained about so far, one a line.
func (b *Tab) Console() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.console, "\n")
}

// Requests returns the URLs that the tab has asked for since the last call.
func (b *Tab) Requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.requests
	b.requests = nil
	return list
}
