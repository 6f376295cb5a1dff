# `make run` and `make check` work from a fresh clone on a bare Debian 12, as root or with sudo.
# The rules live in CMakeLists.txt, CMakePresets.json and tools/; this file only names them.

PREFIX ?= /usr/local
DESTDIR ?=

.DEFAULT_GOAL := build
.PHONY: sanitize run build check fuzz bench format lint docs install clean

run: build
	@tools/run-challenge

build:
	@tools/install-packages build
	@cmake --preset release >/dev/null
	@cmake --build --preset release
	@ln -sfn release/bin/holdfast build/holdfast

check:
	@tools/install-packages build check
	@tools/check

sanitize:
	@tools/install-packages build check
	@tools/check asan tsan

fuzz:
	@tools/install-packages build check
	@tools/fuzz 600

bench:
	@tools/install-packages build check
	@cmake --preset bench >/dev/null
	@cmake --build --preset bench
	@tools/bench

format:
	@tools/install-packages check
	@tools/source-files | xargs clang-format -i

lint:
	@tools/install-packages build check
	@tools/lint

docs: build
	@build/holdfast docs refusals > docs/refusals.md
	@build/holdfast docs cli > docs/cli.md

install: build
	@install -D -m 0755 build/release/bin/holdfast $(DESTDIR)$(PREFIX)/bin/holdfast
	@install -D -m 0644 LICENSE $(DESTDIR)$(PREFIX)/share/doc/holdfast/LICENSE

clean:
	@rm -rf build
