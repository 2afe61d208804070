# SPDX-License-Identifier: Apache-2.0
# The front door: what a newcomer guesses. Everything real is meson's and ninja's.

BUILD ?= build
FUZZ_SECONDS ?= 20

# Some kernels spread addresses wider than the sanitizers of gcc 12 and clang 14 can map; where it is allowed, go without.
PLAIN := $(shell setarch -R true 2>/dev/null && echo setarch -R)
SANITIZED = ASAN_OPTIONS=strict_string_checks=1:detect_stack_use_after_return=1 \
        UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1 \
        LSAN_OPTIONS=suppressions=$(CURDIR)/tests/lsan.supp:print_suppressions=0 $(PLAIN)
# Most tests wait most of the time, also with a sanitizer.
TEST = meson test --print-errorlogs $(if $(filter-out 0,$(THOROUGH)),--timeout-multiplier 40,--no-suite thorough) --num-processes
PROCESSORS := $(shell nproc)
AT_ONCE = $(shell expr 3 \* $(PROCESSORS))

.PHONY: all help demo check test bench lint format asan tsan fuzz coverage image release release-test leaves-nothing install clean e2e gpu-test native-test mutants thorough docs pictures

all:
	@[ -f $(BUILD)/build.ninja ] || scripts/deps.sh build
	@scripts/build.sh $(BUILD) programs

help:
	@echo "make            build the programs into $(BUILD)/"
	@echo "make demo       the main job on this machine, without a GPU and without a cluster"
	@echo "make check      unit tests and the quick black-box tests"
	@echo "make test       unit tests, black-box tests, fuzz corpora; with THOROUGH=1 more seeds and driver branches"
	@echo "make e2e        the whole on the cluster that KUBECONFIG names: tests/e2e/README.md"
	@echo "make gpu-test   on this machine's GPU; needs neither meson nor packages: tests/gpu/README.md"
	@echo "make native-test  NVIDIA's own libraries on the simulated driver: tests/native/README.md"
	@echo "make bench      the figures of docs/internals/benchmark-figures.md on this machine"
	@echo "make lint       layout, clang-tidy, cppcheck, rooms, ceilings, words"
	@echo "make format     apply the layout"
	@echo "make asan       tests under AddressSanitizer and UndefinedBehaviorSanitizer, without those of tests/plain.txt"
	@echo "make tsan       the same tests under ThreadSanitizer"
	@echo "make fuzz       every fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS)"
	@echo "make coverage   lines that the tests reach"
	@echo "make thorough   all seeds and cases of ROOM=unit/arbiter, or of the room of the day"
	@echo "make mutants    each fault of tests/mutants, which the tests must find"
	@echo "make image      build/aliquot-image.tar, an OCI archive; IMAGE=NAME:TAG names it"
	@echo "make release    dist/: archives, packages, images, chart, checksums: docs/internals/release.md"
	@echo "make docs       the site of the pages in docs/, with a search: build/site/index.html"
	@echo "make pictures   the pictures of the README, in Chromium: docs/pictures"
	@echo "make install    with DESTDIR; make clean"
	@echo "V=1 shows every command of meson and ninja."
	@echo "demo, check, test, lint and docs install the Debian packages they need; the others say what they miss."

demo:
	@scripts/deps.sh build
	@scripts/build.sh $(BUILD) programs >&2
	@samples/demo.sh $(BUILD)

test:
	@scripts/deps.sh build test
	@scripts/setup.sh $(BUILD)
	@$(TEST) $(AT_ONCE) -C $(BUILD); status=$$?; scripts/skipped.py $(BUILD); exit $$status

check:
	@scripts/deps.sh build test
	@scripts/setup.sh $(BUILD)
	@$(TEST) $(AT_ONCE) -C $(BUILD) --suite unit --suite quick --no-suite cross --no-suite slow; \
		status=$$?; scripts/skipped.py $(BUILD); exit $$status

bench: all
	@scripts/build.sh $(BUILD) all
	meson test -C $(BUILD) --setup bare --benchmark --verbose --num-processes 1

lint:
	@scripts/deps.sh build lint
	@scripts/build.sh $(BUILD) all
	@scripts/lint.sh $(BUILD)

format:
	@scripts/deps.sh lint
	@scripts/sources.sh c h | xargs -d '\n' clang-format -i

asan tsan: %: build-%/build.ninja
	@scripts/setup.sh build-$* # the list of tests may have changed
	$(SANITIZED) $(TEST) $(AT_ONCE) -C build-$* $$(scripts/sanitized.py build-$*)

fuzz: build-fuzz/build.ninja
	@scripts/build.sh build-fuzz fuzzers
	$(SANITIZED) scripts/fuzz.sh build-fuzz $(FUZZ_SECONDS)

coverage: build-coverage/build.ninja
	@scripts/deps.sh coverage
	$(TEST) $(AT_ONCE) -C build-coverage
	gcovr --root . --filter src/ --filter sim/ --print-summary build-coverage

thorough:
	@scripts/deps.sh build test
	@scripts/setup.sh $(BUILD)
	@scripts/thorough.py $(BUILD) $(ROOM)

mutants:
	@scripts/deps.sh build test
	@tests/mutants/mutants.py run

# What a sanitizer inserts makes -O2 and debugging information of local variables take twice the time.
SANITIZED_BUILD = -Db_lundef=false -Doptimization=1 -Dc_args=-g1
# Links more than 200 programs in half of the time, where binutils has it.
QUICK_LINKER = $(if $(shell command -v ld.gold),CC_LD=gold)

build-asan/build.ninja:
	@scripts/deps.sh build test
	@$(QUICK_LINKER) scripts/setup.sh build-asan -Db_sanitize=address,undefined $(SANITIZED_BUILD)

build-tsan/build.ninja:
	@scripts/deps.sh build test
	@$(QUICK_LINKER) scripts/setup.sh build-tsan -Db_sanitize=thread $(SANITIZED_BUILD)

# pointer-overflow: an empty Str has NULL for data; NULL + 0 is what compilers always took it for, and C2y says so, too.
build-fuzz/build.ninja:
	@scripts/deps.sh build fuzz
	@CC=clang scripts/setup.sh build-fuzz -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false \
		-Dc_args=-fno-sanitize=pointer-overflow

build-coverage/build.ninja:
	@scripts/deps.sh build test
	@scripts/setup.sh build-coverage -Db_coverage=true

image: all
	@scripts/image.py $(BUILD) $(BUILD)/aliquot-image.tar $(IMAGE)

release:
	@scripts/release.sh dist

# Sphinx with Debian's own theme; a link without a target is an error.
docs:
	@scripts/deps.sh docs
	@sphinx-build -q -W --keep-going -b html -c docs -d $(BUILD)/site-doctrees . $(BUILD)/site
	@echo "$(BUILD)/site/index.html"

# Of a simulated cluster; make docs and the README show what is committed.
pictures: all
	@scripts/deps.sh browser
	@scripts/pictures.py $(BUILD)

# The suite with overlays over all file systems; what it left is listed. As root.
leaves-nothing:
	@scripts/deps.sh build test
	@tests/release/leaves-nothing.sh $(BUILD)

# Minutes, and packages from Debian's mirrors: CI does not run it.
release-test:
	@tests/release/run.sh

install: all
	meson install --no-rebuild -C $(BUILD)

clean:
	rm -rf $(BUILD) build-asan build-tsan build-fuzz build-coverage build-mutants build-release dist

# Against the cluster that KUBECONFIG names: tests/e2e/README.md. 77 is "skipped" to every harness that counts.
e2e: all
	@python3 tests/e2e/run.py

# On this machine's card, with a C compiler, libc and python3 only: tests/gpu/README.md.
gpu-test:
	@python3 tests/gpu/run.py --check
	@tests/gpu/prepare.sh $(BUILD)/gpu
	@OUT=$(BUILD)/gpu-results tests/gpu/session.sh $(BUILD)/gpu

# NVIDIA's own libcuda and NVML, from NATIVE_DRIVER=DIR or installed: tests/native/README.md. 77 is "skipped", as above.
native-test: all
	@scripts/build.sh $(BUILD) tests/native/native.so tests/native/front.so
	@python3 tests/native/run.py $(BUILD)/libaliquot.so $(BUILD)/aliquot-sim $(BUILD)/tests/native/native.so $(BUILD)/tests/native/front.so
