// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <bpf/btf.h>

#include "base/xalloc.h"
#include "events/events.h"
#include "events/interrupts.h"
#include "events/system_call.h"
#include "events/tracepoint_types.h"
#include "unwind/kernel_symbols.h"

/* struct packet { u16 small; union { int length; }; struct { long deep; } inner; void *data;
 *		   unsigned low : 5, high : 27; }
 * TRACE_EVENT(sent, TP_PROTO(struct packet *packet, int result, void *other)) */
static struct btf *btf;

static int add_prototype(int packet, int integer, int nothing, bool named)
{
	int proto = btf__add_func_proto(btf, 0);

	btf__add_func_param(btf, named ? "__data" : NULL, nothing);
	btf__add_func_param(btf, named ? "packet" : NULL, packet);
	btf__add_func_param(btf, named ? "result" : NULL, integer);
	btf__add_func_param(btf, named ? "other" : NULL, nothing);
	return proto;
}

static void add_tracepoint(const char *name, int proto)
{
	char *text = xasprintf("btf_trace_%s", name);

	btf__add_typedef(btf, text, btf__add_ptr(btf, proto));
	free(text);
}

static int make_types(void **state)
{
	int integer, small, word, large, nothing, either, inner, packet, pointer;

	(void)state;
	btf = btf__new_empty();
	integer = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	word = btf__add_int(btf, "unsigned int", 4, 0);
	large = btf__add_int(btf, "long", 8, BTF_INT_SIGNED);
	small = btf__add_typedef(btf, "u16", btf__add_int(btf, "short", 2, 0));
	nothing = btf__add_ptr(btf, 0);
	either = btf__add_union(btf, NULL, 4);
	btf__add_field(btf, "length", integer, 0, 0);
	inner = btf__add_struct(btf, "inner", 8);
	btf__add_field(btf, "deep", large, 0, 0);
	packet = btf__add_struct(btf, "packet", 32);
	btf__add_field(btf, "small", small, 0, 0);
	btf__add_field(btf, NULL, either, 32, 0);
	btf__add_field(btf, "inner", inner, 64, 0);
	btf__add_field(btf, "data", nothing, 128, 0);
	btf__add_field(btf, "low", word, 192, 5);
	btf__add_field(btf, "high", word, 197, 27);
	pointer = btf__add_ptr(btf, btf__add_const(btf, packet));
	add_tracepoint("sent", add_prototype(pointer, integer, nothing, false));
	add_tracepoint("unnamed", add_prototype(pointer, integer, nothing, false));
	add_tracepoint("sent_late", add_prototype(pointer, integer, nothing, false));
	btf__add_func(btf, "__traceiter_sent", BTF_FUNC_STATIC,
		      add_prototype(pointer, integer, nothing, true));
	return 0;
}

static int free_types(void **state)
{
	(void)state;
	btf__free(btf);
	return 0;
}

static void is_at(const char *name, const char *path, uint32_t offset, uint32_t bytes,
		  uint32_t left, uint32_t right, bool is_signed)
{
	struct tracepoint_field field;
	char *wrong = tracepoint_types__find_field(btf, name, path, &field);

	if (wrong)
		fail_msg("%s", wrong);
	assert_int_equal(field.argument, 0);
	assert_true(field.is_member);
	assert_int_equal(field.offset, offset);
	assert_int_equal(field.bytes, bytes);
	assert_int_equal(field.left, left);
	assert_int_equal(field.right, right);
	assert_int_equal(field.is_signed, is_signed);
}

static void members_are_found(void **state)
{
	(void)state;
	is_at("sent", "small", 0, 2, 48, 48, false);
	is_at("sent", "packet.small", 0, 2, 48, 48, false);
	is_at("sent", "length", 4, 4, 32, 32, true);
	is_at("sent", "inner.deep", 8, 8, 0, 0, true);
	is_at("sent", "low", 24, 1, 59, 59, false);
	is_at("sent", "high", 24, 4, 32, 37, false);
	is_at("unnamed", "arg0.length", 4, 4, 32, 32, true);
	is_at("unnamed", "length", 4, 4, 32, 32, true);
}

static void arguments_are_found(void **state)
{
	static const char *const texts[][2] = { { "sent", "result" },
						{ "sent", "arg1" },
						{ "unnamed", "arg1" } };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct tracepoint_field field;

		assert_null(tracepoint_types__find_field(btf, texts[i][0], texts[i][1], &field));
		assert_int_equal(field.argument, 1);
		assert_false(field.is_member);
		assert_int_equal(field.left, 32);
		assert_int_equal(field.right, 32);
		assert_true(field.is_signed && field.bytes);
	}
}

static void refuses_field(const char *path, const char *said)
{
	struct tracepoint_field field;
	char *wrong = tracepoint_types__find_field(btf, "sent", path, &field);

	assert_non_null(wrong);
	if (!strstr(wrong, said))
		fail_msg("%s: %s", path, wrong);
	free(wrong);
}

static void other_fields_are_refused(void **state)
{
	(void)state;
	refuses_field("lengtj", "did you mean packet.length?");
	refuses_field("data", "sent has no field 'data'");
	refuses_field("other", "no field 'other'");
	refuses_field("arg0", "no field 'arg0'");
	refuses_field("arg3", "no field");
	refuses_field("elephant", "it has packet.small, packet.length, packet.inner.deep, "
				  "packet.low, packet.high, result");
	refuses_field("packet", "no field");
}

static void names_are_known(void **state)
{
	char *near;

	(void)state;
	assert_true(tracepoint_types__have(btf, "sent"));
	assert_false(tracepoint_types__have(btf, "packet"));
	assert_false(tracepoint_types__have(btf, "send"));
	near = tracepoint_types__near(btf, "send");
	assert_string_equal(near, "sent");
	free(near);
	near = tracepoint_types__near(btf, "late");
	assert_string_equal(near, "sent_late");
	free(near);
	near = tracepoint_types__near(btf, "elephants");
	assert_string_equal(near, "");
	free(near);
}

static void calls_are_known(void **state)
{
	(void)state;
	assert_string_equal(system_call__name(system_call__number("write")), "write");
	assert_int_equal(system_call__number("wrote"), -1);
	assert_string_equal(system_call__near("wrte"), "write");
	assert_null(system_call__near("elephants"));
	assert_int_equal(system_call__argument("write", "count"), 2);
	assert_int_equal(system_call__argument("write", "fd"), 0);
	assert_int_equal(system_call__argument("write", "coun"), -1);
	assert_int_equal(system_call__argument("write", ""), -1);
	assert_int_equal(system_call__argument("getpid", "arg5"), 5);
	assert_int_equal(system_call__argument("getpid", "arg6"), -1);
	assert_int_equal(system_call__argument("getpid", "count"), -1);
}

static void interrupts_are_found(void **state)
{
	static const char lines[] = "1000 T asm_exc_page_fault\n"
				    "1100 T asm_common_interrupt\n"
				    "1100 T __irqentry_text_start\n"
				    "1200 T asm_sysvec_irq_work\n"
				    "1300 T __irqentry_text_end\n"
				    "2000 t handle_softirqs\n"
				    "2080 t next\n";
	char path[] = "/tmp/test_interrupts.XXXXXX";
	FILE *file = fdopen(mkstemp(path), "w");
	struct kernel_code codes[INTERRUPT_CODES];
	struct kernel_symbols *symbols;
	bool has_fred;

	(void)state;
	fputs(lines, file);
	fclose(file);
	symbols = kernel_symbols__read(path);
	remove(path);
	/* A processor with FRED has no entries of their own for interrupts. */
	has_fred = system("grep -qw fred /proc/cpuinfo") == 0;
	assert_int_equal(interrupts__find(symbols, codes) != NULL, has_fred);
	if (!has_fred) {
		assert_int_equal(codes[0].start, 0x1100);
		assert_int_equal(codes[0].bytes, 0x200);
		assert_int_equal(codes[1].start, 0x2000);
		assert_int_equal(codes[1].bytes, 0x80);
		assert_int_equal(codes[2].bytes, 0);
	}
	kernel_symbols__free(symbols);
	assert_non_null(interrupts__find(NULL, codes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_are_found),	    cmocka_unit_test(arguments_are_found),
		cmocka_unit_test(other_fields_are_refused), cmocka_unit_test(names_are_known),
		cmocka_unit_test(calls_are_known),	    cmocka_unit_test(interrupts_are_found),
	};

	return cmocka_run_group_tests(tests, make_types, free_types);
}
