// SPDX-License-Identifier: BSD-2-Clause
/* Which tables and rows of this process BPF gets, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/wait.h>

#include "unwound.h"

/* Enough for the rows of zlib and the C library, but not for those of all files. */
#define LITTLE_MEMORY CHUNK_SIZE

static void table_has_the_executable_mappings(void **state)
{
	uint64_t code = map_code(), start, end, before = 0;
	FILE *list;
	char line[PATH_MAX + 128], access[5];
	const struct unwind_table *table;
	uint32_t count = 0;

	(void)state;
	add(false);
	table = unwind_maps__table(SERIAL);
	assert_non_null(table);
	list = fopen("/proc/self/maps", "re");
	while (fgets(line, sizeof(line), list)) {
		const struct unwind_mapping *mapping;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &start, &end, access) != 3 ||
		    access[2] != 'x' || strstr(line, "[vsyscall]"))
			continue;
		mapping = mapping_of(SERIAL, start);
		assert_non_null(mapping);
		assert_int_equal(mapping->start, start);
		assert_int_equal(mapping->end, end);
		assert_true(mapping->start >= before);
		before = mapping->end;
		count++;
	}
	fclose(list);
	assert_in_range(table->count, count, count + 1);
	assert_int_equal(mapping_of(SERIAL, code)->file, UNWIND_NO_FILE);
	assert_int_equal(mapping_of(SERIAL, zlib_address())->file, table->interpreter);
	unmap_code(code);
}

static void table_is_in_order(void **state)
{
	const struct unwind_table *table;

	(void)state;
	add(false);
	table = unwind_maps__table(SERIAL);
	assert_int_equal(table->first / CHUNK_MAPPINGS,
			 (table->first + table->count - 1) / CHUNK_MAPPINGS);
	for (uint32_t i = 0; i < table->count; i++) {
		const struct unwind_mapping *mapping = mapping_at(table->first + i);

		assert_true(mapping->start < mapping->end);
		assert_true(!i || mapping_at(table->first + i - 1)->end <= mapping->start);
	}
}

/* An address minus the bias is the address in the file. */
static void table_has_the_bias(void **state)
{
	Dl_info library;

	(void)state;
	add(false);
	assert_true(dladdr((void *)zlib_address(), &library));
	assert_int_equal(mapping_of(SERIAL, zlib_address())->bias, (uintptr_t)library.dli_fbase);
	assert_int_equal(mapping_of(SERIAL, vdso_address())->bias, vdso_address());
}

/* Rows of the interpreter and the C library are made at once, others once they are wanted. */
static void makes_rows_when_they_are_wanted(void **state)
{
	int opened;

	(void)state;
	add(false);
	assert_described(libc_address("lfind"));
	assert_described(zlib_address());
	assert_false(has_rows(own_address()));
	assert_false(has_rows(vdso_address()));
	opened = files_opened;
	unwinder__want(unwinder, SERIAL, own_address());
	unwinder__want(unwinder, SERIAL, vdso_address());
	assert_false(has_rows(own_address()));
	assert_int_equal(unwinder__work(unwinder, added_ns), INT64_MAX);
	assert_int_equal(ROW_KIND(row_at(own_address())), ROW_SP);
	assert_true(has_rows(vdso_address()));
	assert_int_equal(files_opened, opened);
	/* Rows for an unknown process, and rows that are there already. */
	unwinder__want(unwinder, SERIAL + 1, own_address());
	unwinder__want(unwinder, SERIAL, own_address());
	unwinder__work(unwinder, added_ns + 10 * SECOND);
	assert_int_equal(unwind_maps.tables_told, 1);
}

/* The rest is done in the next turn.  If the given time is long ago, a turn is over at once. */
static void leaves_the_rest_to_the_next_turn(void **state)
{
	(void)state;
	add(false);
	unwinder__want(unwinder, SERIAL, own_address());
	unwinder__want(unwinder, SERIAL, vdso_address());
	assert_int_equal(unwinder__work(unwinder, 1), 1);
	assert_int_not_equal(has_rows(own_address()), has_rows(vdso_address()));
	unwinder__want(unwinder, SERIAL, 0);
	assert_int_equal(unwinder__work(unwinder, added_ns), added_ns + SECOND);
	assert_true(has_rows(own_address()) && has_rows(vdso_address()));
	unwinder__add(unwinder, SERIAL + 1, getpid(), zlib_data(), 0, false);
	unwinder__add(unwinder, SERIAL + 2, getpid(), zlib_data(), 0, false);
	assert_int_equal(unwinder__work(unwinder, 1), 1);
	assert_true(!unwind_maps__table(SERIAL + 1) != !unwind_maps__table(SERIAL + 2));
}

static void makes_all_rows_at_once(void **state)
{
	(void)state;
	add(true);
	assert_true(has_rows(own_address()));
	assert_true(has_rows(vdso_address()));
	assert_described(libc_address("lfind"));
	assert_described(zlib_address());
}

/* Checks that the rules of file NUMBER exist and that no other file uses them.  Returns how many of
 * its rows have a rule.  USERS: the file that uses each rule, plus 1. */
static uint32_t count_rules(uint32_t number, uint16_t users[UNWIND_RULES_MAX])
{
	const struct unwind_file *file = &unwind_maps.files[number];
	const struct unwind_rule none = { 0 };
	uint32_t rules = 0;

	for (uint64_t page = 0; page < file->pages; page++) {
		uint32_t word = unwind_maps__word(file->directory + page);
		uint32_t first = file->rows + DIRECTORY_FIRST(word);

		for (uint32_t i = 0; i < DIRECTORY_COUNT(word); i++) {
			uint32_t row = unwind_maps__word(first + i), rule;

			if (ROW_KIND(row) != ROW_RULE)
				continue;
			rule = file->rules + ROW_NUMBER(row);
			assert_memory_not_equal(&unwind_maps.rules[rule], &none, sizeof(none));
			assert_true(!users[rule] || users[rule] == number + 1);
			users[rule] = number + 1;
			rules++;
		}
	}
	return rules;
}

static void each_file_has_its_own_rules(void **state)
{
	static uint16_t users[UNWIND_RULES_MAX];
	const struct unwind_table *table;
	uint32_t files = 0;

	(void)state;
	add(true);
	table = unwind_maps__table(SERIAL);
	for (uint32_t i = 0; i < table->count; i++) {
		uint32_t file = mapping_at(table->first + i)->file;

		if (file != UNWIND_NO_FILE)
			files += count_rules(file, users) > 0;
	}
	assert_true(files >= 2);
}

/* A file that two processes map is read once, and has one number. */
static void a_shared_file_is_read_once(void **state)
{
	int opened;

	(void)state;
	add(true);
	opened = files_opened;
	unwinder__add(unwinder, SERIAL + 1, getpid(), zlib_data(), 0, true);
	unwinder__work(unwinder, added_ns);
	assert_int_equal(files_opened, opened);
	assert_int_equal(mapping_of(SERIAL + 1, own_address())->file,
			 mapping_of(SERIAL, own_address())->file);
	/* Neither the file nor the process is read again. */
	unwinder__add(unwinder, SERIAL + 1, getpid(), zlib_data(), 0, true);
	unwinder__work(unwinder, added_ns);
	assert_int_equal(unwind_maps.tables_told, 2);
}

/* Maps code and wants rows for it, or for an unknown address if ADDRESS is 0.  The mappings are
 * read once per second at most. */
static void reads_again(uint64_t address)
{
	uint64_t codes[2] = { 0 };
	int64_t now = added_ns;

	for (int i = 0; i < 2; i++) {
		uint32_t told = unwind_maps.tables_told;

		codes[i] = map_code();
		unwinder__work(unwinder, now + 10 * SECOND);
		assert_int_equal(unwind_maps.tables_told, told);
		unwinder__want(unwinder, SERIAL, address ? codes[i] : 0);
		assert_null(mapping_of(SERIAL, codes[i]));
		if (i) {
			unwinder__work(unwinder, now + SECOND - 1);
			assert_null(mapping_of(SERIAL, codes[i]));
		}
		now += i ? SECOND : 2 * SECOND;
		unwinder__work(unwinder, now);
		assert_non_null(mapping_of(SERIAL, codes[i]));
		assert_int_equal(unwind_maps.tables_told, told + 1);
	}
	unmap_code(codes[0]);
	unmap_code(codes[1]);
}

static void reads_mappings_made_later(void **state)
{
	(void)state;
	add(false);
	reads_again(1);
}

/* A sample may have no address. */
static void reads_mappings_again_without_an_address(void **state)
{
	(void)state;
	add(false);
	reads_again(0);
}

/* What BPF wrote to a table is kept in the next one, and in that of a forked process. */
static void later_tables_keep_what_bpf_learned(void **state)
{
	struct unwind_table *table;
	uint32_t generation;

	(void)state;
	add(false);
	table = unwind_maps__table(SERIAL);
	table->anchor = 42;
	table->runs_jit = 1;
	generation = table->generation;
	reads_again(1);
	assert_int_equal(table->anchor, 42);
	assert_int_equal(table->runs_jit, 1);
	assert_int_not_equal(table->generation, generation);
	unwinder__add(unwinder, SERIAL + 1, getpid(), zlib_data(), SERIAL, false);
	assert_int_equal(unwind_maps__table(SERIAL + 1)->anchor, 42);
	assert_int_not_equal(unwind_maps__table(SERIAL + 1)->generation, table->generation);
	unwinder__add(unwinder, SERIAL + 2, getpid(), zlib_data(), 0, false);
	unwinder__work(unwinder, added_ns);
	assert_int_equal(unwind_maps__table(SERIAL + 2)->anchor, 0);
}

/* Mappings are read again one second after the process was added, at the earliest. */
static void does_not_read_mappings_again_at_once(void **state)
{
	size_t page = sysconf(_SC_PAGESIZE);
	void *code;

	(void)state;
	add(false);
	unwinder__want(unwinder, SERIAL, 0);
	code = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(code, MAP_FAILED);
	unwinder__work(unwinder, added_ns + SECOND - 1);
	assert_int_equal(unwind_maps.tables_told, 1);
	unwinder__work(unwinder, added_ns + SECOND);
	assert_int_equal(unwind_maps.tables_told, 2);
	/* Unchanged mappings are not written again, and are read half as often. */
	unwinder__want(unwinder, SERIAL, 0);
	unwinder__work(unwinder, added_ns + 2 * SECOND);
	assert_int_equal(unwind_maps.tables_told, 2);
	munmap(code, page);
	unwinder__want(unwinder, SERIAL, 0);
	unwinder__work(unwinder, added_ns + 4 * SECOND - 1);
	assert_int_equal(unwind_maps.tables_told, 2);
	unwinder__work(unwinder, added_ns + 4 * SECOND);
	assert_int_equal(unwind_maps.tables_told, 3);
}

static void an_ended_process_keeps_its_names_but_no_table(void **state)
{
	const struct unwind_file *own;

	(void)state;
	add(false);
	own = file_of(own_address());
	unwinder__want(unwinder, SERIAL, 0);
	unwinder__end(unwinder, SERIAL);
	unwinder__end(unwinder, SERIAL);
	assert_null(unwind_maps__table(SERIAL));
	/* Samples that are still under way get names. */
	assert_non_null(unwinder__place(unwinder, SERIAL, zlib_address()).file);
	unwinder__want(unwinder, SERIAL, own_address());
	unwinder__want(unwinder, SERIAL, 0);
	unwinder__work(unwinder, added_ns + 10 * SECOND);
	assert_int_equal(unwind_maps.tables_told, 1);
	assert_int_equal(own->pages, 0);
	unwinder__forget(unwinder, SERIAL);
	assert_false(unwinder__place(unwinder, SERIAL, zlib_address()).is_mapped);
	unwinder__forget(unwinder, SERIAL);
	unwinder__end(unwinder, SERIAL + 1);
	/* The process may be forgotten without having ended. */
	add(false);
	unwinder__forget(unwinder, SERIAL);
	assert_null(unwind_maps__table(SERIAL));
}

static void reads_nothing_of_an_ended_process(void **state)
{
	pid_t child = fork();

	(void)state;
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	unwinder__add(unwinder, SERIAL, child, 0, 0, true);
	unwinder__work(unwinder, now_ns() + AHEAD_NS);
	assert_int_equal(unwind_maps.tables_told, 0);
	unwinder__want(unwinder, SERIAL, own_address());
	unwinder__work(unwinder, now_ns() + AHEAD_NS + 10 * SECOND);
	assert_int_equal(unwind_maps.tables_told, 0);
}

static void use_little_memory(void)
{
	unwinder__free(unwinder);
	unwinder = unwinder__new(&maps, LITTLE_MEMORY);
}

/* Wants the rows of all files, for which there is no room. */
static void fill(void)
{
	const struct unwind_table *table = unwind_maps__table(SERIAL);

	for (uint32_t i = 0; i < table->count; i++)
		unwinder__want(unwinder, SERIAL, mapping_at(table->first + i)->start);
	unwinder__work(unwinder, added_ns);
}

/* The code of each version, with and without what -fcf-protection adds. */
static void knows_trampolines(void **state)
{
	static const struct {
		uint8_t code[16];
		uint32_t row;
	} trampolines[] = {
		{ "\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3", ROW(ROW_SP, 2, 0) },
		{ "\xf3\x0f\x1e\xfa\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3",
		  ROW(ROW_SP, 2, 0) },
		{ "\x55\x48\x89\xe5\xff\xd1\x5d\xc3", ROW(ROW_SP, 2, 2) },
		{ "\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\xff\xd1\x5d\xc3", ROW(ROW_SP, 2, 2) },
		{ "\x55\x48\x89\xe5\xff\xd0\x5d\xc3", 0 },
	};
	const size_t count = sizeof(trampolines) / sizeof(trampolines[0]);
	/* The pages between them are not executable, so that each is a mapping of its own. */
	char *code = mmap(NULL, 2 * count * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		memcpy(code + 2 * i * PAGE, trampolines[i].code, sizeof(trampolines[i].code));
		mprotect(code + 2 * i * PAGE, PAGE, PROT_READ | PROT_EXEC);
	}
	add(false);
	for (size_t i = 0; i < count; i++) {
		const struct unwind_mapping *mapping =
			mapping_of(SERIAL, (uintptr_t)code + 2 * i * PAGE);

		assert_int_equal(mapping->row, trampolines[i].row);
		assert_int_equal(mapping->file, mapping->row ? UNWIND_TRAMPOLINES : UNWIND_NO_FILE);
	}
	munmap(code, 2 * count * PAGE);
}

static void begins_anew_at_most_once_a_minute(void **state)
{
	int64_t anew_ns;
	int opened;

	(void)state;
	use_little_memory();
	add(false);
	unwind_maps__table(SERIAL)->anchor = 42;
	opened = files_opened;
	fill();
	assert_false(has_rows(vdso_address()));
	anew_ns = added_ns + SECOND;
	unwinder__work(unwinder, anew_ns);
	assert_true(files_opened > opened);
	assert_int_equal(unwind_maps.tables_told, 2);
	assert_int_equal(unwind_maps.last_installed, 0);
	assert_int_equal(unwind_maps.installed, 2);
	assert_int_equal(unwind_maps__table(SERIAL)->anchor, 0);
	assert_described(zlib_address());
	assert_described(libc_address("lfind"));
	unwinder__want(unwinder, SERIAL, vdso_address());
	unwinder__work(unwinder, anew_ns);
	assert_true(has_rows(vdso_address()));

	opened = files_opened;
	fill();
	unwinder__work(unwinder, anew_ns + MINUTE - 1);
	assert_int_equal(files_opened, opened);
	assert_described(zlib_address());
	unwinder__work(unwinder, anew_ns + MINUTE);
	assert_true(files_opened > opened);
	assert_described(zlib_address());
	/* All rows are there, so nothing begins anew. */
	opened = files_opened;
	unwinder__work(unwinder, anew_ns + 3 * MINUTE);
	assert_int_equal(files_opened, opened);
	/* It begins anew two minutes after the last time. */
	fill();
	unwinder__work(unwinder, anew_ns + 3 * MINUTE - 1);
	assert_int_equal(files_opened, opened);
	unwinder__work(unwinder, anew_ns + 3 * MINUTE);
	assert_true(files_opened > opened);
}

/* Otherwise samples that come before the process is read would have no names. */
static void reads_processes_at_once_when_it_begins_anew(void **state)
{
	(void)state;
	use_little_memory();
	add(false);
	fill();
	unwinder__work(unwinder, added_ns);
	assert_non_null(unwind_maps__table(SERIAL));
	assert_non_null(unwinder__place(unwinder, SERIAL, zlib_address()).file);
	assert_described(zlib_address());
}

static void an_ended_process_is_not_read_anew(void **state)
{
	(void)state;
	use_little_memory();
	add(false);
	unwinder__add(unwinder, SERIAL + 1, getpid(), zlib_data(), 0, false);
	unwinder__end(unwinder, SERIAL + 1);
	fill();
	unwinder__work(unwinder, added_ns + SECOND);
	assert_non_null(unwind_maps__table(SERIAL));
	assert_null(unwind_maps__table(SERIAL + 1));
	assert_false(unwinder__place(unwinder, SERIAL + 1, zlib_address()).is_mapped);
}

/* A file server that hangs for a while costs no file. */
static void reads_a_late_file_again(void **state)
{
	uint64_t missed = reader__missed(getpid());
	int pipe_ends[2];

	(void)state;
	assert_int_equal(pipe(pipe_ends), 0);
	awaited = pipe_ends[0];
	added_ns = now_ns() + AHEAD_NS;
	unwinder__add(unwinder, SERIAL, getpid(), zlib_data(), 0, true);
	unwinder__work(unwinder, added_ns);
	assert_true(reader__was_late(getpid(), missed));
	assert_null(unwinder__place(unwinder, SERIAL, zlib_address()).file);
	assert_int_equal(write(pipe_ends[1], "x", 1), 1);
	reader__wait(getpid());
	awaited = 0;
	/* On a busy machine, the file may be late once more. */
	for (int i = 1; i < 60 && !unwinder__place(unwinder, SERIAL, zlib_address()).file; i++) {
		reader__wait(getpid());
		unwinder__work(unwinder, added_ns + i * SECOND);
	}
	assert_described(zlib_address());
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

/* The interpreter's file is gone when everything begins anew. */
static void forgets_which_file_was_the_interpreter(void **state)
{
	(void)state;
	use_little_memory();
	add(false);
	assert_int_not_equal(unwind_maps__table(SERIAL)->interpreter, UNWIND_NO_FILE);
	fill();
	unopened = "libz.so";
	unwinder__work(unwinder, added_ns + SECOND);
	assert_int_equal(unwind_maps__table(SERIAL)->interpreter, UNWIND_NO_FILE);
	assert_int_equal(mapping_of(SERIAL, zlib_address())->file, UNWIND_NO_FILE);
	assert_described(libc_address("lfind"));
}

static void makes_no_tables_without_memory(void **state)
{
	int64_t now;

	(void)state;
	unwinder__free(unwinder);
	unwinder = unwinder__new(&maps, 0);
	add(true);
	for (int i = 0; i < 3; i++)
		unwinder__work(unwinder, added_ns + i * MINUTE);
	assert_null(unwind_maps__table(SERIAL));
	assert_int_equal(unwind_maps.made, 0);
	assert_false(unwinder__place(unwinder, SERIAL, zlib_address()).is_mapped);
	/* Unchanged mappings are not processed again, and are read half as often. */
	now = added_ns + 2 * MINUTE + SECOND;
	unwinder__want(unwinder, SERIAL, 0);
	unwinder__work(unwinder, now);
	unwinder__want(unwinder, SERIAL, 0);
	assert_int_equal(unwinder__work(unwinder, now), now + 2 * SECOND);
}

/* As long as the kernel refuses to create maps, there are no tables. */
static void makes_no_tables_while_the_kernel_refuses_maps(void **state)
{
	(void)state;
	unwind_maps.refuse_making = EPERM;
	add(true);
	unwinder__work(unwinder, added_ns + 2 * SECOND);
	assert_null(unwind_maps__table(SERIAL));
	unwind_maps.refuse_making = 0;
	unwinder__work(unwinder, added_ns + 2 * MINUTE);
	assert_described(zlib_address());
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(table_has_the_executable_mappings),
		TEST(table_is_in_order),
		TEST(table_has_the_bias),
		TEST(makes_rows_when_they_are_wanted),
		TEST(leaves_the_rest_to_the_next_turn),
		TEST(makes_all_rows_at_once),
		TEST(each_file_has_its_own_rules),
		TEST(a_shared_file_is_read_once),
		TEST(reads_mappings_made_later),
		TEST(reads_mappings_again_without_an_address),
		TEST(later_tables_keep_what_bpf_learned),
		TEST(does_not_read_mappings_again_at_once),
		TEST(an_ended_process_keeps_its_names_but_no_table),
		TEST(reads_nothing_of_an_ended_process),
		TEST(knows_trampolines),
		TEST(begins_anew_at_most_once_a_minute),
		TEST(reads_processes_at_once_when_it_begins_anew),
		TEST(an_ended_process_is_not_read_anew),
		TEST(reads_a_late_file_again),
		TEST(forgets_which_file_was_the_interpreter),
		TEST(makes_no_tables_without_memory),
		TEST(makes_no_tables_while_the_kernel_refuses_maps),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
