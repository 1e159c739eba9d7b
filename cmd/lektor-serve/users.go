package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/app/server"
	"github.com/lektordir/lektor/internal/cli/cmdline"
)

// stateFlag returns the flag --state, which the server and all commands take.
func stateFlag() cli.Flag {
	return &cli.StringFlag{Name: "state", Usage: "keep users and tokens in `DIR`",
		DefaultText: "$STATE_DIRECTORY or $XDG_STATE_HOME/lektor-serve"}
}

func passwdCommand() *cli.Command {
	return &cli.Command{
		Name:      "passwd",
		Usage:     "add a user, or set the password of one",
		ArgsUsage: "NAME",
		Description: `It reads the password from the terminal, or else from the first line of standard
input.

Example:
   lektor-serve passwd ann
   pass feeds | lektor-serve passwd --dir /srv/lektor bob`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "dir", Usage: "serve the lektor-dir `DIR` to the user",
				DefaultText: "unchanged; of a new user $LEKTORDIR, else $XDG_DATA_HOME/lektor, else ~/.local/share/lektor"},
			&cli.BoolFlag{Name: "remove", Usage: "remove the user"},
			stateFlag(),
		},
		Action: cmdline.Run(server.Passwd, "the name of a user", func(f *cmdline.Flags) server.PasswdOptions {
			if f.NArg() > 1 {
				f.Fail(cmdline.Usagef("passwd takes one name; the password comes from the terminal or standard input"))
			}
			if f.Bool("remove") && f.IsSet("dir") {
				f.Fail(cmdline.Usagef("--dir is not for --remove"))
			}
			return server.PasswdOptions{State: f.Given("state").String("state"), Name: f.Args().First(),
				Dir: f.String("dir"), Remove: f.Bool("remove")}
		}),
	}
}

func tokensCommand() *cli.Command {
	return &cli.Command{
		Name:      "tokens",
		Usage:     "list the tokens of clients that have logged in, or revoke some",
		ArgsUsage: "[list|revoke] [ID…]",
		Description: `Example:
   lektor-serve tokens
   lektor-serve tokens revoke k3x7qd2a`,
		Flags: []cli.Flag{
			cmdline.OutputFlag("print `FORMAT`: tsv, json, the name of a column, or a template"),
			stateFlag(),
		},
		Action: cmdline.Run(server.Tokens, "", func(f *cmdline.Flags) server.TokensOptions {
			o := server.TokensOptions{State: f.Given("state").String("state"), Format: cmdline.OutputFormat(f.Context)}
			words := f.Words()
			switch {
			case len(words) == 0, len(words) == 1 && words[0] == "list":
			case words[0] != "revoke":
				f.Fail(cmdline.Usagef("tokens %s: write list or revoke", strings.Join(words, " ")))
			case len(words) == 1:
				f.Fail(cmdline.Usagef("tokens revoke needs the id of a token"))
			case o.Format != "":
				f.Fail(cmdline.Usagef("-o is for the list of tokens"))
			default:
				o.Revoke = words[1:]
			}
			return o
		}),
	}
}
