//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/app/fetcher"
	"github.com/lektordir/lektor/internal/app/viewer"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/lektordir"
)

// The programs have no flags for the clock, the host name and the process number. To change
// these, this program starts itself as a child, which runs the code of the programs with other
// options.

// childVariable is the variable with the command of a child: the name of a program and its
// command.
const childVariable = "LEKTOR_CROWD_CHILD"

// surroundings are the clock, host name and process number of a child.
type surroundings struct {
	shift time.Duration // how far its clock is ahead
	host  string        // "" for the real one
	pid   int
}

// child returns a process that runs a program's command in other surroundings.
func (c *crowd) child(kind string, s surroundings, does string) process {
	return process{kind: kind, argv: []string{c.self}, env: []string{
		childVariable + "=" + does, "CROWD_SHIFT=" + s.shift.String(), "CROWD_HOST=" + s.host, "CROWD_PID=" +
			strconv.Itoa(s.pid),
	}}
}

// childOfCrowd runs the command of a child, if this process is one.
func childOfCrowd() {
	does := os.Getenv(childVariable)
	if does == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := childSurroundings()
	name := "lektor-view"
	if does == "update" || does == "update -a" {
		name = "lektor-fetch"
	}
	streams := cmdline.Env(name)
	if err == nil {
		err = s.do(ctx, does, os.Args[1:], streams)
	}
	streams.Report.Print(err)
	status := cmdline.Status(err)
	if status == 0 && streams.Report.Errors() > 0 {
		status = cmdline.StatusFailed
	}
	os.Exit(status)
}

func childSurroundings() (s surroundings, err error) {
	var errs [2]error
	s.shift, errs[0] = time.ParseDuration(os.Getenv("CROWD_SHIFT"))
	s.pid, errs[1] = strconv.Atoi(os.Getenv("CROWD_PID"))
	s.host = os.Getenv("CROWD_HOST")
	return s, errors.Join(errs[:]...)
}

func (s surroundings) now() time.Time { return time.Now().Add(s.shift) }

func (s surroundings) do(ctx context.Context, does string, args []string, streams *cmdline.Streams) error {
	dir := os.Getenv("LEKTORDIR")
	common := session.Common{Dir: dir, Now: s.now, Terminal: fmt.Sprintf("crowd%d", s.pid)}
	switch does {
	case "update", "update -a":
		return s.update(ctx, dir, does == "update -a", streams)
	case "mark":
		return viewer.Mark(ctx, viewer.MarkOptions{Common: common, Names: session.Names{Args: args}, Set: "S",
			Clear: "F"}, streams)
	case "rm":
		return viewer.Remove(ctx, viewer.RemoveOptions{Common: common, Names: session.Names{Args: args}, Now: true},
			streams)
	case "digest":
		return viewer.Digest(ctx, viewer.DigestOptions{Common: common, Query: args, Lines: 2}, streams)
	case "next":
		return viewer.Next(ctx, viewer.ShowOptions{Common: common, Query: args, Mark: true}, streams)
	}
	return fmt.Errorf("%s=%s: there is no such command", childVariable, does)
}

// update does the same as "lektor-fetch update -o path".
func (s surroundings) update(ctx context.Context, dir string, all bool, streams *cmdline.Streams) error {
	d, err := lektordir.Open(dir, &lektordir.Options{Now: s.now, Host: s.host, PID: s.pid})
	if err != nil {
		return err
	}
	config := fetch.DefaultConfig()
	config.Now, config.Gap, config.PerHost = s.now, 0, 8
	r, err := fetcher.New(d, streams.Report, fetcher.Options{Fetch: config, Delivered: func(refs []lektordir.Ref) {
		for _, ref := range refs {
			fmt.Fprintln(streams.Out, d.Join(ref.Path()))
		}
	}})
	if err != nil {
		return err
	}
	defer r.Close()
	r.Recover(ctx)
	sel := fetcher.Selection{}
	if all {
		sel.Reason = fetcher.Forced
	}
	sum, err := r.Update(ctx, sel)
	if err != nil {
		return err
	}
	if sum.Broken+sum.Failed > 0 {
		return fmt.Errorf("%d feeds failed", sum.Broken+sum.Failed)
	}
	return r.Close()
}
