# SPDX-License-Identifier: BSD-2-Clause
# Everything that is generated lies under .output/.  V=1 shows the commands.

OUTPUT := .output
PREFIX ?= /usr/local
VERSION := 0.1.0
CC ?= gcc
CLANG ?= clang
LLVM_STRIP ?= $(firstword $(shell command -v llvm-strip llvm-strip-19 llvm-strip-14) llvm-strip)
BPFTOOL ?= $(firstword $(shell command -v bpftool || ls /usr/sbin/bpftool 2>/dev/null) bpftool)
PKG_CONFIG ?= pkg-config
ARCH := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')

CFLAGS ?= -O2 -g
LIBRARIES := libbpf zlib libprotobuf-c jansson
HOUSE_CPPFLAGS = -D_GNU_SOURCE -DPYBPFPROF_VERSION='"$(VERSION)"' -Ibpf -Ioffsets -Iuser \
	-Iuser/output -I$(OUTPUT) $(shell $(PKG_CONFIG) --cflags $(LIBRARIES))
HOUSE_CFLAGS := -std=gnu11 -Wall -Wextra -Werror -Wmissing-prototypes -Wshadow -fno-omit-frame-pointer
LIBS = $(shell $(PKG_CONFIG) --libs $(LIBRARIES)) -lm
BPF_CFLAGS := -O2 -g -Wall -Wextra -Werror -target bpf -mcpu=v3 -D__TARGET_ARCH_$(ARCH) -Ibpf -Ivmlinux
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined

SOURCES := $(wildcard user/*.c user/output/*.c offsets/*.c)
OBJECTS := $(SOURCES:%.c=$(OUTPUT)/%.o) $(OUTPUT)/pprof.pb-c.o
CHECKED := $(filter-out %/user/main.o,$(SOURCES:%.c=$(OUTPUT)/sanitized/%.o)) \
	$(OUTPUT)/sanitized/pprof.pb-c.o
GENERATED := $(OUTPUT)/pybpfprof.skel.h $(OUTPUT)/pprof.pb-c.h
UNIT_TESTS := $(patsubst tests/unit/%.c,$(OUTPUT)/unit/%,$(wildcard tests/unit/test_*.c))
NATIVE_TESTS := $(patsubst tests/native/%.c,$(OUTPUT)/unit/%,$(wildcard tests/native/test_*.c)) \
	$(OUTPUT)/unit/walker
NATIVE_SOURCES := $(addprefix tests/native/,kernel.c image.c harness.c)
PAGE := $(wildcard user/output/page/*)
BPF_HEADERS := $(wildcard bpf/*.h bpf/*/*.h vmlinux/*.h vmlinux/*/*.h)
FORMATTED := $(wildcard bpf/*.[ch] bpf/*/*.h user/*.[ch] user/output/*.[ch] offsets/*.[ch] \
	vmlinux/*.h vmlinux/*/*.h tests/unit/*.[ch] tests/native/*.[ch] tests/native/*/*.h \
	tests/kernels/*.c tests/programs/*.c tests/standin/*.c)

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-8s %s\n' "$(1)" "$(patsubst $(CURDIR)/%,%,$(2))"
endif

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all clean install uninstall demo test test-all vmtest vmshell unit-tests bench format-check lint

all: $(OUTPUT)/pybpfprof
	@:

$(OUTPUT)/pybpfprof: $(OBJECTS)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ $(LIBS) -o $@

$(OUTPUT)/pybpfprof.bpf.o: bpf/pybpfprof.bpf.c $(BPF_HEADERS) | $(OUTPUT)/
	$(call say,BPF,$@)
	$(Q)$(CLANG) $(BPF_CFLAGS) -c $< -o $@
	$(Q)$(LLVM_STRIP) -g $@

$(OUTPUT)/pybpfprof.skel.h: $(OUTPUT)/pybpfprof.bpf.o
	$(call say,SKELETON,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name pybpfprof_bpf >$@

$(OUTPUT)/pprof.pb-c.h: user/output/pprof.proto | $(OUTPUT)/
	$(call say,PROTO,$@)
	$(Q)protoc --proto_path=user/output --c_out=$(OUTPUT) $<

$(OUTPUT)/pprof.pb-c.c: $(OUTPUT)/pprof.pb-c.h ;

# Generated code is not ours to keep free of warnings.
$(OUTPUT)/pprof.pb-c.o $(OUTPUT)/sanitized/pprof.pb-c.o: $(OUTPUT)/pprof.pb-c.c
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
	$(Q)$(CC) -O1 -g $(SANITIZE) $(HOUSE_CFLAGS) $(HOUSE_CPPFLAGS) -MMD -MP -c $< -o $@

$(OUTPUT)/user/output/html.o $(OUTPUT)/sanitized/user/output/html.o: $(PAGE)

$(OUTPUT)/sanitized/libpybpfprof.a: $(CHECKED)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(OUTPUT)/unit/%: tests/unit/%.c $(OUTPUT)/sanitized/libpybpfprof.a $(wildcard tests/unit/*.h)
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -O1 -g $(SANITIZE) $(HOUSE_CFLAGS) $(HOUSE_CPPFLAGS) -Itests/unit $< \
		$(OUTPUT)/sanitized/libpybpfprof.a $(LIBS) -lelf -lcmocka -o $@

# Writes profiles made by hand, for the tests of what reads them.
$(OUTPUT)/synthetic_profile: tests/programs/synthetic_profile.c tests/unit/synthetic.h \
		$(OUTPUT)/sanitized/libpybpfprof.a
	$(call say,CC,$@)
	$(Q)$(CC) -O1 -g $(SANITIZE) $(HOUSE_CFLAGS) $(HOUSE_CPPFLAGS) -Itests/unit $< \
		$(OUTPUT)/sanitized/libpybpfprof.a $(LIBS) -o $@

# The BPF program in an ordinary one: its headers are those of tests/native.
$(NATIVE_TESTS): $(OUTPUT)/unit/%: tests/native/%.c $(NATIVE_SOURCES) \
		$(wildcard tests/native/*.h tests/native/bpf/*.h bpf/*.[ch] bpf/*/*.h) \
		$(OUTPUT)/sanitized/libpybpfprof.a
	$(call say,TEST,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -O1 -g $(SANITIZE) $(HOUSE_CFLAGS) -Itests/native $(HOUSE_CPPFLAGS) $< \
		$(NATIVE_SOURCES) $(OUTPUT)/sanitized/libpybpfprof.a $(LIBS) -lcmocka -o $@

$(OUTPUT)/:
	$(Q)mkdir -p $@

$(OUTPUT)/line_check $(OUTPUT)/code_dump: $(OUTPUT)/%: tests/programs/%.c \
		$(OUTPUT)/sanitized/libpybpfprof.a
	$(call say,TEST,$@)
	$(Q)$(CC) -O1 -g $(SANITIZE) $(HOUSE_CFLAGS) $(HOUSE_CPPFLAGS) $< \
		$(OUTPUT)/sanitized/libpybpfprof.a $(LIBS) -o $@

# Loaded before libbpf into a profiler that says what the verifier has to do.
$(OUTPUT)/verifier_cost.so: tests/kernels/verifier_cost.c | $(OUTPUT)/
	$(call say,TEST,$@)
	$(Q)$(CC) $(CFLAGS) -shared -fPIC $(HOUSE_CFLAGS) $(HOUSE_CPPFLAGS) $< -o $@

unit-tests: $(UNIT_TESTS) $(NATIVE_TESTS) $(OUTPUT)/synthetic_profile $(OUTPUT)/line_check \
	$(OUTPUT)/code_dump $(OUTPUT)/verifier_cost.so

# What sudo builds belongs to the checkout's owner, so that plain make goes on from there.
OWNERS := chown -R --reference=Makefile $(OUTPUT)

demo:
	@deploy/packages.sh demo
	+@$(MAKE) --no-print-directory all
	@$(OWNERS)
	@tests/programs/demo.sh $(OUTPUT)/pybpfprof

# On the interpreters as well that are to be built first, which takes some ten minutes, once.
test-all: RUN_OPTIONS := --all

test test-all:
	@deploy/packages.sh $@
	+@$(MAKE) --no-print-directory all unit-tests
	@$(OWNERS)
	@tests/run $(RUN_OPTIONS) $(TESTS)

# Only what another kernel may change, on Debian's; `make test` does this, too.
vmtest:
	@deploy/packages.sh vmtest
	+@$(MAKE) --no-print-directory all $(OUTPUT)/verifier_cost.so
	@$(OWNERS)
	@tests/interpreters/debian.py || echo "what is not there is skipped"
	@tests/run tests/e2e/test_kernels.py

KERNEL ?= newest

vmshell:
	@deploy/packages.sh vmtest
	+@$(MAKE) --no-print-directory all
	@$(OWNERS)
	@tests/kernels/machine.py $(KERNEL)

bench: all
	@deploy/packages.sh demo
	@$(OWNERS)
	@tests/bench/bench.py

format-check:
	clang-format --dry-run -Werror $(FORMATTED)

lint:
	cppcheck --quiet --error-exitcode=1 --enable=warning,portability --inline-suppr \
		--include=/usr/include/uthash.h $(filter-out -I$(OUTPUT),$(HOUSE_CPPFLAGS)) user offsets
	shellcheck deploy/*.sh tests/programs/*.sh tests/interpreters/*.sh tests/kernels/init .ci/run
	codespell --ignore-regex='quo"te' bpf user offsets tests vmlinux deploy README.md CONTRIBUTING.md

install: all
	@$(OWNERS)
	install -D -m 755 $(OUTPUT)/pybpfprof $(DESTDIR)$(PREFIX)/bin/pybpfprof

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/pybpfprof

clean:
	rm -rf $(OUTPUT)

-include $(OBJECTS:.o=.d) $(CHECKED:.o=.d)
