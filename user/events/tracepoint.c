// SPDX-License-Identifier: BSD-2-Clause
/*
 * The kernel's tracepoints: SUBSYSTEM:NAME[:FIELD].
 *
 * They are attached to by name and described by BTF, so that tracefs need not be mounted.  BTF does
 * not say which subsystem a tracepoint is of.
 *
 * A system call has no tracepoint of its own: sys_enter and sys_exit are called for all of them,
 * and BPF picks those with its number.
 */
#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>

#include "architecture/architecture.h"
#include "base/log.h"
#include "base/near.h"
#include "base/xalloc.h"
#include "events/linked_run.h"
#include "events/system_call.h"
#include "events/tracepoint.h"
#include "events/tracepoint_types.h"

#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

#define SYSTEM_CALLS "syscalls"
#define ENTER	     "sys_enter"
#define EXIT	     "sys_exit"

/* For which thread a tracepoint is called. */
enum context {
	THE_THREADS, /* for the current one */
	MIXED,	     /* the same, but also in interrupts */
	LOCKS,	     /* while the kernel holds any lock, which sampling may need */
};

/* The tracepoints that are known.  The last row that matches is the one. */
static const struct tracepoint_row {
	const char *subsystem, *names;
	enum context context;
} rows[] = {
	{ "block", "block_bio_*", MIXED },
	{ "block", "block_getrq", MIXED },
	{ "block", "block_plug", MIXED },
	{ "block", "block_split", MIXED },
	{ "exceptions", "page_fault_kernel", MIXED },
	{ "exceptions", "page_fault_user", THE_THREADS },
	{ "filemap", "mm_filemap_*", MIXED },
	{ "kmem", "kfree", MIXED },
	{ "kmem", "kmalloc*", MIXED },
	{ "kmem", "kmem_cache_*", MIXED },
	{ "kmem", "mm_page_*", MIXED },
	{ "kmem", "rss_stat", MIXED },
	{ "lock", "contention_*", LOCKS },
	{ "lock", "lock_*", LOCKS },
	{ "net", "net_dev_*", MIXED },
	{ "raw_syscalls", ENTER, THE_THREADS },
	{ "raw_syscalls", EXIT, THE_THREADS },
	{ "sched", "sched_process_*", MIXED },
	{ "sched", "sched_switch", THE_THREADS },
	{ "sched", "sched_wak*", MIXED },
	{ "sock", "inet_*", MIXED },
	{ "sock", "sock_*", MIXED },
	{ "task", "task_*", THE_THREADS },
	{ "writeback", "writeback_*", MIXED },
};

static const struct tracepoint_row *find_row(const char *name)
{
	for (size_t i = sizeof(rows) / sizeof(rows[0]); i > 0; i--)
		if (fnmatch(rows[i - 1].names, name, 0) == 0)
			return &rows[i - 1];
	return NULL;
}

char *tracepoint__subsystems(void)
{
	char *text = xstrdup(SYSTEM_CALLS);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].context != LOCKS &&
		    (!i || strcmp(rows[i].subsystem, rows[i - 1].subsystem) != 0))
			text = xappend(text, ", ", rows[i].subsystem);
	}
	return text;
}

static bool is_word(const char *text, const char *letters, size_t *length)
{
	*length = strspn(text, letters);
	return *length && !isdigit((unsigned char)*text);
}

static bool take(const char *text, size_t *length, struct event *event, char **wrong)
{
	size_t subsystem, name, field;

	if (!is_word(text, WORD, &subsystem) || text[subsystem] != ':' ||
	    !is_word(text + subsystem + 1, WORD, &name))
		return false;
	*wrong = NULL;
	*length = subsystem + 1 + name;
	if (text[*length] == ':' && is_word(text + *length + 1, WORD ".", &field))
		*length += 1 + field;
	if (text[*length] && !strchr(":@", text[*length]))
		*wrong = xasprintf("'%s' is no tracepoint: use SUBSYSTEM:NAME or "
				   "SUBSYSTEM:NAME:FIELD",
				   text);
	event->unit = "count";
	event->period = 1;
	return true;
}

/* The parts of an event's name. */
struct parts {
	char *subsystem, *name;
	const char *field; /* NULL: none */
};

static struct parts split(const char *text)
{
	struct parts parts = { .subsystem = xstrdup(text) };
	char *rest = parts.subsystem;

	strsep(&rest, ":");
	parts.name = strsep(&rest, ":");
	parts.field = rest;
	return parts;
}

static char *refuse_argument(const char *call, const char *field)
{
	const char *known = system_call__arguments(call);

	return xasprintf("the system call %s has no argument '%s': use %s%sarg0 to arg5", call,
			 field, known, *known ? ", or " : "");
}

/* The call's number, where sys_exit finds it. */
static struct tracepoint_field number_at_exit(void)
{
	uint32_t bytes = ARCHITECTURE.call_number_bytes, shift = 64 - bytes * 8;

	return (struct tracepoint_field){ .is_member = 1,
					  .offset = ARCHITECTURE.call_number,
					  .bytes = bytes,
					  .left = shift,
					  .right = shift,
					  .is_signed = 1 };
}

static const struct tracepoint_field second_argument = { .argument = 1,
							 .bytes = 8,
							 .is_signed = 1 };

static char *resolve_enter(struct event *event, const char *call, const char *field)
{
	int argument;

	strcpy(event->attach, ENTER);
	event->tracepoint.filter = second_argument;
	if (!field)
		return NULL;
	argument = system_call__argument(call, field);
	if (argument < 0)
		return refuse_argument(call, field);
	event->tracepoint.value =
		(struct tracepoint_field){ .is_member = 1,
					   .offset = ARCHITECTURE.call_arguments[argument],
					   .bytes = 8,
					   .is_signed = 1 };
	return NULL;
}

static char *resolve_exit(struct event *event, const char *call, const char *field)
{
	strcpy(event->attach, EXIT);
	event->tracepoint.filter = number_at_exit();
	if (!field)
		return NULL;
	event->tracepoint.value = second_argument;
	return strcmp(field, "ret") == 0
		       ? NULL
		       : xasprintf("the end of the system call %s has no field '%s': use ret", call,
				   field);
}

static char *resolve_system_call(struct event *event, const char *name, const char *field)
{
	bool enters = strncmp(name, ENTER "_", strlen(ENTER "_")) == 0;
	bool exits = strncmp(name, EXIT "_", strlen(EXIT "_")) == 0;
	const char *call = name + (enters ? strlen(ENTER "_") : strlen(EXIT "_"));
	int number;

	if (!enters && !exits)
		return xasprintf("'%s' is no tracepoint of " SYSTEM_CALLS ": use " ENTER
				 "_CALL or " EXIT "_CALL, such as " ENTER "_write",
				 name);
	number = system_call__number(call);
	if (number < 0)
		return near__suggest(xasprintf("there is no system call '%s'", call),
				     system_call__near(call));
	event->tracepoint.filtered = number;
	return enters ? resolve_enter(event, call, field) : resolve_exit(event, call, field);
}

static char *refuse_name(const struct btf *btf, const char *name)
{
	char *near = tracepoint_types__near(btf, name), *wrong;

	wrong = near__suggest(xasprintf("this kernel has no tracepoint '%s'", name), near);
	free(near);
	return wrong;
}

/* Checks that samples of a tracepoint mean something; its name is known. */
static char *check_context(struct event *event, const struct parts *parts, bool any_context)
{
	const struct tracepoint_row *row = find_row(parts->name);

	if (row && strcmp(row->subsystem, parts->subsystem) != 0)
		return xasprintf("%s is a tracepoint of %s: use %s:%s", parts->name, row->subsystem,
				 row->subsystem, parts->name);
	if (row && row->context == LOCKS)
		return xasprintf("%s cannot be sampled: sampling takes locks itself", event->name);
	event->tracepoint.may_interrupt = !row || row->context == MIXED;
	if (row || any_context)
		return NULL;
	return xasprintf("%s may be called for another thread than the one that is running: "
			 "--any-context samples it nevertheless, and marks what is in an interrupt",
			 event->name);
}

/* Without BTF nothing is refused here: no BPF program can be loaded, and that is an error. */
static char *resolve(struct event *event, const struct event_users *users)
{
	struct parts parts = split(event->name);
	struct btf *btf = NULL;
	char *wrong = NULL;

	if (strcmp(parts.subsystem, SYSTEM_CALLS) == 0) {
		wrong = resolve_system_call(event, parts.name, parts.field);
	} else if ((btf = btf__parse_raw(BTF_PATH))) {
		snprintf(event->attach, sizeof(event->attach), "%s", parts.name);
		if (!tracepoint_types__have(btf, parts.name))
			wrong = refuse_name(btf, parts.name);
		if (!wrong)
			wrong = check_context(event, &parts, users->any_context);
		if (!wrong && parts.field)
			wrong = tracepoint_types__find_field(btf, parts.name, parts.field,
							     &event->tracepoint.value);
	}
	btf__free(btf);
	free(parts.subsystem);
	return wrong;
}

static int attach(void *run, const struct bpf_program *program)
{
	const struct linked_run *opened = run;

	if (strcmp(opened->tracepoint, ENTER) == 0 || strcmp(opened->tracepoint, EXIT) == 0)
		log__warning("while system calls are sampled, those of all processes take a little "
			     "longer");
	return linked_run__attach(run, program);
}

#define FIELD_ROW "%-32s  %s\n"

static bool print_field(void *context, const char *path, const char *type,
			const struct tracepoint_field *field)
{
	(void)field;
	fprintf(context, FIELD_ROW, path, type);
	return true;
}

static void print_call(const struct parts *parts, FILE *file)
{
	const char *known;

	if (strncmp(parts->name, EXIT, strlen(EXIT)) == 0) {
		fprintf(file, FIELD_ROW, "ret", "long");
		return;
	}
	known = system_call__arguments(parts->name + strlen(ENTER "_"));
	for (int i = 0; i < SYSTEM_CALL_ARGUMENTS; i++) {
		int length = strcspn(known, ",");
		char number[] = { 'a', 'r', 'g', '0' + i, '\0' };
		char *name = length ? xasprintf("%s, %.*s", number, length, known) : NULL;

		fprintf(file, FIELD_ROW, name ?: number, "long");
		free(name);
		known += length + strspn(known + length, ", ");
	}
}

void tracepoint__print_fields(const struct event *event, FILE *file)
{
	struct parts parts = split(event->name);
	struct btf *btf;

	fprintf(file, FIELD_ROW, "FIELD", "TYPE");
	if (strcmp(parts.subsystem, SYSTEM_CALLS) == 0) {
		print_call(&parts, file);
	} else if ((btf = btf__parse_raw(BTF_PATH))) {
		tracepoint_types__each_field(btf, parts.name, print_field, file);
		btf__free(btf);
	}
	free(parts.subsystem);
}

const struct event_source event_tracepoint = {
	.program = PROGRAM_TRACEPOINT,
	.take = take,
	.resolve = resolve,
	.open = linked_run__open,
	.attach = attach,
	.detach = linked_run__detach,
	.close = linked_run__close,
};
