# lektor. Needs Go and make; "make help" lists what there is to make.

PREFIX   = /usr/local
DESTDIR  =
GO       = go
FUZZTIME = 30s
FEED     =

# Without the tables of debuggers; traces of panics have names and lines all the same.
LDFLAGS  = -s -w

# Without the generator of manuals in urfave/cli, whose tables each start would fill.
TAGS = urfave_cli_no_docs

# The directory of the programs that are built.
BUILT = bin

BIN   = $(DESTDIR)$(PREFIX)/bin
MAN   = $(DESTDIR)$(PREFIX)/share/man
DOC   = $(DESTDIR)$(PREFIX)/share/doc/lektor
# systemd finds the units of a user below $HOME/.local in share only.
UNITDIR != case "$(PREFIX)" in */.local|*/.local/) echo "$(PREFIX)/share/systemd" ;; *) echo "$(PREFIX)/lib/systemd" ;; esac
UNITS   = $(DESTDIR)$(UNITDIR)
# Each shell looks for a file of the program's name, zsh in another place for Debian's own.
BASHCOMP = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
FISHCOMP = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
ZSHDIR  != [ "$(PREFIX)" = /usr ] && echo vendor-completions || echo site-functions
ZSHCOMP  = $(DESTDIR)$(PREFIX)/share/zsh/$(ZSHDIR)

# "make -n" runs the lines of a recipe that name make itself; by this name it prints them.
AGAIN = $(MAKE)

PROGRAMS != ls cmd | grep '^lektor-'
SAMPLES  != ls scripts | grep '^lektor-'

.PHONY: build demo quick test check vuln bench fuzz faults findings interop dist install uninstall clean help

build: ## build the programs into bin/ (this is what plain make does)
	$(GO) build -trimpath -tags "$(TAGS)" -ldflags "$(LDFLAGS)" -o "$(BUILT)/" ./cmd/...

demo: build ## a lektor-dir from nothing to reading; FEED=https://… takes a real feed
	@GO="$(GO)" sh scripts/dev/demo $(FEED)

quick: build ## the daily round: vet, and the short tests of what has changed, without the race detector
	$(GO) vet ./...
	@LEKTOR_PROGRAMS="$(CURDIR)/bin" GO="$(GO)" sh scripts/dev/test quick

test: check build ## check, then every test, with the race detector where it can find something
	@LEKTOR_PROGRAMS="$(CURDIR)/bin" GO="$(GO)" sh scripts/dev/test ./...

check: ## formatting, vet, staticcheck, go.mod, import rules, scripts, man pages, other systems
	@GO="$(GO)" sh scripts/dev/check

vuln: ## known vulnerabilities in what the programs call; asks vuln.go.dev, so no part of test
	$(GO) run golang.org/x/vuln/cmd/govulncheck@latest ./...

bench: build ## the speed of everything, against sfeed, newsboat and mblaze where installed
	$(GO) run ./scripts/dev/bench

faults: ## a crowd; kills, failing calls and power cuts at every file-system operation; histories of feeds; an hour
	$(GO) run ./scripts/dev/faults -cuts 200 -orders 300
	$(GO) run ./scripts/dev/faults -gluster -grow 200ms -faults kill -step 40
	LEKTOR_TEST_FEEDS=1000 $(GO) test -count=1 -run "^Test(Walk|Sizes|Unasked)" ./internal/app/fetcher
	LEKTOR_HISTORIES=300 $(GO) test -run TestArchiveHistories ./internal/app/viewer/publish
	LEKTOR_INDEX_HISTORIES=1000 $(GO) test -timeout 2h -run TestHistories ./internal/read/index
	LEKTOR_SHARE_RUNS=100 $(GO) test -timeout 2h -run "^Test(TakenBack|NothingReturns|Killed)" ./internal/app/sharer
	LEKTOR_HOUR=60m $(GO) test -timeout 2h -run TestAnHourOfTwo ./internal/e2e

findings: ## surprises about other programs, each in a pinned version; installs packages as root, so no part of test
	@sh scripts/dev/findings

interop: build ## publishers, readers, clients and mail programs, those that are installed; see docs/interop.md
	@sh scripts/dev/interop/run

fuzz: ## every fuzz target for FUZZTIME (30s)
	@GO="$(GO)" sh scripts/dev/fuzz "$(FUZZTIME)"

dist: ## a source archive and a Debian package into dist/, each the same bytes every time
	@GO="$(GO)" MAKE="$(AGAIN)" TAGS="$(TAGS)" sh scripts/dev/dist dist

install: build ## into PREFIX (/usr/local), below DESTDIR, where Debian expects it
	mkdir -p "$(BIN)" "$(DOC)/scripts" "$(UNITS)/user" "$(UNITS)/system" "$(BASHCOMP)" "$(FISHCOMP)" "$(ZSHCOMP)"
	for f in $(PROGRAMS); do install -m 755 "$(BUILT)/$$f" "$(BIN)/" || exit 1; done
	for f in man/*.[1-9]; do \
		mkdir -p "$(MAN)/man$${f##*.}" && install -m 644 "$$f" "$(MAN)/man$${f##*.}/" || exit 1; \
	done
	install -m 644 README.md CHANGELOG.md LICENSE docs/*.md docs/*.schema.json "$(DOC)/"
	for f in $(SAMPLES); do install -m 755 "scripts/$$f" "$(DOC)/scripts/" || exit 1; done
	for f in scripts/systemd/*.*; do \
		case $${f##*/} in lektor-hub.*) to=system ;; *) to=user ;; esac; \
		sed 's|^\(# *\)*ExecStart=lektor|\1ExecStart=$(PREFIX)/bin/lektor|' "$$f" >"$(UNITS)/$$to/$${f##*/}" && \
			chmod 644 "$(UNITS)/$$to/$${f##*/}" || exit 1; \
	done
	for f in $(PROGRAMS); do \
		install -m 644 scripts/completion/lektor.bash "$(BASHCOMP)/$$f" && \
			install -m 644 scripts/completion/lektor.fish "$(FISHCOMP)/$$f.fish" || exit 1; \
	done
	install -m 644 scripts/completion/_lektor "$(ZSHCOMP)/"

uninstall: ## remove, by name, the files that install put there
	for f in $(PROGRAMS); do rm -f "$(BIN)/$$f" "$(BASHCOMP)/$$f" "$(FISHCOMP)/$$f.fish" || exit 1; done
	for f in man/*.[1-9]; do rm -f "$(MAN)/man$${f##*.}/$${f##*/}"; done
	for f in scripts/systemd/*.*; do rm -f "$(UNITS)/user/$${f##*/}" "$(UNITS)/system/$${f##*/}"; done
	rm -f "$(ZSHCOMP)/_lektor"
	for f in $(SAMPLES); do rm -f "$(DOC)/scripts/$$f" || exit 1; done
	for f in README.md CHANGELOG.md LICENSE docs/*.md docs/*.schema.json; do rm -f "$(DOC)/$${f##*/}" || exit 1; done
	for d in "$(DOC)/scripts" "$(DOC)"; do \
		[ -L "$$d" ] || [ ! -d "$$d" ] || [ -n "$$(ls -A "$$d")" ] || rmdir "$$d" || exit 1; \
	done

clean: ## remove what make built
	rm -rf bin dist

help: ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## /\1	/p' Makefile | expand -t 12
