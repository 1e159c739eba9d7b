package work

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
)

// Fetching is the state of the fetches, of which one runs at a time.
type Fetching struct {
	*Work
	every time.Duration // fetch the feeds that are due so long after the last fetch; 0 never does
	timer int           // number of the timer that counts; others are stale
}

// everySetting is the name of the setting with the minutes between two fetches.
const everySetting = "fetch-every"

// maxEvery is the maximum number of minutes between two fetches, a week.
const maxEvery = 7 * 24 * 60

// firstFetch is the time from the start of the reader to the first fetch by its timer.
const firstFetch = 3 * time.Second

// fetchTask is the name of the task of a fetch.
const fetchTask = "fetching"

// Start begins to fetch at times, if that was remembered.
func (s *Fetching) Start() part.Effects {
	minutes := s.Env.Screen.Int(everySetting)
	if minutes <= 0 || minutes > maxEvery {
		return nil
	}
	s.every = time.Duration(minutes) * time.Minute
	return s.wind(firstFetch)
}

// All fetches all feeds.
func (s *Fetching) All(part.Given) part.Effects { return s.Begin(false, "", "-a") }

// Every sets the minutes between two fetches to the word of the action, or asks for them.
func (s *Fetching) Every(g part.Given) part.Effects {
	if len(g.Words) == 0 {
		return g.Ask(part.Ask{Label: "fetch what is due every how many minutes (0: never): ",
			Text: strconv.Itoa(int(s.every / time.Minute))})
	}
	minutes, err := strconv.Atoi(strings.TrimSpace(g.Words[0]))
	if err != nil || minutes < 0 || minutes > maxEvery {
		return s.Say("%s is not a number of minutes from 0 to %d", g.Words[0], maxEvery)
	}
	s.every = time.Duration(minutes) * time.Minute
	e, value := s.Say("fetching what is due every %d minutes", minutes), strconv.Itoa(minutes)
	if minutes == 0 {
		e, value = s.Say("feeds are fetched when you press a key"), ""
	}
	s.Remember(everySetting, value)
	return append(e, s.wind(s.every)...)
}

// wind starts the timer of the next fetch, and makes others stale.
func (s *Fetching) wind(d time.Duration) part.Effects {
	s.timer++
	if s.every == 0 {
		return nil
	}
	timer := s.timer
	return part.Effects{part.Run(s.After(d, part.Then(func() part.Effects {
		if timer != s.timer || len(s.Tasks.Of(fetchTask)) > 0 {
			return nil // the end of that fetch winds the timer
		}
		return s.Begin(true, "")
	})))}
}

// Begin runs lektor-fetch update with arguments and its input, unless it is running. timed is set for the timer.
func (s *Fetching) Begin(timed bool, in string, args ...string) part.Effects {
	if len(s.Tasks.Of(fetchTask)) > 0 {
		return s.Say("a fetch is running already")
	}
	var lines, messages []string
	return part.Effects{part.Task{Name: fetchTask,
		Do: func(ctx context.Context, progress func(string)) (_ string, err error) {
			args := append([]string{"update", "--progress"}, args...)
			messages, err = s.Disk.Fetcher(ctx, in, args, func(line string) {
				lines = append(lines, line)
				switch words := strings.Split(line, "\t"); {
				case words[0] == "done" || len(words) < 3:
				case words[2] == "0":
					progress(words[0] + " " + words[1])
				default:
					progress(words[1] + "/" + words[2])
				}
			})
			return "", err
		},
		Then: func(err error) part.Effects {
			summary := after("done", lines)
			quiet := timed && len(lines) == len(summary) // nothing was due
			return s.ended(quiet, strings.Join(summary, ""), messages, err)
		}}}
}

// ended shows the result of a fetch, and winds the timer.
func (s *Fetching) ended(quiet bool, summary string, messages []string, err error) part.Effects {
	var e part.Effects
	for _, text := range slices.Backward(messages) {
		e = append(e, part.Say{Text: cells.Plain(text)})
	}
	_, started := errors.AsType[*exec.ExitError](err)
	switch {
	case err != nil && !started && s.every > 0:
		s.timer++
		return append(e, s.Fail(fmt.Errorf("%s: %w",
			s.Tr("lektor-fetch does not start, and nothing is fetched until you press a key for it"), err))...)
	case err != nil && len(messages) == 0:
		e = append(e, s.Fail(fmt.Errorf("lektor-fetch: %w", err))...)
	case len(messages) > 0:
		text := strings.TrimPrefix(cells.Plain(summary)+"; "+cells.Plain(messages[0]), "; ")
		e = append(e, part.Say{Text: s.Trf("%s (%s: all messages)", text, s.KeyOf("messages")), Bad: err != nil})
	case !quiet:
		e = append(e, part.Say{Text: cells.Plain(summary)})
	}
	return append(e, s.wind(s.every)...)
}
