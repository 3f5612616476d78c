# SPDX-License-Identifier: GPL-2.0-or-later
# A thin front of meson. Each target does all it needs on a fresh Debian 12 as
# root, packages included, and can be repeated.

BUILD ?= build
MESON_FLAGS ?=
DEMO_FLAGS ?=
BENCH_FLAGS ?=

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)

# A release build, for everything but the tests, which have their own.
$(BUILD)/build.ninja: meson.build meson_options.txt
	scripts/install-packages build
	test -f $@ && touch $@ || \
		meson setup $(BUILD) -Dtests=false $(MESON_FLAGS)

check:
	scripts/run-tests check

check-long:
	scripts/run-tests check-long

demo: all
	scripts/install-packages demo
	BUILD=$(BUILD) scripts/demo $(DEMO_FLAGS)

bench: all
	scripts/install-packages bench
	BUILD=$(BUILD) bench/compare $(BENCH_FLAGS)

install: all
	meson install -C $(BUILD)

format:
	scripts/install-packages build test
	scripts/format

clean:
	rm -rf $(BUILD)

.PHONY: all check check-long demo bench install format clean
