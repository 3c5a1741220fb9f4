// SPDX-License-Identifier: BSD-2-Clause
/*
 * One self-contained HTML file: page/page.html with its style, its script and the profile in place
 * of the {{markers}}.
 *
 * The profile is JSON in a <script> of a type that browsers do not run.  In there an HTML parser
 * looks only for "<" ("</script", "<!--").  JSON has "<" only in strings, so each one is written as
 * \u003c.
 *
 * Stacks are sorted by their frames from the root.  Each is written as the number of frames that it
 * shares with the previous one, and the frames that it adds.  That is the tree that the page draws,
 * with one number per node, and it needs no memory here.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <jansson.h>

#include "base/embed.h"
#include "base/xalloc.h"
#include "output/output.h"
#include "profile/profile_events.h"

#define NONCE_BYTES 16
#define NS_PER_MS   1000000

/* The page's data.js has this kind for machine code of the interpreter, beside enum frame_kind. */
#define KIND_INTERPRETER (FRAME_REASON + 1)

struct page {
	const struct profile *profile;
	const struct output_options *options;
	FILE *file;
	int error;			 /* the first one, -errno */
	char nonce[2 * NONCE_BYTES + 1]; /* scripts and styles with another nonce do not run */
};

/* The page has one script, made of these in this order. */
#define SCRIPTS(X)   \
	X(format)    \
	X(color)     \
	X(data)      \
	X(frames)    \
	X(processes) \
	X(tree)      \
	X(weights)   \
	X(change)    \
	X(layout)    \
	X(search)    \
	X(draw)      \
	X(table)     \
	X(detail)    \
	X(footer)    \
	X(place)     \
	X(fragment)  \
	X(chooser)   \
	X(controls)  \
	X(keyboard)  \
	X(app)

EMBED(page_html, "output/page/page.html");
EMBED(page_css, "output/page/page.css");
#define X(name) EMBED(script_##name, "output/page/" #name ".js");
SCRIPTS(X)
#undef X

static const struct embedded scripts[] = {
#define X(name) { script_##name##_text, &script_##name##_size },
	SCRIPTS(X)
#undef X
};

static void write_embedded(const struct embedded *embedded, FILE *file)
{
	fwrite(embedded->text, 1, *embedded->size, file);
}

static void write_style(struct page *page)
{
	write_embedded(&(struct embedded){ page_css_text, &page_css_size }, page->file);
}

static void write_script(struct page *page)
{
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		write_embedded(&scripts[i], page->file);
}

static void write_nonce(struct page *page)
{
	fputs(page->nonce, page->file);
}

static int write_escaped(const char *text, size_t size, void *file)
{
	for (size_t i = 0; i < size; i++)
		if (text[i] == '<')
			fputs("\\u003c", file);
		else
			fputc(text[i], file);
	return 0;
}

/* Writes and releases VALUE.  NULL is an error: invalid text. */
static void write_json(struct page *page, json_t *value)
{
	/* ASCII only, so that no browser can guess another encoding. */
	const size_t flags = JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_INDENT(2);

	if (!page->error && !value)
		page->error = -EILSEQ;
	if (!page->error && json_dump_callback(value, write_escaped, page->file, flags))
		page->error = -EINVAL;
	json_decref(value);
}

static void write_strings(struct page *page)
{
	fputs("\"strings\":[", page->file);
	for (size_t i = 0; i < page->profile->string_count && !page->error; i++) {
		if (i)
			fputs(",\n", page->file);
		write_json(page, json_string(page->profile->strings[i]));
	}
	fputs("],\n", page->file);
}

static unsigned int kind_of(const struct profile_function *function)
{
	return function->kind == FRAME_NATIVE && function->of_interpreter
		       ? KIND_INTERPRETER
		       : (unsigned int)function->kind;
}

/* Flat rows of numbers, as the page's data.js reads them. */
static void write_tables(const struct page *page, FILE *file)
{
	const struct profile *profile = page->profile;

	fputs("\"functions\":[", file);
	for (size_t i = 0; i < profile->function_count; i++) {
		const struct profile_function *function = &profile->functions[i];

		fprintf(file, "%s%u,%u,%u,%u,%u", i ? "," : "", function->name, function->filename,
			output__filename(page->options, function), function->first_line,
			kind_of(function));
	}
	fputs("],\n\"locations\":[", file);
	for (size_t i = 0; i < profile->location_count; i++)
		fprintf(file, "%s%u,%u", i ? "," : "", profile->locations[i].function,
			profile->locations[i].line);
	fputs("],\n\"processes\":[", file);
	for (size_t i = 0; i < profile->process_count; i++) {
		const struct profile_process *process = &profile->processes[i];

		fprintf(file, "%s%u,%u,%u,%u,%u,%u,%u,%u,%u,%u,%" PRId64, i ? "," : "",
			process->pid, process->command, process->short_name,
			process->python_version, process->user, process->cgroup,
			process->container_id, process->pod_uid, process->pod_name, process->unit,
			process->start_unix_ns / NS_PER_MS);
	}
	fputs("],\n\"threads\":[", file);
	for (size_t i = 0; i < profile->thread_count; i++) {
		const struct profile_thread *thread = &profile->threads[i];

		fprintf(file, "%s%u,%u,%u", i ? "," : "", thread->process, thread->tid,
			thread->name);
	}
	fputs("],\n", file);
}

/* The number of frames that two stacks share at the root. */
static uint32_t shared_frames(const struct profile_stack *a, const struct profile_stack *b)
{
	uint32_t shared = 0;

	while (shared < a->depth && shared < b->depth &&
	       a->locations[a->depth - 1 - shared] == b->locations[b->depth - 1 - shared])
		shared++;
	return shared;
}

static int compare_stacks(const void *left, const void *right, void *stacks)
{
	const struct profile_stack *a = (struct profile_stack *)stacks + *(const uint32_t *)left;
	const struct profile_stack *b = (struct profile_stack *)stacks + *(const uint32_t *)right;
	uint32_t shared = shared_frames(a, b);

	if (shared == a->depth || shared == b->depth)
		return (a->depth > b->depth) - (a->depth < b->depth);
	return a->locations[a->depth - 1 - shared] < b->locations[b->depth - 1 - shared] ? -1 : 1;
}

/* Per stack: frames shared with the previous one, frames added, and these, root first. */
static void write_stacks(const struct profile *profile, const uint32_t *order, FILE *file)
{
	const struct profile_stack empty = { .depth = 0 }, *previous = &empty;

	fputs("\"stacks\":[", file);
	for (size_t i = 0; i < profile->stack_count; i++) {
		const struct profile_stack *stack = &profile->stacks[order[i]];
		uint32_t shared = shared_frames(previous, stack);

		fprintf(file, "%s%u,%u", i ? ",\n" : "", shared, stack->depth - shared);
		for (uint32_t frame = shared; frame < stack->depth; frame++)
			fprintf(file, ",%u", stack->locations[stack->depth - 1 - frame]);
		previous = stack;
	}
	fputs("],\n", file);
}

/* The samples of EVENT.  PLACES: by stack, its place in the written order. */
static void write_samples(const struct profile *profile, uint32_t event, const uint32_t *places,
			  FILE *file)
{
	const char *separator = "";

	fputs("\"samples\":[", file);
	for (size_t i = 0; i < profile->sample_count; i++) {
		const struct profile_sample *sample = &profile->samples[i];

		if (sample->event != event)
			continue;
		fprintf(file, "%s%u,%u,%" PRIu64, separator, sample->thread, places[sample->stack],
			profile__weight(profile, sample));
		separator = ",";
	}
	fputs("],\n", file);
}

/* The samples of EVENT, with its name and ledger. */
static void write_event(struct page *page, uint32_t event, const uint32_t *places)
{
	const struct profile_event *shown = &page->profile->events[event];
	const struct ledger ledger = profile_events__ledger(page->profile, event);

	write_samples(page->profile, event, places, page->file);
	fprintf(page->file, "\"event\":\"%s\",\"unit\":\"%s\",\"meaning\":\"%s\",\n\"ledger\":",
		shown->period ? shown->name : "", shown->unit, shown->meaning ?: "");
	write_json(page, ledger__json(&ledger));
}

/* The samples of the profile before, which has the same threads and stacks. */
static void write_before(const struct page *page, const uint32_t *places)
{
	const struct profile *before = page->options->before;

	fputs("\"before\":{", page->file);
	write_samples(before, 0, places, page->file);
	fprintf(page->file,
		"\"start_ms\":%" PRId64 ",\"rate_hz\":%.17g,\"duration_s\":%.17g,"
		"\"scale\":%.17g},\n",
		before->start_unix_ns / NS_PER_MS, before->rate_hz, before->duration_ns / 1e9,
		output__scale(before, page->profile));
}

static void write_stacks_and_samples(struct page *page)
{
	const struct profile *profile = page->profile;
	uint32_t *order = xcalloc(profile->stack_count, sizeof(*order));
	uint32_t *places = xcalloc(profile->stack_count, sizeof(*places));

	for (size_t i = 0; i < profile->stack_count; i++)
		order[i] = i;
	qsort_r(order, profile->stack_count, sizeof(*order), compare_stacks, profile->stacks);
	for (size_t i = 0; i < profile->stack_count; i++)
		places[order[i]] = i;
	write_stacks(profile, order, page->file);
	write_event(page, 0, places);
	/* The events beside the first, for the page's menu. */
	fputs(",\n\"others\":[", page->file);
	for (uint32_t i = 1; i < profile->event_count; i++) {
		fputs(i > 1 ? ",{" : "{", page->file);
		write_event(page, i, places);
		fputs("}", page->file);
	}
	fputs("],\n", page->file);
	if (page->options->before)
		write_before(page, places);
	free(places);
	free(order);
}

static void write_recording(struct page *page)
{
	fputs("\"title\":", page->file);
	write_json(page, json_string(page->options->title ?: ""));
	fprintf(page->file,
		",\n\"generator\":\"pybpfprof " PYBPFPROF_VERSION "\",\n"
		"\"start_ms\":%" PRId64 ",\n\"threads_at_root\":%s,\n"
		"\"tells_processes\":%s",
		page->profile->start_unix_ns / NS_PER_MS, page->options->threads ? "true" : "false",
		output__shows_processes(page->profile, page->options) ? "true" : "false");
}

static void write_profile(struct page *page)
{
	fputs("{", page->file);
	write_strings(page);
	write_tables(page, page->file);
	write_stacks_and_samples(page);
	write_recording(page);
	fputs(",\"reasons\":{", page->file);
	for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++) {
		fprintf(page->file, "%s\"%s\":", outcome ? "," : "", outcome__name(outcome));
		write_json(page, json_string(outcome__text(outcome)));
	}
	fputs("}}\n", page->file);
}

static const struct {
	const char *name;
	void (*write)(struct page *page);
} markers[] = {
	{ "{{nonce}}", write_nonce },
	{ "{{style}}", write_style },
	{ "{{script}}", write_script },
	{ "{{profile}}", write_profile },
};

/* Replaces the marker at TEXT; returns its length, or 0 if there is none. */
static size_t write_marker(struct page *page, const char *text, size_t length)
{
	for (size_t i = 0; i < sizeof(markers) / sizeof(markers[0]); i++) {
		size_t name_length = strlen(markers[i].name);

		if (length < name_length || memcmp(text, markers[i].name, name_length) != 0)
			continue;
		markers[i].write(page);
		return name_length;
	}
	return 0;
}

static int make_nonce(struct page *page)
{
	uint8_t bytes[NONCE_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -errno;
	for (int i = 0; i < NONCE_BYTES; i++)
		snprintf(page->nonce + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static int write_html(const struct profile *profile, const struct output_options *options,
		      FILE *file)
{
	struct page page = { .profile = profile, .options = options, .file = file };

	page.error = make_nonce(&page);
	for (size_t i = 0; i < page_html_size && !page.error;) {
		size_t length = write_marker(&page, page_html_text + i, page_html_size - i);

		if (!length)
			fputc(page_html_text[i], file);
		i += length ? length : 1;
	}
	return page.error;
}

const struct output_format output_html = {
	.name = "html",
	.description = "interactive flame graph in one self-contained file",
	.use = "open it in a browser",
	.suffix = "html",
	.endings = { ".html", ".htm" },
	.tells_threads = true,
	.holds_events = true,
	.tells_difference = true,
	.chooses_kinds = true,
	.write = write_html,
};
