# SPDX-License-Identifier: MIT
# The short way in. The build itself is Meson's: see meson.build, and
# docs/testing.md for the tests. Each target installs what it needs from
# Debian's packages when it is missing (as root or through sudo).

.PHONY: all asan bench campaign clean coverage deb demo format fuzz help \
    install lists mcdc mutants test test-real tidy

all: # Build the program into build/.
	@tools/setup build
	@tools/build release

demo: all # Check and simulate the examples, then run one for real.
	@tools/demo build/src/cli/sluice

test: # All that each change must pass; ends with `N passed, N failed`.
	@tools/test

test-real: # What needs programs of others: agents, MCP clients, proxies.
	@tools/test real

asan: # Unit, property and scenario tests under ASan and UBSan.
	@tools/test asan

bench: # Measure, and print the tables.
	@tools/setup build queues
	@tools/build release all bench
	@bench/run build/bench
	@bench/psplib build
	@bench/goals build
	@bench/waves build
	@BENCH_FOLDER=build bench/dispatch build
	@BENCH_FOLDER=build bench/looking build
	@bench/sandbox build
	@bench/mcp build
	@BENCH_FOLDER=build bench/serve build
	@BENCH_FOLDER=build bench/queue build
	@BENCH_FOLDER=build bench/checkout build
	@BENCH_FOLDER=build bench/forecast build
	@BENCH_FOLDER=build bench/machines build
	@BENCH_FOLDER=build bench/large build

tidy: # Style, layers, clang-format, clang-tidy.
	@tools/setup test
	@tools/build release
	@tools/build fuzz
	@tools/tidy

format: # Let clang-format lay out all C files.
	@tools/setup test
	@find src sim tests bench -name '*.[ch]' -exec clang-format-14 -i {} +

lists: # Bring the file lists of every meson.build up to date.
	@tools/lists

coverage: # Branches that the tests take in core, store, work and engine.
	@tools/setup coverage
	@tools/coverage

mcdc: # MC/DC of the core; fails under 100 %.
	@tools/setup mcdc
	@tools/mcdc

mutants: # Change the code in 650 ways; fails if tests notice less than 95 %.
	@tools/setup mutants
	@tools/mutate

fuzz: # Ten minutes of libFuzzer for each target.
	@FUZZ_SECONDS=600 tools/test fuzz

campaign: # The long checks, for docs/proof.md; goes on where it was stopped.
	@tools/setup campaign
	@tools/campaign

install: all # Install under PREFIX (/usr/local), with DESTDIR in front.
	@meson install -C build --no-rebuild

deb: # Build a Debian package into build-deb/; lintian must accept it.
	@tools/setup deb
	@tools/deb

clean: # Remove every build folder.
	@rm -rf build build-*/

help: # List the targets.
	@sed -n 's/^\([a-z-]*\):.*# /\1: /p' Makefile
