# SPDX-License-Identifier: BSD-2-Clause
# Everything that is generated lies under .output/.  V=1 shows the commands.

MACHINE_ARCH := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')
ARCH := $(MACHINE_ARCH)
OUTPUT := $(if $(filter $(MACHINE_ARCH),$(ARCH)),.output,.output/$(ARCH))
PREFIX ?= /usr/local
VERSION := 0.1.0
CC ?= gcc
CLANG ?= clang
LLVM_STRIP ?= $(firstword $(shell command -v llvm-strip llvm-strip-19 llvm-strip-14) llvm-strip)
BPFTOOL ?= $(firstword $(shell command -v bpftool || ls /usr/sbin/bpftool 2>/dev/null) bpftool)
PKG_CONFIG ?= pkg-config

# For another architecture: this machine's compilers, and libraries from a sysroot.
ifneq ($(ARCH),$(MACHINE_ARCH))
TRIPLET_arm64 := aarch64-linux-gnu
TRIPLET := $(or $(TRIPLET_$(ARCH)),$(error there is no ARCH=$(ARCH), but $(MACHINE_ARCH) and arm64))
SYSROOT ?= $(or $(PYBPFPROF_TEST_CACHE),/var/cache/pybpfprof-tests)/$(ARCH)/bookworm
CC := $(TRIPLET)-gcc --sysroot=$(SYSROOT)
PKG_CONFIG := PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) \
	PKG_CONFIG_LIBDIR=$(SYSROOT)/usr/lib/$(TRIPLET)/pkgconfig $(PKG_CONFIG)
endif

# It reads what others have written.  Sanitizers do without this: they see more, but not what it has caught.
CFLAGS ?= -O2 -g -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE
LDFLAGS ?= -pie -Wl,-z,relro,-z,now
LIBRARIES := libbpf zlib libprotobuf-c jansson sqlite3 yaml-0.1 libpcre2-8 libmicrohttpd libcurl libelf
HOUSE_CPPFLAGS = -D_GNU_SOURCE -DPYBPFPROF_VERSION='"$(VERSION)"' \
	-DARCHITECTURE=$(ARCH)_architecture \
	-Ibpf -Ioffsets -Iuser -I$(OUTPUT) \
	$(shell $(PKG_CONFIG) --cflags $(LIBRARIES))
HOUSE_CFLAGS := -std=gnu11 -Wall -Wextra -Werror -Wmissing-prototypes -Wshadow -fno-omit-frame-pointer
LIBS = $(shell $(PKG_CONFIG) --libs $(LIBRARIES)) -liberty -lm -pthread
BPF_CFLAGS := -O2 -g -Wall -Wextra -Werror -target bpf -mcpu=v3 -Ibpf -Ibpf/$(ARCH) -Ivmlinux \
	-Ivmlinux/$(ARCH)
# The BPF program as part of an ordinary one.
NATIVE_BPF := -Ibpf/native -Ibpf/$(ARCH) -Ivmlinux/$(ARCH)
# Unit tests and fuzzers share these objects.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined
CHECKED_CC = $(CLANG) -O1 -gline-tables-only $(SANITIZE) $(HOUSE_CFLAGS) -Wno-string-concatenation $(HOUSE_CPPFLAGS)

SOURCES := $(wildcard user/*.c user/*/*.c offsets/*.c)
MESSAGES := $(notdir $(basename $(wildcard user/*/*.proto)))
OBJECTS := $(SOURCES:%.c=$(OUTPUT)/%.o) $(MESSAGES:%=$(OUTPUT)/%.pb-c.o)
CHECKED := $(filter-out %/user/main.o,$(SOURCES:%.c=$(OUTPUT)/sanitized/%.o)) \
	$(MESSAGES:%=$(OUTPUT)/sanitized/%.pb-c.o)
GENERATED := $(OUTPUT)/pybpfprof.skel.h $(MESSAGES:%=$(OUTPUT)/%.pb-c.h) \
	$(OUTPUT)/offset_tables.h $(OUTPUT)/system_call_names.h
UNIT_TESTS := $(patsubst tests/unit/%.c,$(OUTPUT)/unit/%,$(wildcard tests/unit/test_*.c))
NATIVE_TESTS := $(patsubst tests/native/%.c,$(OUTPUT)/unit/%,$(wildcard tests/native/test_*.c)) \
	$(OUTPUT)/unit/walker
FUZZERS := $(patsubst tests/fuzz/%.c,$(OUTPUT)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FAULTS := $(addprefix $(OUTPUT)/,fail_allocation.so fail_each_allocation.so slow_disk.so interrupted.so \
	claim_capabilities.so fail_starts.so refuse_bpf.so)
# Debian 13's, whose BPF program old kernels are to take as well; where it is there.
NEWER_CLANG := $(shell command -v clang-19)
PRELOADED := $(OUTPUT)/verifier_cost.so
IN_MACHINES := $(PRELOADED) $(if $(NEWER_CLANG),$(OUTPUT)/newer.bpf.o)
NATIVE_OBJECTS := $(addprefix $(OUTPUT)/sanitized/tests/native/,kernel.o image.o harness.o threads.o c_stack.o)
TEST_OBJECTS := $(patsubst %.c,$(OUTPUT)/sanitized/%.o,$(wildcard tests/unit/test_*.c tests/native/*.c tests/fuzz/*.c))
PAGE := $(wildcard user/output/page/*)
STATUS_PAGE := $(wildcard user/http/status/*)
BPF_HEADERS := $(wildcard bpf/*.h bpf/*/*.h vmlinux/*.h vmlinux/*/*.h)
FORMATTED := $(wildcard bpf/*.[ch] bpf/*/*.h user/*.[ch] user/*/*.[ch] offsets/*.[ch] \
	vmlinux/*.h vmlinux/*/*.h tests/unit/*.[ch] tests/native/*.[ch] bpf/*/*/*.h \
	tests/fuzz/*.[ch] tests/kernels/*.c tests/programs/*.c tests/standin/*.[ch])

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s %s\n' "$(1)" "$(patsubst $(CURDIR)/%,%,$(2))"
endif

# As many as the machine has CPUs, where nobody said.
JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all foreign clean install uninstall deb demo check test prove vmshell unit-tests fuzzers in-machines bench \
	bench-versions bench-scale format-check lint

all: $(OUTPUT)/pybpfprof
	@:

$(OUTPUT)/pybpfprof: $(OBJECTS)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LIBS) -o $@

BPF_CLANG = $(CLANG)
$(OUTPUT)/newer.bpf.o: BPF_CLANG := $(NEWER_CLANG)
$(OUTPUT)/pybpfprof.bpf.o $(OUTPUT)/newer.bpf.o: bpf/pybpfprof.bpf.c $(BPF_HEADERS) | $(OUTPUT)/
	$(call say,BPF,$@)
	$(Q)$(BPF_CLANG) $(BPF_CFLAGS) -c $< -o $@
	$(Q)$(LLVM_STRIP) -g $@

$(OUTPUT)/pybpfprof.skel.h: $(OUTPUT)/pybpfprof.bpf.o
	$(call say,SKELETON,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name pybpfprof_bpf >$@

vpath %.proto user/output user/push

$(OUTPUT)/%.pb-c.h: %.proto | $(OUTPUT)/
	$(call say,PROTO,$@)
	$(Q)protoc --proto_path=$(<D) --c_out=$(OUTPUT) $<

$(OUTPUT)/%.pb-c.c: $(OUTPUT)/%.pb-c.h ;

$(OUTPUT)/offset_tables.h: offsets/table.txt offsets/generate.py | $(OUTPUT)/
	$(call say,TABLES,$@)
	$(Q)python3 offsets/generate.py --header >$@

$(OUTPUT)/system_call_names.h: | $(OUTPUT)/
	$(call say,NAMES,$@)
	$(Q)echo '#include <asm/unistd.h>' | $(CC) -E -dM -xc - >$@.macros
	$(Q)sed -n '/__NR_\(syscalls\|arch_specific_syscall\) /d; s/^#define __NR_\([a-z][a-z0-9_]*\) .*/[SYS_\1] = "\1",/p' \
		$@.macros | sort >$@
	$(Q)rm $@.macros

# Generated code is not ours to keep free of warnings.
MESSAGE_OBJECTS := $(MESSAGES:%=$(OUTPUT)/%.pb-c.o) $(MESSAGES:%=$(OUTPUT)/sanitized/%.pb-c.o)
$(filter $(OUTPUT)/sanitized/%,$(MESSAGE_OBJECTS)): $(OUTPUT)/sanitized/%.o: $(OUTPUT)/%.c
$(MESSAGES:%=$(OUTPUT)/%.pb-c.o): $(OUTPUT)/%.o: $(OUTPUT)/%.c
$(MESSAGE_OBJECTS):
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(HOUSE_CPPFLAGS) -c $< -o $@

$(OUTPUT)/%.o: %.c Makefile | $(GENERATED)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(HOUSE_CFLAGS) $(HOUSE_CPPFLAGS) -MMD -MP -c $< -o $@

$(OUTPUT)/sanitized/%.o: %.c Makefile | $(GENERATED)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CHECKED_CC) -fsanitize=fuzzer-no-link $(TEST_INCLUDES) -MMD -MP -c $< -o $@

$(OUTPUT)/sanitized/tests/unit/%.o: TEST_INCLUDES := -Itests/unit
$(OUTPUT)/sanitized/tests/fuzz/%.o: TEST_INCLUDES := -Itests/unit -Itests/fuzz
$(OUTPUT)/sanitized/tests/native/%.o: TEST_INCLUDES := -Itests/native $(NATIVE_BPF)
.SECONDARY: $(TEST_OBJECTS)

$(addsuffix /user/sampling/outside_walker.o,$(OUTPUT) $(OUTPUT)/sanitized): HOUSE_CPPFLAGS := \
	$(NATIVE_BPF) $(HOUSE_CPPFLAGS)

$(addsuffix /user/output/html.o,$(OUTPUT) $(OUTPUT)/sanitized): $(PAGE)
$(addsuffix /user/agent/web.o,$(OUTPUT) $(OUTPUT)/sanitized): $(STATUS_PAGE)

$(OUTPUT)/sanitized/libpybpfprof.a: $(CHECKED)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# Fakes of BPF and of processes, for tests of the watch.
WATCH_WRAPPED := $(addprefix target_map__,new_serial put refuse follow set_aside await \
	awaited remove has has_told has_untold claim holds samples rate_shift shift_rate know_python know_other) \
	$(addprefix sampler__,targets follow begin_epoch sees_mappings untold crowded outcomes find_kernel_pid \
	enter leave walk_blocked blocked_due) \
	process__list process__inspect process__program_mappings identity__read identity__read_again target__look

# What a fuzzer gives its own answers to, instead of the system or another module.
FUZZ_WRAPPED := clock_gettime nanosleep
$(OUTPUT)/fuzz/fuzz_process: FUZZ_WRAPPED += fopen target_file__read_on
$(OUTPUT)/fuzz/fuzz_runtime: FUZZ_WRAPPED += process__open_mapping process__program_mappings
$(OUTPUT)/fuzz/fuzz_http: FUZZ_WRAPPED += $(addprefix recording__,ahead_ns look account profile watch) watch__targets listen \
	bind curl_easy_init
$(OUTPUT)/fuzz/fuzz_settings: FUZZ_WRAPPED += fopen store__open store__close
$(OUTPUT)/fuzz/fuzz_store: FUZZ_WRAPPED += sqlite3_open_v2 access
$(OUTPUT)/fuzz/fuzz_watch: FUZZ_WRAPPED += $(WATCH_WRAPPED)

$(OUTPUT)/fuzz/%: $(OUTPUT)/sanitized/tests/fuzz/%.o $(OUTPUT)/sanitized/tests/fuzz/input.o \
		$(OUTPUT)/sanitized/libpybpfprof.a
	$(call say,FUZZER,$@)
	$(Q)mkdir -p $(@D)/corpus/$(@F)
	$(Q)$(CHECKED_CC) -fsanitize=fuzzer $(FUZZ_WRAPPED:%=-Wl,--wrap=%) $^ $(LIBS) -o $@

$(OUTPUT)/unit/test_output_file: UNIT_WRAPPED := fchown fchmod
$(OUTPUT)/unit/test_texts: UNIT_WRAPPED := target_file__exists
$(addprefix $(OUTPUT)/unit/test_,watch watch_families scan): UNIT_WRAPPED := $(WATCH_WRAPPED) sampler__drain \
	sampler__harvest target__open clock_gettime
$(OUTPUT)/unit/test_registry: UNIT_WRAPPED := sampler__leave
$(OUTPUT)/unit/test_blocked_threads: UNIT_WRAPPED := $(addprefix blocked_list__,open close read describe enter is_full \
	count withdraw) outside_walker__walk outside_walker__forget_codes
$(OUTPUT)/unit/test_reader: UNIT_WRAPPED := clock_gettime sem_clockwait usleep
$(OUTPUT)/unit/test_store_limits: UNIT_WRAPPED := clock_gettime
$(addprefix $(OUTPUT)/unit/test_,process runtime): UNIT_WRAPPED := sem_post
# BPF's maps of what unwinding needs: tests/unit/unwind_maps.h.
UNWIND_WRAPPED := bpf_map_create bpf_map_lookup_elem bpf_map_update_elem bpf_map_delete_elem
$(OUTPUT)/unit/test_chunks: UNIT_WRAPPED := $(UNWIND_WRAPPED)
$(OUTPUT)/unit/test_file_rows: UNIT_WRAPPED := $(UNWIND_WRAPPED) symbols__count symbols__at
$(addprefix $(OUTPUT)/unit/test_,unwinder code_file native_frames): UNIT_WRAPPED := $(UNWIND_WRAPPED) \
	process__open_mapping process__identify_mapping
$(OUTPUT)/unit/test_news: UNIT_WRAPPED := clock_gettime $(addprefix sampler__,drain urges fd mappings_fd \
	heralds_fd take_heralds)

$(OUTPUT)/unit/%: $(OUTPUT)/sanitized/tests/unit/%.o $(OUTPUT)/sanitized/libpybpfprof.a
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CHECKED_CC) $(UNIT_WRAPPED:%=-Wl,--wrap=%) $^ $(LIBS) -lelf -lcmocka -o $@

# Writes profiles made by hand, for the tests of what reads them.
$(OUTPUT)/synthetic_profile: tests/programs/synthetic_profile.c tests/unit/synthetic.h \
		$(OUTPUT)/sanitized/libpybpfprof.a
	$(call say,CC,$@)
	$(Q)$(CHECKED_CC) -Itests/unit $< \
		$(OUTPUT)/sanitized/libpybpfprof.a $(LIBS) -o $@

# Makes a store as it is after a day: soon, so without sanitizers.
$(OUTPUT)/synthetic_day: tests/programs/synthetic_day.c tests/unit/synthetic.h $(OBJECTS)
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS) $(HOUSE_CFLAGS) $(HOUSE_CPPFLAGS) -Itests/unit $< \
		$(filter-out %/user/main.o,$(OBJECTS)) $(LIBS) -o $@

$(NATIVE_TESTS): $(OUTPUT)/unit/%: $(OUTPUT)/sanitized/tests/native/%.o $(NATIVE_OBJECTS) \
		$(OUTPUT)/sanitized/libpybpfprof.a
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CHECKED_CC) $^ $(LIBS) -lcmocka -o $@

$(OUTPUT)/:
	$(Q)mkdir -p $@

$(OUTPUT)/line_check $(OUTPUT)/code_dump $(OUTPUT)/identity_dump $(OUTPUT)/dump_rows: $(OUTPUT)/%: tests/programs/%.c \
		$(OUTPUT)/sanitized/libpybpfprof.a
	$(call say,TEST,$@)
	$(Q)$(CHECKED_CC) $< \
		$(OUTPUT)/sanitized/libpybpfprof.a $(LIBS) -o $@

# The walk over native frames beside elfutils'; only its own files are checked by sanitizers.
$(OUTPUT)/unwind_check: tests/programs/unwind_check.c tests/native/unwinding.c tests/native/unwinding.h \
		$(wildcard bpf/*.h bpf/*/*.h bpf/*/*/*.h) $(OBJECTS)
	$(call say,TEST,$@)
	$(Q)$(CHECKED_CC) -Itests/native $(NATIVE_BPF) $(filter %.c,$^) \
		$(filter-out %/user/main.o,$(OBJECTS)) $(LIBS) -ldw -lelf -o $@

# Loaded before the libraries into a profiler that says what the verifier has to do, runs out of memory,
# writes to a slow disk, has its system calls interrupted, takes itself to hold every capability, cannot
# start threads or processes, or has no room for native frames.
$(OUTPUT)/verifier_cost.so: tests/kernels/verifier_cost.c
$(OUTPUT)/fail_allocation.so: tests/programs/fail_allocation.c
$(OUTPUT)/fail_each_allocation.so: tests/programs/fail_each_allocation.c
$(OUTPUT)/slow_disk.so: tests/programs/slow_disk.c
$(OUTPUT)/interrupted.so: tests/programs/interrupted.c
$(OUTPUT)/claim_capabilities.so: tests/programs/claim_capabilities.c
$(OUTPUT)/fail_starts.so: tests/programs/fail_starts.c
$(OUTPUT)/refuse_bpf.so: tests/programs/refuse_bpf.c
$(PRELOADED) $(FAULTS): | $(OUTPUT)/
	$(call say,TEST,$@)
	$(Q)$(CC) $(CFLAGS) -shared -fPIC $(HOUSE_CFLAGS) $(HOUSE_CPPFLAGS) $< -o $@

unit-tests: $(UNIT_TESTS) $(NATIVE_TESTS) $(OUTPUT)/synthetic_profile $(OUTPUT)/synthetic_day \
	$(OUTPUT)/line_check \
	$(OUTPUT)/code_dump $(OUTPUT)/identity_dump $(OUTPUT)/dump_rows $(FAULTS)

fuzzers: $(FUZZERS)

# A target of its own: whether clang-19 is there shows once its package is.
in-machines: $(IN_MACHINES)

ifneq ($(ARCH),$(MACHINE_ARCH))
$(OBJECTS) $(IN_MACHINES): | $(SYSROOT)/usr/include

$(SYSROOT)/usr/include:
	@tests/interpreters/$(ARCH).py bookworm
endif

# What the machine of another architecture runs that the tests boot, if its libraries can be had.
FOREIGN := $(filter-out $(MACHINE_ARCH),arm64)

foreign:
ifneq ($(FOREIGN),)
	+@tests/interpreters/$(FOREIGN).py || { echo "what is not there is skipped"; exit 0; }; \
	$(MAKE) --no-print-directory ARCH=$(FOREIGN) OUTPUT=$(OUTPUT)/$(FOREIGN) all \
		$(IN_MACHINES:$(OUTPUT)/%=$(OUTPUT)/$(FOREIGN)/%)
endif

# What sudo builds belongs to the checkout's owner, so that plain make goes on from there.
OWNERS := chown -R --reference=Makefile $(OUTPUT)

demo:
	@deploy/packages.sh build
	+@$(MAKE) $(JOBS) --no-print-directory all
	@$(OWNERS)
	@tests/programs/demo.sh $(OUTPUT)/pybpfprof

# Tier 1: what needs neither root nor a network, once all is built.
check:
	@deploy/packages.sh --missing check
	+@$(MAKE) $(JOBS) --no-print-directory all unit-tests fuzzers
	@$(MAKE) --no-print-directory lint
	@tests/run check

# Tier 2, which CI runs: tier 1, and end-to-end tests on few interpreters and kernels.
test:
	@deploy/packages.sh test
	+@$(MAKE) $(JOBS) --no-print-directory all unit-tests fuzzers
	@$(OWNERS)
	@$(MAKE) --no-print-directory lint
	@tests/run $(or $(TESTS),test)

# Tier 3 measures and reports, in .output/prove/; PARTS="truth kernels", LIST=1 names them.
prove:
ifdef LIST
	@tests/run prove --list
else
	@deploy/packages.sh prove
	+@$(MAKE) $(JOBS) --no-print-directory all unit-tests fuzzers in-machines
	+@$(if $(filter aarch64,$(or $(PARTS),aarch64)),$(MAKE) $(JOBS) --no-print-directory foreign)
	+@$(if $(filter native,$(or $(PARTS),native)),$(MAKE) $(JOBS) --no-print-directory $(OUTPUT)/unwind_check)
	@$(OWNERS)
	@PUBLISH=$(PUBLISH) tests/run prove $(PARTS)
endif

KERNEL ?= newest

vmshell:
	@deploy/packages.sh prove
	+@$(MAKE) $(JOBS) --no-print-directory all
	@$(OWNERS)
	@tests/kernels/machine.py $(KERNEL) $(ARCH)

# Beside its peers, some 12 minutes; on each version of CPython, some 4 minutes each; with many
# processes, some 7 minutes.
bench bench-versions bench-scale:
	@deploy/packages.sh bench
	+@$(MAKE) $(JOBS) --no-print-directory all
	@$(OWNERS)
	@tests/bench/$(@:bench-%=%).py $(OPTIONS)

CLANG_FORMAT ?= $(firstword $(shell command -v clang-format-14 clang-format) clang-format)
SHELL_SCRIPTS := $(wildcard deploy/*.sh deploy/debian/p* tests/programs/*.sh tests/interpreters/*.sh) \
	tests/kernels/init .ci/run

format-check:
	@printf '%s\n' $(FORMATTED) | xargs -P $(shell nproc) -n 50 $(CLANG_FORMAT) --dry-run -Werror

# Other versions of clang-format format differently.  cppcheck keeps its results for files
# that did not change.
lint: $(if $(findstring version 14,$(shell $(CLANG_FORMAT) --version 2>&1)),format-check) $(OBJECTS) | $(OUTPUT)/
	@mkdir -p $(OUTPUT)/cppcheck
	@cppcheck --quiet --error-exitcode=1 --enable=warning,portability --inline-suppr \
		-j$(shell nproc) --cppcheck-build-dir=$(OUTPUT)/cppcheck \
		--include=/usr/include/uthash.h --include=/usr/include/jansson.h \
		$(NATIVE_BPF) $(filter-out -I$(OUTPUT),$(HOUSE_CPPFLAGS)) user offsets
	@shellcheck $(SHELL_SCRIPTS)
	@tests/rooms.py
	@OUTPUT=$(OUTPUT) tests/circles.py
	@tests/root.py
	@OUTPUT=$(OUTPUT) tests/docs.py
	@codespell --skip "*/corpus/*" --ignore-regex='quo"te' bpf user offsets tests vmlinux deploy docs *.md

install: all
	@$(OWNERS)
	@deploy/install.sh install $(OUTPUT)/pybpfprof "$(PREFIX)" "$(DESTDIR)"

uninstall:
	@deploy/install.sh uninstall "$(PREFIX)" "$(DESTDIR)"

# For the Debian that it is built on.
deb: all
	@deploy/deb.sh $(OUTPUT)/pybpfprof $(VERSION) $(OUTPUT)

clean:
	rm -rf $(OUTPUT)

-include $(OBJECTS:.o=.d) $(CHECKED:.o=.d) $(TEST_OBJECTS:.o=.d)
