// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "pybpfprof.h"

/* User space sets it before the program is loaded.  Here each test sets it anew, so it must not
 * be among constants. */
extern const volatile struct config config __attribute__((section(".bss.config")));

/* The programs' entry points have no prototypes: the kernel calls them. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#include "../../bpf/pybpfprof.bpf.c"
#pragma GCC diagnostic pop

#include "base/xalloc.h"
#include "kernel.h"

struct map {
	const void *definition;
	bool hashed; /* else indexed */
	size_t key_bytes, value_bytes;
	__u32 capacity, used;
	__u8 *keys, *values;
};

enum { TARGETS, KNOWN_FILES, LAYOUTS, TOLD_STATES, WALKS, COUNTERS, STACKS };
enum { WAITS = STACKS + 1, GIL_WAITS, UNWIND_FILES, UNWIND_RULES, UNWIND_TABLES, MAP_COUNT };

struct kernel kernel;

static struct map maps[MAP_COUNT];
static struct pid current_pid, leader_pid;
static struct task_struct leader = { .thread_pid = &leader_pid };
static struct mm_struct memory = { .arg_start = 1, .arg_end = 2 };
/* The current task's stack in the kernel, with the registers at its end. */
static struct {
	char others[(1 << STACK_SHIFT) - sizeof(struct pt_regs___task)];
	struct pt_regs___task registers;
} kernel_stack;

static struct task_struct current_task = { .stack = &kernel_stack,
					   .group_leader = &leader,
					   .thread_pid = &current_pid };
static __u32 cpu_count;

/* The inner maps of unwind_chunks, which have one value each. */
static __u32 *chunks[KERNEL_CHUNKS];

#define MAP_CAPACITY(map) (sizeof(*(map).max_entries) / sizeof(int))
#define MAP_TYPE(map)	  (sizeof(*(map).type) / sizeof(int))

#define LOAD_MAP(number, map, entries)                                                    \
	load_map(number, &(map), MAP_TYPE(map) != BPF_MAP_TYPE_ARRAY, sizeof(*(map).key), \
		 sizeof(*(map).value), entries)

static void load_map(int number, const void *definition, bool hashed, size_t key_bytes,
		     size_t value_bytes, __u32 capacity)
{
	struct map *map = &maps[number];

	map->definition = definition;
	map->hashed = hashed;
	map->key_bytes = key_bytes;
	map->value_bytes = value_bytes;
	map->capacity = capacity;
	map->used = 0;
	map->keys = xcalloc(capacity, key_bytes);
	map->values = xcalloc(capacity, value_bytes);
}

static void configure(struct config wanted)
{
	struct config *volatile place = (struct config *)&config;

	*place = wanted;
}

void kernel__need_gil(bool blamed)
{
	configure((struct config){ .held = 1, .blamed = blamed });
}

void kernel__walk_native(bool all)
{
	configure((struct config){ .native = 1, .native_all = all });
}

void kernel__set_tracepoint(const struct tracepoint *tracepoint, const struct kernel_code *code)
{
	struct config wanted = { .tracepoints = { *tracepoint } };

	wanted.interrupts[1] = *code;
	configure(wanted);
}

void kernel__load(__u32 cpus)
{
	memset(&kernel, 0, sizeof(kernel));
	pid_level = 0;
	unannounced = false;
	kernel.registers.cs = SELECTOR_LEVEL;
	kernel.pid = getpid();
	kernel.time_ns = 1000000000; /* not at boot */
	cpu_count = cpus;
	LOAD_MAP(TARGETS, targets, MAP_CAPACITY(targets));
	LOAD_MAP(KNOWN_FILES, known_files, MAP_CAPACITY(known_files));
	LOAD_MAP(LAYOUTS, layouts, MAP_CAPACITY(layouts));
	LOAD_MAP(TOLD_STATES, told_states, MAP_CAPACITY(told_states));
	LOAD_MAP(WALKS, walks, cpus * MAP_CAPACITY(walks));
	LOAD_MAP(COUNTERS, counters, cpus * MAP_CAPACITY(counters));
	LOAD_MAP(STACKS, stacks, cpus * MAP_CAPACITY(stacks));
	LOAD_MAP(WAITS, waits, KERNEL_WAITS);
	LOAD_MAP(GIL_WAITS, gil_waits, KERNEL_WAITS);
	LOAD_MAP(UNWIND_FILES, unwind_files, KERNEL_UNWIND_FILES);
	LOAD_MAP(UNWIND_RULES, unwind_rules, KERNEL_UNWIND_RULES);
	LOAD_MAP(UNWIND_TABLES, unwind_tables, 2);
	configure((struct config){ 0 });
}

void kernel__unload(void)
{
	kernel__drain();
	for (int i = 0; i < MAP_COUNT; i++) {
		free(maps[i].keys);
		free(maps[i].values);
	}
	memset(maps, 0, sizeof(maps));
	for (int i = 0; i < KERNEL_CHUNKS; i++) {
		free(chunks[i]);
		chunks[i] = NULL;
	}
}

static __u8 *find(const struct map *map, const void *key)
{
	for (__u32 i = 0; i < map->used; i++)
		if (!memcmp(map->keys + i * map->key_bytes, key, map->key_bytes))
			return map->values + i * map->value_bytes;
	return NULL;
}

static void update(struct map *map, const void *key, const void *value)
{
	__u8 *present = find(map, key);

	if (!present) {
		memcpy(map->keys + map->used * map->key_bytes, key, map->key_bytes);
		present = map->values + map->used++ * map->value_bytes;
	}
	memcpy(present, value, map->value_bytes);
}

void kernel__add_target(__u32 tgid, __u64 interpreters, __u32 layout, __u64 code_type)
{
	const struct target target = { .serial = tgid,
				       .interpreters = interpreters,
				       .code_type = code_type,
				       .layout = layout };

	update(&maps[TARGETS], &tgid, &target);
}

void kernel__add_unwanted(__u32 tgid)
{
	const struct target target = { .serial = tgid, .state = TARGET_UNWANTED };

	update(&maps[TARGETS], &tgid, &target);
}

void kernel__tell_state(__u32 tgid, __u64 thread_id, __u64 address)
{
	const struct thread_key key = { .thread_id = thread_id, .tgid = tgid };

	update(&maps[TOLD_STATES], &key, &address);
}

void kernel__identify(__u32 tgid, enum identification identify)
{
	struct target *target = (struct target *)find(&maps[TARGETS], &tgid);

	if (target)
		target->identify = identify;
}

void kernel__begin(__u32 tgid)
{
	struct target *target = (struct target *)find(&maps[TARGETS], &tgid);

	if (target)
		target->begins = true;
}

void kernel__shift_rate(__u32 tgid, __u16 shift)
{
	struct target *target = (struct target *)find(&maps[TARGETS], &tgid);

	if (target)
		target->rate_shift = shift;
}

void kernel__set_thread_area(__u32 tgid, __u64 bytes)
{
	struct target *target = (struct target *)find(&maps[TARGETS], &tgid);

	if (target)
		target->thread_area = bytes;
}

void kernel__set_entry_gap(__u32 tgid, const struct entry_gap *gap)
{
	struct target *target = (struct target *)find(&maps[TARGETS], &tgid);

	if (target)
		target->entry_gap = *gap;
}

void kernel__set_layout(__u32 number, const struct layout *layout)
{
	((struct layout *)maps[LAYOUTS].values)[number] = *layout;
}

__u32 *kernel__chunk(__u32 number)
{
	if (!chunks[number])
		chunks[number] = xcalloc(1, CHUNK_SIZE);
	return chunks[number];
}

struct unwind_file *kernel__unwind_file(__u32 number)
{
	return &((struct unwind_file *)maps[UNWIND_FILES].values)[number];
}

struct unwind_rule *kernel__unwind_rule(__u32 number)
{
	return &((struct unwind_rule *)maps[UNWIND_RULES].values)[number];
}

struct unwind_table *kernel__table(__u64 serial)
{
	return (struct unwind_table *)find(&maps[UNWIND_TABLES], &serial);
}

__u64 *kernel__anchor(__u64 serial)
{
	return &kernel__table(serial)->anchor;
}

void kernel__set_table(__u64 serial, const struct unwind_table *table)
{
	update(&maps[UNWIND_TABLES], &serial, table);
}

/* Makes the current thread what the test has set. */
static void enter(void)
{
	kernel_stack.registers = kernel.task_registers;
	current_task.mm = kernel.ends ? NULL : kernel.memory ? kernel.memory : &memory;
	current_task.start_time = kernel.start_time;
	current_task.thread.fsbase = kernel.thread_pointer;
	current_pid.numbers[kernel.pid_level].nr = kernel.inner_tid;
	leader_pid.numbers[kernel.pid_level].nr = kernel.inner_tgid;
	kernel.reads = 0;
	kernel.failed_reads = 0;
}

void kernel__switch(struct task_struct *next, unsigned int state, bool preempted)
{
	__u64 context[] = { preempted, (__u64)&current_task, (__u64)next };

	enter();
	current_task.pid = kernel.tid;
	current_task.tgid = kernel.tgid;
	current_task.__state = state;
	if (config.blamed)
		count_gil_queue(context);
	else
		off_cpu(context);
}

void kernel__wake(struct task_struct *task)
{
	__u64 context[] = { (__u64)task };

	end_sleep(context);
}

void kernel__enter_wait(__u32 tid, const struct wait *wait)
{
	update(&maps[WAITS], &tid, wait);
}

void kernel__split_run_queue(void)
{
	configure((struct config){ .split_run_queue = 1 });
}

void kernel__leave_out_waits(__u64 min_ns)
{
	configure((struct config){ .off_cpu_min = min_ns });
}

void kernel__count_waits(void)
{
	const struct map *map = &maps[WAITS];

	waits_until = kernel.time_ns;
	for (__u32 i = 0; i < map->used; i++) {
		const struct wait *wait = (const void *)(map->values + i * map->value_bytes);
		__u32 tid = *(const __u32 *)(map->keys + i * map->key_bytes);
		struct task_struct task = { .pid = tid,
					    .start_time = wait->start_time,
					    .on_cpu = tid == kernel.tid };
		struct bpf_iter__task context = { .task = &task };

		count_wait(&context);
	}
}

bool kernel__list(struct task_struct *task, __u32 from, struct blocked_thread *thread)
{
	struct bpf_iter_meta meta = { .seq = (struct seq_file *)thread };
	struct bpf_iter__task context = { .meta = &meta, .task = task };

	kernel.listings = 0;
	listing_from = from;
	enter();
	if (task)
		task->stack = &kernel_stack;
	list_blocked(&context);
	return kernel.listings;
}

void kernel__call_tracepoint(__u64 *arguments)
{
	enter();
	tracepoint(arguments);
}

void kernel__claim(bool taken)
{
	((struct walk *)maps[WALKS].values)[kernel.cpu].claims += taken ? 1 : -1;
}

struct last_sample kernel__sample(void)
{
	const struct walk *walk = &((struct walk *)maps[WALKS].values)[kernel.cpu];
	struct bpf_perf_event_data context = { .regs = kernel.registers };

	enter();
	(kernel.second_event ? sample_1 : sample)(&context);
	return (struct last_sample){
		.outcome = walk->outcome,
		.depth = walk->depth,
		.hash = walk->hash,
		.frames = walk->definition.frames,
		.native_depth = walk->native.depth,
		.native_outcome = walk->native.outcome,
		.native_shift = walk->native.shift,
		.resumptions = walk->native.resumptions,
	};
}

const struct target *kernel__target(__u32 tgid)
{
	return (const struct target *)find(&maps[TARGETS], &tgid);
}

void kernel__know_file(const struct file_key *key, const struct known_file *file)
{
	update(&maps[KNOWN_FILES], key, file);
}

void kernel__follow(__u32 how)
{
	following = how;
	page_shift = 12;
}

/* Process TGID's first thread, with the memory MM. */
static struct task_struct task_of(__u32 tgid, struct mm_struct *mm)
{
	static struct signal_struct ended;

	return (struct task_struct){ .pid = tgid,
				     .tgid = tgid,
				     .mm = mm,
				     .signal = &ended,
				     .group_leader = &leader,
				     .thread_pid = &leader_pid };
}

void kernel__fork(__u32 parent, __u32 child, struct mm_struct *mm)
{
	struct task_struct from = task_of(parent, mm), to = task_of(child, mm);

	follow_fork((__u64[]){ (__u64)&from, (__u64)&to });
}

void kernel__exec(__u32 tgid, struct mm_struct *mm, struct file *file)
{
	struct task_struct task = task_of(tgid, mm);
	struct linux_binprm program = { .file = file };

	follow_exec((__u64[]){ (__u64)&task, 0, (__u64)&program });
}

void kernel__map(__u32 tgid, struct mm_struct *mm, const struct vm_area_struct *area)
{
	current_task.tgid = kernel.tgid = tgid;
	current_task.mm = mm;
	follow_mapping((__u64[]){ (__u64)area });
}

void kernel__end(__u32 tgid, struct mm_struct *mm)
{
	struct task_struct task = task_of(tgid, mm);

	follow_exit((__u64[]){ (__u64)&task });
}

struct pid_search kernel__search(__u32 pid, const struct numbered_thread *threads, size_t count)
{
	struct bpf_iter__task context = { 0 };

	current_pid.level = kernel.pid_level;
	pid_search = (struct pid_search){ .pid = pid };
	for (size_t i = 0; i < count; i++) {
		struct pid thread_pid = { 0 };
		struct task_struct task = { .tgid = threads[i].tgid,
					    .pid = threads[i].tid,
					    .thread_pid = &thread_pid };

		thread_pid.numbers[kernel.pid_level].nr = threads[i].number;
		context.task = &task;
		find_process(&context);
	}
	context.task = NULL;
	find_process(&context);
	return pid_search;
}

const struct cpu_counters *kernel__cpu_counters(__u32 cpu)
{
	return &((struct cpu_counters *)maps[COUNTERS].values)[cpu];
}

const struct event_counters *kernel__counters(__u32 cpu)
{
	return &kernel__cpu_counters(cpu)->of[0];
}

const struct slot *kernel__slot(__u32 cpu, __u32 slot)
{
	return &((struct slot *)maps[STACKS].values)[cpu * STACK_SLOTS + slot];
}

void kernel__merge_threads(void)
{
	unseen_thread_bits = ~0U;
}

void kernel__begin_epoch(void)
{
	epoch++;
}

void kernel__set_sample_value(__u64 value)
{
	for (int i = 0; i < EVENTS_MAX; i++)
		sample_values[i] = value << i;
}

void kernel__drain(void)
{
	for (size_t i = 0; i < kernel.definition_count; i++)
		free(kernel.definitions[i]);
	free(kernel.definitions);
	kernel.definitions = NULL;
	kernel.definition_count = 0;
	kernel.definition_capacity = 0;
}

static bool sums_hold(__u32 cpu, __u32 event)
{
	const struct event_counters *counted = &kernel__cpu_counters(cpu)->of[event];
	__u64 explained = counted->without_gil, native = counted->without_gil;
	__u64 under_stacks = counted->lost + counted->without_gil;

	for (int i = 0; i < OUTCOME_COUNT; i++)
		explained += counted->outcomes[i];
	for (__u32 i = 0; i < STACK_SLOTS; i++)
		if (SLOT_EVENT(kernel__slot(cpu, i)->hash) == event)
			under_stacks += kernel__slot(cpu, i)->amount.count;
	for (int i = 0; i < NATIVE_OUTCOME_COUNT; i++)
		native += counted->native[i];
	return explained == counted->events && under_stacks == counted->events &&
	       (!config.native || native == counted->events);
}

bool kernel__sums_hold(void)
{
	bool hold = true;

	for (__u32 cpu = 0; cpu < cpu_count; cpu++)
		for (__u32 event = 0; event < EVENTS_MAX; event++)
			hold &= sums_hold(cpu, event);
	return hold;
}

/* An inner map of unwind_chunks is represented by its place among the chunks. */
static bool is_chunk(const void *definition)
{
	const char *place = definition, *first = (const char *)chunks;

	return place >= first && place < first + sizeof(chunks);
}

static void *find_chunk(const void *definition, __u32 index)
{
	if (is_chunk(definition))
		return index ? NULL : *(__u32 *const *)definition;
	return index < KERNEL_CHUNKS && chunks[index] ? &chunks[index] : NULL;
}

static struct map *map_of(const void *definition)
{
	struct map *map = maps;

	while (map->definition != definition)
		map++;
	return map;
}

/* The helpers, as bpf-helpers(7) describes them. */

void *bpf_map_lookup_elem(void *definition, const void *key)
{
	struct map *map;
	__u32 index;

	memcpy(&index, key, sizeof(index));
	if (definition == &unwind_chunks || is_chunk(definition))
		return find_chunk(definition, index);
	map = map_of(definition);
	if (map->hashed)
		return find(map, key);
	return index < map->capacity ? map->values + index * map->value_bytes : NULL;
}

long bpf_map_update_elem(void *definition, const void *key, const void *value, __u64 flags)
{
	struct map *map = map_of(definition);

	if (flags != BPF_ANY || (map->used == map->capacity && !find(map, key)))
		return -E2BIG;
	update(map, key, value);
	return 0;
}

long bpf_map_delete_elem(void *definition, const void *key)
{
	struct map *map = map_of(definition);
	__u8 *value = find(map, key);
	size_t at, last = map->used - 1;

	if (!value)
		return -ENOENT;
	at = (value - map->values) / map->value_bytes;
	memcpy(map->keys + at * map->key_bytes, map->keys + last * map->key_bytes, map->key_bytes);
	memcpy(value, map->values + last * map->value_bytes, map->value_bytes);
	map->used--;
	return 0;
}

static bool read_process(void *destination, __u32 size, __u64 address)
{
	struct iovec local = { .iov_base = destination, .iov_len = size };
	struct iovec remote = { .iov_base = (void *)address, .iov_len = size };

	return process_vm_readv(kernel.pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

long bpf_probe_read_user(void *destination, __u32 size, const void *address)
{
	bool done = (kernel.read ? kernel.read : read_process)(destination, size, (__u64)address);

	kernel.reads++;
	if (done)
		return 0;
	kernel.failed_reads++;
	memset(destination, 0, size);
	return -EFAULT;
}

long bpf_probe_read_kernel(void *destination, __u32 size, const void *address)
{
	memcpy(destination, address, size);
	return 0;
}

long bpf_probe_read_user_str(void *destination, __u32 size, const void *address)
{
	char *text = destination;
	__u32 length = 0;

	do {
		if (bpf_probe_read_user(text + length, 1, (const char *)address + length))
			return -EFAULT;
	} while (text[length++] && length < size);
	text[length - 1] = '\0';
	return length;
}

/* Like the kernel, it wakes a reader only if the reader has consumed all earlier records. */
static void note_waking(__u64 flags)
{
	if (flags == BPF_RB_NO_WAKEUP)
		kernel.lies_there = true;
	else if (flags == BPF_RB_FORCE_WAKEUP || !kernel.lies_there)
		kernel.wakings++;
	kernel.lies_there = true;
}

long bpf_ringbuf_output(void *ring, void *data, __u64 size, __u64 flags)
{
	size_t count = kernel.definition_count;

	if (ring != &definitions || kernel.ring_full)
		return -EAGAIN;
	note_waking(flags);
	if (*(const __u32 *)data == RECORD_CODE) {
		kernel.code_record_size = size;
		memcpy(&kernel.code_record, data, size);
		kernel.code_records++;
		return 0;
	}
	kernel.definitions = xgrow(kernel.definitions, &kernel.definition_capacity, count + 1,
				   sizeof(*kernel.definitions));
	kernel.definitions[count] = memcpy(xmalloc(size), data, size);
	kernel.definition_count++;
	return 0;
}

void *bpf_ringbuf_reserve(void *ring, __u64 size, __u64 flags)
{
	if (ring != &definitions || flags || kernel.ring_full ||
	    (size != sizeof(*kernel.process_records) && size != PROCESS_RECORD_HEADER_BYTES))
		return NULL;
	return &kernel.process_records[kernel.process_record_count % PROCESS_RECORDS_MAX];
}

void bpf_ringbuf_submit(void *data, __u64 flags)
{
	note_waking(flags);
	kernel.process_record_count += !!data;
}

void bpf_ringbuf_discard(void *data, __u64 flags)
{
	(void)data;
	note_waking(flags);
}

__u64 bpf_ktime_get_ns(void)
{
	return ++kernel.time_ns;
}

__u64 bpf_ringbuf_query(void *ring, __u64 flags)
{
	return ring == &definitions && flags == BPF_RB_AVAIL_DATA ? kernel.ring_bytes : 0;
}

bool has_helper(enum bpf_func_id helper)
{
	return !kernel.old ||
	       (helper != BPF_FUNC_get_current_task_btf && helper != BPF_FUNC_task_pt_regs);
}

struct task_struct *bpf_get_current_task_btf(void)
{
	return kernel.old ? NULL : &current_task;
}

long bpf_task_pt_regs(struct task_struct *task)
{
	(void)task;
	return (long)&kernel.task_registers;
}

__u64 bpf_get_current_task(void)
{
	return (__u64)&current_task;
}

__u64 bpf_get_current_pid_tgid(void)
{
	return (__u64)kernel.tgid << 32 | kernel.tid;
}

__u32 bpf_get_smp_processor_id(void)
{
	return kernel.cpu;
}

__u32 bpf_get_prandom_u32(void)
{
	kernel.random = kernel.random * 1664525 + 1013904223;
	return kernel.random >> 8;
}

/* The frames are those of kernel.stack, without the first ones that FLAGS counts. */
long bpf_get_stack(void *context, void *buffer, __u32 size, __u64 flags)
{
	__u32 skipped = flags & 0xff, bytes;

	(void)context;
	if (kernel.stack_depth <= skipped)
		return -1;
	bytes = (kernel.stack_depth - skipped) * sizeof(__u64);
	if (bytes > size)
		bytes = size;
	memcpy(buffer, kernel.stack + skipped, bytes);
	return bytes;
}

long bpf_get_task_stack(struct task_struct *task, void *buffer, __u32 size, __u64 flags)
{
	return bpf_get_stack(task, buffer, size, flags);
}

long bpf_seq_write(struct seq_file *file, const void *data, __u32 size)
{
	kernel.listings++;
	memcpy(file, data, size);
	return 0;
}

long bpf_get_current_comm(void *buffer, __u32 size)
{
	memset(buffer, 0, size);
	memcpy(buffer, "test", 4);
	return 0;
}
